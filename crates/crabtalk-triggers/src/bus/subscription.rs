//! Who is told of what.

use crate::bus::event::{InvalidSource, check_source};
use crabtalk_domain::{AgentName, glob_matches};

/// An agent that runs when an event comes from some source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its number, from 1.
    pub id: u64,
    /// The source, or a pattern of sources.
    pub source: String,
    /// Who runs.
    pub agent: AgentName,
    /// Whether the first run that starts uses it up.
    pub once: bool,
    /// The sender who made it; empty if that is not known.
    pub by: String,
    /// What the agent is told before the payload; may be empty.
    pub prompt: String,
}

/// Why something is no subscription.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// What it listens to is no source, and no pattern of sources.
    #[error(transparent)]
    Source(#[from] InvalidSource),
    /// What it would start has a name that no agent can have; it says why.
    #[error("target_agent: {0}")]
    Agent(String),
    /// A table written by hand lacks the number by which it would be removed.
    #[error("it has no id: give it a number that no subscription has had")]
    NoId,
}

impl Subscription {
    /// Checks what somebody wrote.
    pub fn new(
        id: u64,
        source: &str,
        agent: &str,
        once: bool,
        by: &str,
    ) -> Result<Self, SubscriptionError> {
        if id == 0 {
            return Err(SubscriptionError::NoId);
        }
        check_source(source, true)?;
        let agent = AgentName::new(agent).map_err(|e| SubscriptionError::Agent(e.to_string()))?;
        Ok(Self {
            id,
            source: source.to_owned(),
            agent,
            once,
            by: by.to_owned(),
            prompt: String::new(),
        })
    }

    /// Whether an event of this source fires it.
    #[must_use]
    pub fn matches(&self, source: &str) -> bool {
        glob_matches(&self.source, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(source: &str) -> Subscription {
        Subscription::new(1, source, "crab", false, "").expect("a subscription")
    }

    #[test]
    fn a_source_is_matched_exactly_or_by_a_pattern() {
        for (pattern, source, want) in [
            ("build:failed", "build:failed", true),
            ("build:failed", "build:failed2", false),
            ("build:*", "build:failed", true),
            ("build:*", "build", false),
            ("*:done", "agent:crab:done", true),
            ("agent:?:done", "agent:a:done", true),
            ("agent:?:done", "agent:ab:done", false),
            ("*", "anything", true),
        ] {
            assert_eq!(on(pattern).matches(source), want, "{pattern} {source}");
        }
    }

    #[test]
    fn what_is_none_says_why() {
        let wrong = |id, source, agent| {
            let made = Subscription::new(id, source, agent, false, "");
            made.expect_err("none").to_string()
        };
        assert!(wrong(0, "a", "crab").contains("id"));
        assert!(wrong(1, "", "crab").contains("source"));
        assert!(wrong(1, "a", "").contains("target_agent"));
    }
}
