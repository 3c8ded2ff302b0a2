//! Notifies ADMIN of new requests: prompts, compressions, letters.
//!
//! Invariant: each request is notified once.

use crate::clock::Ms;
use crate::world::{AgentLine, World};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

/// Timeout of the command in `[notify]`.
const WITHIN: Duration = Duration::from_secs(10);

/// The requests that ADMIN was notified of.
#[derive(Debug, Default)]
pub struct Admin {
    waiting: BTreeSet<String>,
    inbox: usize,
}

impl Admin {
    /// The agent and text of a new request, if there is one.
    pub(super) fn news(&mut self, world: &mut World, now: Ms) -> Option<(String, String)> {
        let (agents, inbox, _) = world.board(now);
        self.take(&agents, inbox)
    }

    /// The agent and text of a new request in the rows of a board, if there is one.
    pub fn take(&mut self, agents: &[AgentLine], inbox: usize) -> Option<(String, String)> {
        let mut news = None;
        let mut waiting = BTreeSet::new();
        for agent in agents.iter().filter(|agent| agent.for_admin) {
            let prompt = agent.waits.as_ref().map_or("", |prompt| &prompt.id);
            let what = format!("{}/{prompt}", agent.name);
            if !self.waiting.contains(&what) {
                let text = format!("{} waits for {}", agent.name, agent.waits_for);
                news = Some((agent.name.to_string(), text));
            }
            waiting.insert(what);
        }
        self.waiting = waiting;
        if inbox > self.inbox && news.is_none() {
            let text = format!("{inbox} messages for ADMIN");
            news = Some((String::new(), text));
        }
        self.inbox = inbox;
        news
    }
}

/// Runs the command of `[notify]`, and ignores its failure.
pub(super) async fn tell(command: &str, agent: &str, text: &str) {
    let run = tokio::process::Command::new("sh")
        .args(["-c", command])
        .env("NEXUS_AGENT", agent)
        .env("NEXUS_TEXT", text)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    // It is killed at the timeout.
    let _ = tokio::time::timeout(WITHIN, run).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::State;
    use serde_json::json;

    #[tokio::test]
    async fn command_of_notify_gets_agent_and_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told");
        let command = format!(
            "printf '%s: %s' \"$NEXUS_AGENT\" \"$NEXUS_TEXT\" > '{}'",
            file.display()
        );
        tell(&command, "BUILDER", "waits for you").await;
        let told = std::fs::read_to_string(file).unwrap();
        assert_eq!(told, "BUILDER: waits for you");
    }

    #[test]
    fn each_request_for_admin_is_notified_once() {
        let agent = |for_admin: bool| -> AgentLine {
            let line = json!({
                "name": "BUILDER", "state": State::Idle, "for_ms": 0, "queue": 0, "turns": 0,
                "flags": [], "note": "", "for_admin": for_admin, "waits_for": "your answer",
            });
            serde_json::from_value(line).unwrap()
        };
        let mut admin = Admin::default();
        assert_eq!(admin.take(&[agent(false)], 0), None);
        let told = admin.take(&[agent(true)], 0).unwrap();
        assert_eq!(told.1, "BUILDER waits for your answer");
        assert_eq!(admin.take(&[agent(true)], 0), None);
        assert_eq!(
            admin.take(&[agent(true)], 2).unwrap().1,
            "2 messages for ADMIN"
        );
        assert_eq!(admin.take(&[agent(false)], 1), None);
        assert!(admin.take(&[agent(true)], 1).is_some());
    }
}
