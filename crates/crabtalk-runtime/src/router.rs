//! Judges and dispatches tool calls: scope, permission, execution (GATE-6).
//!
//! Invariant: only [`execute`] calls tools.

mod approve;
mod builtin;
mod case;
mod deferred;
mod delegate;
mod pauses;
mod permit;
mod shown;
mod todo;
mod verdict;

pub(crate) use builtin::ASK_USER;
pub(crate) use deferred::Toolset;
pub(crate) use pauses::Pauses;
pub(crate) use todo::last_list as last_todo_list;

use crate::catalog::Catalog;
use crate::inner::Inner;
use crate::publisher::Publisher;
use case::Case;
use crabtalk_domain::tool::{
    Caller, Invocation, Progress, Subject, ToolOutput, ToolProvider, ToolSpec,
};
use crabtalk_domain::{
    AgentConfig, AgentEvent, AskQuestion, BoxFuture, ConversationKey, Mode, Origin, ToolCall,
};
use crabtalk_gate::scope::Kind;
use crabtalk_gate::{Standing, Violation, scope};
use permit::{Permitted, permit};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Maximum bytes of a call's result: more than a model reads at once, far less than a
/// frame.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// A change of the conversation that a call requests; the run applies it.
pub(crate) enum Effect {
    Title(String),
}

/// The result of a call.
pub(crate) struct Outcome {
    pub(crate) output: ToolOutput,
    pub(crate) effect: Option<Effect>,
}

impl From<ToolOutput> for Outcome {
    fn from(output: ToolOutput) -> Self {
        Self {
            output,
            effect: None,
        }
    }
}

/// The run whose calls are executed.
pub(crate) struct CallContext {
    pub(crate) rt: Arc<Inner>,
    pub(crate) key: ConversationKey,
    pub(crate) origin: Origin,
    pub(crate) run: u64,
    pub(crate) agent: Arc<AgentConfig>,
    pub(crate) cwd: PathBuf,
    /// The authority of the run.
    pub(crate) standing: Standing,
    /// The mode of the run.
    pub(crate) mode: Mode,
    /// The stream that shows its asks.
    pub(crate) audience: Arc<Publisher>,
    /// Ids of calls that wait for an approval.
    pub(crate) waiting: Mutex<Vec<String>>,
    /// The tools of the step.
    pub(crate) tools: Arc<Toolset>,
    /// Waiting times, which a call's duration excludes.
    pub(crate) pauses: Pauses,
}

/// Maximum characters of a stored refusal.
const MAX_DENIED_CHARS: usize = 300;

impl CallContext {
    /// Creates the invocation for the tool.
    fn invocation(&self, call: &ToolCall, arguments: Value) -> Invocation {
        Invocation {
            key: self.key.clone(),
            origin: self.origin.clone(),
            run: self.run,
            root: self.root(),
            agent: Arc::clone(&self.agent),
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            cwd: self.cwd.clone(),
        }
    }

    /// Logs a call that its tool refused: usually a mistake, but an attempt to access the
    /// home directory is not.
    fn tell_turned_away(&self, tool: &str, reason: &str) {
        tracing::info!(
            target: "security",
            agent = %self.agent.name,
            sender = %self.key.sender,
            origin = %self.origin,
            tool,
            reason,
            "a tool call was refused"
        );
    }

    /// Records a refusal for the readers of the root run.
    fn note_denied(&self, tool: &str, why: &str) {
        let why: String = why.chars().take(MAX_DENIED_CHARS).collect();
        self.audience.log().note_denied(format!("{tool}: {why}"));
    }

    /// The sender of this run if it is a delegate's; else empty.
    fn delegate(&self) -> String {
        match &self.origin {
            Origin::Delegate { .. } => self.key.sender.to_string(),
            Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => String::new(),
        }
    }

    /// The root run, whose stream people read.
    fn root(&self) -> (ConversationKey, u64) {
        let audience = &self.audience;
        (audience.key().clone(), audience.log().run())
    }

    /// Counts and logs an attempt to use something out of scope.
    fn violation(&self, kind: Kind, name: String) -> Violation {
        let violation = Violation {
            agent: self.agent.name.clone(),
            sender: self.key.sender.clone(),
            kind,
            name,
        };
        self.rt.violation(&violation, &self.origin);
        violation
    }
}

/// The tools in an agent's scope in a stable order. If their schemas are too large, the
/// tools of servers are deferred.
pub(crate) fn tools(rt: &Inner, agent: &AgentConfig, catalog: &Catalog) -> Arc<Toolset> {
    let specs = specs(agent, catalog, &rt.toolbox.offered());
    Arc::new(Toolset::new(specs, catalog.limits.tool_schema_bytes))
}

/// The specs in scope; of tools with the same name, the runtime's precedes others.
fn specs(agent: &AgentConfig, catalog: &Catalog, offered: &[Arc<ToolSpec>]) -> Vec<Arc<ToolSpec>> {
    let mut specs: Vec<Arc<ToolSpec>> = builtin::specs();
    specs.push(delegate::spec(agent, catalog));
    let others = offered.iter().filter(|s| !builtin::is_builtin(&s.name));
    specs.extend(others.cloned());
    specs.retain(|s| scope::allows_tool(&agent.scope, &s.name, catalog.memory_enabled));
    specs
}

/// Judges a call and executes it if allowed.
pub(crate) async fn execute(context: &CallContext, call: &ToolCall) -> Outcome {
    let mut outcome = judge_and_call(context, call).await;
    cap(&mut outcome.output.content);
    outcome
}

async fn judge_and_call(context: &CallContext, call: &ToolCall) -> Outcome {
    let meant = match context.tools.meant(call) {
        Some(Ok(meant)) => Some(meant),
        Some(Err(error)) => return ToolOutput::error(error).into(),
        None => None,
    };
    let call = meant.as_ref().unwrap_or(call);
    let Some(spec) = context.tools.get(&call.name) else {
        return refuse_unknown(context, call).into();
    };
    let arguments = match parse_arguments(&call.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return ToolOutput::error(error).into(),
    };
    let invocation = context.invocation(call, arguments);
    let provider = provider(context, &call.name);
    let subject = match provider {
        Some(provider) => provider.subject(&invocation).await,
        None => Ok(Subject::Other),
    };
    let subject = match subject {
        Ok(subject) => subject,
        Err(error) => {
            context.tell_turned_away(&call.name, &error);
            return ToolOutput::error(error).into();
        }
    };
    if let Some(provider) = provider
        && let Some(skill) = provider.out_of_scope(&invocation).await
    {
        let violation = context.violation(Kind::Skill, skill);
        return ToolOutput::error(violation.to_string()).into();
    }
    let turns = context.audience.commands();
    let _alone = context.pauses.pause(&call.id, turns.alone(&subject)).await;
    let case = Case {
        spec,
        provider,
        call: &invocation,
        subject: &subject,
        arguments: &call.arguments,
    };
    let Permitted {
        subject: judged,
        shown,
    } = match permit(context, case).await {
        Ok(permitted) => permitted,
        Err(refusal) => {
            context.note_denied(&call.name, &refusal);
            return ToolOutput::error(refusal).into();
        }
    };
    let Some(provider) = provider else {
        return builtin::call(context, &invocation).await;
    };
    let _beside = context.pauses.pause(&call.id, turns.beside(&judged)).await;
    let waiting = Waiting {
        context,
        call_id: &call.id,
    };
    let called = provider.call_for(&invocation, &judged, shown.as_ref(), &waiting);
    called.await.into()
}

fn provider<'a>(context: &'a CallContext, name: &str) -> Option<&'a Arc<dyn ToolProvider>> {
    match builtin::is_builtin(name) {
        true => None,
        false => context.rt.toolbox.provider(name),
    }
}

/// Refuses a call to a tool that is out of scope or does not exist (GATE-1).
fn refuse_unknown(context: &CallContext, call: &ToolCall) -> ToolOutput {
    let exists = builtin::is_builtin(&call.name) || provider(context, &call.name).is_some();
    let names: Vec<&str> = context
        .tools
        .offered
        .iter()
        .map(|spec| spec.name.as_str())
        .collect();
    let names = names.join(", ");
    if !exists {
        return ToolOutput::error(format!(
            "there is no tool {:?}; there are: {names}",
            call.name
        ));
    }
    context.violation(Kind::Tool, call.name.clone());
    context.note_denied(&call.name, "outside the agent's scope");
    ToolOutput::error(format!(
        "{:?} is outside the scope of {}; in scope are: {names}",
        call.name, context.agent.name
    ))
}

/// Passes a tool's progress and questions to the calling run.
struct Waiting<'a> {
    context: &'a CallContext,
    call_id: &'a str,
}

impl Caller for Waiting<'_> {
    fn progress(&self, progress: Progress) {
        self.context.audience.publish(AgentEvent::ToolProgress {
            call_id: self.call_id.to_owned(),
            progress,
        });
    }

    fn ask<'a>(&'a self, questions: Vec<AskQuestion>) -> BoxFuture<'a, Option<Value>> {
        let asked = builtin::ask(self.context, questions);
        Box::pin(self.context.pauses.pause(self.call_id, asked))
    }
}

/// Truncates an oversized result with a note.
fn cap(content: &mut String) {
    if content.len() <= MAX_OUTPUT_BYTES {
        return;
    }
    let left = content.len() - MAX_OUTPUT_BYTES;
    content.truncate(content.floor_char_boundary(MAX_OUTPUT_BYTES));
    content.push_str(&format!(
        "\n[cut: {left} more bytes; request less at a time]"
    ));
}

/// Parses the arguments, an object; an empty text means no arguments.
fn parse_arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("the arguments must be a JSON object; nothing was done".into()),
        Err(error) => Err(format!(
            "the arguments are not valid JSON ({error}); nothing was done, send them again"
        )),
    }
}
