//! What hooks are told of a run.

use crate::Error;
use crate::gate::Violation;
use crate::gate::scope::Kind;
use crate::runtime::Inner;
use crabtalk_domain::{AgentConfig, ConversationKey, Hook, Origin, RunContext};
use std::path::PathBuf;
use std::sync::Arc;

/// A run as it stands from its beginning to its end.
pub(crate) struct Facts {
    pub(crate) key: ConversationKey,
    pub(crate) origin: Origin,
    /// Who speaks: the conversation's own agent, or a guest.
    pub(crate) agent: Arc<AgentConfig>,
    pub(crate) cwd: PathBuf,
    pub(crate) run: u64,
    pub(crate) for_owner: bool,
    pub(crate) has_archives: bool,
    /// Who is asked at its turning points.
    pub(crate) hook: Arc<dyn Hook>,
}

impl Facts {
    pub(crate) fn context(&self) -> RunContext<'_> {
        RunContext {
            key: &self.key,
            origin: &self.origin,
            agent: &self.agent,
            cwd: &self.cwd,
            run: self.run,
            for_owner: self.for_owner,
            has_archives: self.has_archives,
        }
    }

    /// What somebody says to the run, as hooks rewrite it.
    pub(crate) async fn preprocess(&self, rt: &Inner, content: String) -> Result<String, Error> {
        let command = first_word(&content).to_owned();
        let said = self.hook.preprocess(self.context(), content).await;
        said.map_err(|refusal| {
            // The way in of slash commands: what is out of scope is refused so.
            if refusal.code == 403 {
                let violation = Violation {
                    agent: self.agent.name.clone(),
                    sender: self.key.sender.clone(),
                    kind: Kind::Skill,
                    name: command,
                };
                rt.violation(&violation, &self.origin);
            }
            Error::Refused(refusal)
        })
    }
}

/// The command of a slash command, for the log.
fn first_word(content: &str) -> &str {
    content.split_whitespace().next().unwrap_or_default()
}
