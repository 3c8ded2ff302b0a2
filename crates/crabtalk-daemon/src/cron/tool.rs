//! The `schedule` tool: an agent creates cron entries for itself (CRON-1).
//!
//! Invariants: an entry runs in the conversation that created it, with the rights of its
//! sender; an agent lists and removes only entries of this conversation; number, first
//! due time and chain of entries that create each other are bounded.

use super::{Cron, Listed, maker};
use crate::settings::Settings;
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{BoxFuture, Origin, Permission};
use crabtalk_files::local_zone;
use crabtalk_triggers::cron::{Draft, Expression, in_words, parse_at};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::sync::Arc;

/// The name of the tool, which the scope must contain.
const NAME: &str = "schedule";

/// The shortest delay of a single time: entries that are due at once could form a loop.
const SOONEST: SignedDuration = SignedDuration::from_secs(60);

pub(crate) struct ScheduleTool {
    cron: Cron,
    settings: Arc<Settings>,
    spec: Arc<ToolSpec>,
}

impl ScheduleTool {
    pub(crate) fn new(cron: Cron, settings: Arc<Settings>) -> Self {
        let text = |description: &str| json!({"type": "string", "description": description});
        let spec = Arc::new(ToolSpec {
            name: NAME.into(),
            description:
                "Schedule a run of yourself in this conversation, once or repeatedly. No person \
                 approves its calls: it can do what your permissions allow without asking. \
                 Lists and removes such entries too. The owner sees them."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["add", "list", "remove"]},
                    "when": text("for add: `in 20m`, `17:30`, `2026-12-24 17:30`, or five fields of \
                         cron such as `0 9 * * 1-5`"),
                    "prompt": text("for add: what you will be told then"),
                    "id": {"type": "integer", "description": "for remove"}
                },
                "required": ["action"]
            }).into(),
            default_permission: Permission::Allow,
        });
        Self {
            cron,
            settings,
            spec,
        }
    }

    async fn work(&self, call: &Invocation) -> Result<String, String> {
        let text = |key: &str| call.arguments[key].as_str().unwrap_or_default();
        match text("action") {
            "add" => self.add(call, text("when"), text("prompt")).await,
            "list" => {
                let own = self.own(call).await?;
                let lines: Vec<String> = own.iter().map(line).collect();
                Ok(match lines.is_empty() {
                    true => "you have no entries".into(),
                    false => lines.join("\n"),
                })
            }
            "remove" => {
                let id = call.arguments["id"].as_u64().unwrap_or_default();
                if !self.own(call).await?.iter().any(|own| own.entry.id == id) {
                    return Err(format!("entry {id} is not yours; list your entries"));
                }
                let removed = self.cron.remove(id).await;
                removed.map_err(|error| error.to_string())?;
                Ok(format!("entry {id} is removed"))
            }
            other => Err(format!("unknown action {other:?}: use add, list or remove")),
        }
    }

    /// The entries that the agent created in this conversation.
    async fn own(&self, call: &Invocation) -> Result<Vec<Listed>, String> {
        let (mut all, ..) = self.cron.list().await.map_err(|error| error.to_string())?;
        all.retain(|listed| listed.entry.draft.by_agent && listed.entry.key == call.key);
        Ok(all)
    }

    async fn add(&self, call: &Invocation, when: &str, prompt: &str) -> Result<String, String> {
        let (sender, chain) = match &call.origin {
            // A member's conversation ends with its run.
            Origin::Delegate { .. } => {
                return Err("a delegated run cannot schedule; the run at the top can".into());
            }
            Origin::Cron { id, by } => (by.clone(), self.chain(*id).await + 1),
            Origin::Client { .. } | Origin::Event { .. } => {
                let sender = call.key.sender.as_str();
                (maker(call.origin.principal(), sender), 0)
            }
        };
        let limit = self.settings.config().limits.chain_depth;
        if chain > limit {
            return Err(format!(
                "a chain of {limit} entries that made each other, the limit ([limits] chain_depth): a \
                 person has to make the next one"
            ));
        }
        let now = Timestamp::now();
        let (schedule, at) = match Expression::parse(when) {
            Ok(_) => (when, ""),
            Err(error) => match parse_at(when, now, &local_zone()) {
                Ok(at) if at.duration_since(now) < SOONEST => {
                    return Err("the time has to be a minute ahead at least".into());
                }
                Ok(_) => ("", when),
                // A text with cron fields gets the error of a cron expression.
                Err(_) if when.split_whitespace().count() >= 4 => return Err(error.to_string()),
                Err(error) => return Err(error.to_string()),
            },
        };
        let draft = Draft {
            schedule: schedule.into(),
            at: at.into(),
            agent: call.key.agent.to_string(),
            sender: call.key.sender.to_string(),
            content: prompt.into(),
            cwd: call.cwd.to_string_lossy().into_owned(),
            by: sender,
            by_agent: true,
            chain,
            ..Draft::default()
        };
        let listed = self
            .cron
            .add(draft)
            .await
            .map_err(|error| error.to_string())?;
        tracing::info!(cron = listed.entry.id, agent = %call.key.agent, "an agent made a cron entry");
        Ok(line(&listed))
    }

    /// Length of the chain of entries up to this one. If an entry was removed, the maximum
    /// is assumed.
    async fn chain(&self, id: u64) -> u32 {
        let listed = self
            .cron
            .list()
            .await
            .map(|(all, ..)| all)
            .unwrap_or_default();
        let found = listed.iter().find(|listed| listed.entry.id == id);
        found.map_or(self.settings.config().limits.chain_depth, |listed| {
            listed.entry.draft.chain
        })
    }
}

/// Formats an entry for the agent.
fn line(listed: &Listed) -> String {
    let entry = &listed.entry;
    let next = match listed.next {
        Some(next) => in_words(next, Timestamp::now(), &entry.zone),
        None => "never".into(),
    };
    let words: String = entry.words().chars().take(100).collect();
    format!("entry {}, next {next}: {words}", entry.id)
}

impl ToolProvider for ScheduleTool {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![Arc::clone(&self.spec)]
    }

    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(std::future::ready(Ok(Subject::Other)))
    }

    fn call<'a>(&'a self, call: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match self.work(call).await {
                Ok(done) => ToolOutput::ok(done),
                Err(error) => ToolOutput::error(error),
            }
        })
    }
}
