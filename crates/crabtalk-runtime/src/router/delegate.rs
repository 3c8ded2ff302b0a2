//! `delegate`: members work in parallel in separate conversations (RUN-9).
//!
//! Invariants: a member is in the delegating agent's scope; a member's run ends with the
//! call at the latest; a failure of one member is its result and does not affect the
//! others.

use super::CallContext;
use crate::Error;
use crate::catalog::Catalog;
use crate::command::Job;
use crate::events::Subscription;
use crate::request::RunRequest;
use crabtalk_domain::tool::{Schema, ToolOutput, ToolSpec};
use crabtalk_domain::{AgentConfig, ConversationKey, Origin, Permission, tags};
use crabtalk_gate::disk;
use crabtalk_gate::scope::{self, Kind};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use tokio_util::sync::DropGuard;

pub(super) const NAME: &str = "delegate";

/// Maximum members of one call: a team that a person can follow.
const MAX_TASKS: usize = 16;

/// Maximum members in the tool's description; the scope block lists the others.
const MAX_LISTED: usize = 50;

/// Maximum characters of a member's description in that list.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// The parameters without the list of members.
static PARAMETERS: LazyLock<Schema> = LazyLock::new(|| {
    Schema::from(json!({
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_TASKS,
                "items": {
                    "type": "object",
                    "properties": {
                        "agent": {"type": "string", "description": "a member's name"},
                        "task": {"type": "string", "description": "the complete task"},
                        "cwd": {
                            "type": "string",
                            "description": "the member's working directory: yours or a folder below it"
                        }
                    },
                    "required": ["agent", "task"]
                }
            }
        },
        "required": ["tasks"]
    }))
});

/// The tool for an agent, with the agent's members.
pub(super) fn spec(agent: &AgentConfig, catalog: &Catalog) -> Arc<ToolSpec> {
    let mut description = String::from(
        "Let other agents work on tasks in parallel, each in a conversation of its own, and wait \
         for their answers. Members cannot see this conversation: a task contains everything that \
         they need.",
    );
    let members = catalog
        .agents
        .values()
        .filter(|member| scope::allows_member(&agent.scope, member.name.as_str()));
    for (index, member) in members.take(MAX_LISTED).enumerate() {
        if index == 0 {
            description.push_str("\n\nMembers:");
        }
        let about: String = member
            .description
            .chars()
            .take(MAX_DESCRIPTION_CHARS)
            .collect();
        let about = tags::line(&about);
        let colon = if about.is_empty() { "" } else { ": " };
        let _ = write!(description, "\n- {}{colon}{about}", member.name);
    }
    Arc::new(ToolSpec {
        name: NAME.into(),
        description,
        parameters: PARAMETERS.clone(),
        default_permission: Permission::Allow,
    })
}

/// A member's task.
struct Task {
    agent: String,
    task: String,
    cwd: Option<String>,
}

/// Parses the arguments leniently: models also send a single task without a list.
fn tasks(arguments: &Value) -> Result<Vec<Task>, String> {
    let list: Vec<&Value> = match arguments["tasks"].as_array() {
        Some(list) => list.iter().collect(),
        None => vec![arguments],
    };
    if list.is_empty() || list.len() > MAX_TASKS {
        return Err(format!("give 1 to {MAX_TASKS} tasks at once"));
    }
    let text = |value: &Value| {
        let text = value.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let task = |value: &&Value| {
        Some(Task {
            agent: text(&value["agent"])?,
            task: text(&value["task"])?,
            cwd: text(&value["cwd"]),
        })
    };
    list.iter()
        .map(task)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "every task needs an \"agent\" and a \"task\"".into())
}

pub(super) async fn call(context: &CallContext, arguments: &Value) -> ToolOutput {
    let tasks = match tasks(arguments) {
        Ok(tasks) => tasks,
        Err(error) => return ToolOutput::error(error),
    };
    let above = match &context.origin {
        Origin::Delegate { depth, .. } => *depth,
        Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => 0,
    };
    let limit = context.rt.catalog.load().limits.delegate_depth;
    if above >= limit {
        return ToolOutput::error(format!(
            "this run is {above} delegations deep, the limit (limits.delegate_depth) is {limit}: \
             do the task yourself"
        ));
    }
    let members = tasks.iter().map(|task| member(context, task, above + 1));
    let results = futures_util::future::join_all(members).await;
    let failed = results.iter().all(|result| result.get("error").is_some());
    let content = Value::Array(results).to_string();
    ToolOutput {
        content,
        is_error: failed,
        images: Vec::new(),
    }
}

/// Runs one member to its end; a failure becomes its result.
async fn member(context: &CallContext, task: &Task, depth: u32) -> Value {
    match begin(context, task, depth).await {
        Ok(RunningMember {
            key,
            run,
            _ends_with_the_call,
        }) => match answer(run).await {
            Ok(answer) => {
                json!({"agent": task.agent, "sender": key.sender.as_str(), "answer": answer})
            }
            Err(error) => {
                json!({"agent": task.agent, "sender": key.sender.as_str(), "error": error})
            }
        },
        Err(error) => json!({"agent": task.agent, "error": error}),
    }
}

/// A running member.
struct RunningMember {
    key: ConversationKey,
    run: Subscription,
    /// Cancels the run when the call is dropped; no effect on a run that has
    /// ended.
    _ends_with_the_call: DropGuard,
}

async fn begin(context: &CallContext, task: &Task, depth: u32) -> Result<RunningMember, String> {
    let rt = &context.rt;
    let agent = &context.agent;
    if !scope::allows_member(&agent.scope, &task.agent) {
        let violation = context.violation(Kind::Member, task.agent.clone());
        return Err(violation.to_string());
    }
    let catalog = rt.catalog.load_full();
    let found = catalog.agent(&task.agent).map_err(|e| e.to_string())?;
    let cwd = match &task.cwd {
        Some(cwd) => Some(below(context, Path::new(cwd)).await?),
        // The configured folder of the member applies.
        None if found.cwd.is_some() => None,
        None => Some(context.cwd.clone()),
    };
    let number = rt.delegates.next().await?;
    let key = ConversationKey::new(found.name.as_str(), &format!("delegate:{number}"))
        .map_err(|e| e.to_string())?;
    let root = match &context.origin {
        Origin::Delegate { root, .. } => root.clone(),
        Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => context.key.clone(),
    };
    let request = RunRequest {
        cwd,
        origin: Origin::Delegate {
            root,
            parent: context.key.clone(),
            run: context.run,
            depth,
            principal: context.origin.principal().cloned(),
        },
        root: Some(context.standing),
        mode: Some(context.mode),
        ..RunRequest::new(key.clone(), task.task.clone())
    };
    let job = Job {
        audience: Some(Arc::clone(&context.audience)),
        ..Job::new(request, Arc::default())
    };
    let guard = job.cancel.clone().drop_guard();
    let run = rt.submit_job(job).map_err(|e| e.to_string())?;
    Ok(RunningMember {
        key,
        run,
        _ends_with_the_call: guard,
    })
}

/// Resolves the folder for a member. Reading below a run's folder needs no approval, so
/// a member's folder must lie below that of the delegating run.
async fn below(context: &CallContext, cwd: &Path) -> Result<PathBuf, String> {
    let (own, disk) = (context.cwd.clone(), context.rt.toolbox.disk());
    let wanted = own.join(cwd);
    let shown = wanted.display().to_string();
    // The run's folder is already resolved; if a link has replaced it, no path resolves
    // below it.
    let of = context.key.to_string();
    let resolved = disk::ask(&disk, &of, move |disk| {
        disk.resolve(&wanted).filter(|path| path.starts_with(own))
    })
    .await?;
    resolved.ok_or_else(|| {
        format!(
            "the cwd {shown} is not below the working directory {}",
            context.cwd.display()
        )
    })
}

/// The text of a run's last step, or the reason for its absence.
async fn answer(run: Subscription) -> Result<String, String> {
    let answer = run.answer().await.map_err(|e: Arc<Error>| e.to_string())?;
    if answer.end.code == 0 {
        Ok(answer.text)
    } else {
        Err(answer.end.error)
    }
}
