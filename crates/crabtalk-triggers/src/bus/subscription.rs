//! Subscriptions to events.

use crate::bus::event::{InvalidSource, check_source};
use crabtalk_domain::{AgentName, glob_matches};

/// A rule that runs an agent for each event from matching sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The number of the subscription, from 1.
    pub id: u64,
    /// The source, or a pattern of sources.
    pub source: String,
    /// The agent that runs.
    pub agent: AgentName,
    /// Whether the subscription ends when its first run starts.
    pub once: bool,
    /// The sender who made it; empty if unknown.
    pub by: String,
    /// The prompt before the payload; may be empty.
    pub prompt: String,
}

/// An invalid subscription.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// The source is not valid.
    #[error(transparent)]
    Source(#[from] InvalidSource),
    /// The name of the agent is not valid; holds the reason.
    #[error("target_agent: {0}")]
    Agent(String),
    /// The id is missing.
    #[error("it has no id: give it a number that was never used")]
    NoId,
}

impl Subscription {
    /// Creates a checked subscription.
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

    /// Whether an event of this source fires the subscription.
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
    fn sources_match_exactly_or_by_pattern() {
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
    fn invalid_subscriptions_have_clear_errors() {
        let wrong = |id, source, agent| {
            let made = Subscription::new(id, source, agent, false, "");
            made.expect_err("none").to_string()
        };
        assert!(wrong(0, "a", "crab").contains("id"));
        assert!(wrong(1, "", "crab").contains("source"));
        assert!(wrong(1, "a", "").contains("target_agent"));
    }
}
