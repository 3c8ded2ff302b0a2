//! One run: an agent executes on a conversation, step by step (RUN-1).
//!
//! Invariants: messages are on disk before the model or clients get them; a tool call
//! executes only after it is on disk; a run that published Start ends with one End and
//! leaves a history that is valid for every provider (CONV-5).

mod announce;
mod answer;
mod compact;
mod finish;
mod mode;
mod people;
mod repeats;
mod start;
mod steps;
mod tools;

use crate::command::Job;
use crate::compaction;
use crate::facts::Facts;
use crate::inner::Inner;
use crate::open::OpenConversation;
use crate::publisher::Publisher;
use crate::registry::Shared;
use crate::request::RunRequest;
use crate::spending::Tally;
use announce::Announcer;
use crabtalk_domain::storage::RunRecord;
use crabtalk_domain::{AgentConfig, ContextUse, Message, Mode, ToolCall, Usage, model, storage};
use crabtalk_gate::Standing;
pub(crate) use finish::Ending;
use futures_util::FutureExt;
use repeats::Repeats;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a run ends early.
#[derive(Debug)]
enum Stop {
    Model(model::Error),
    Storage(storage::Error),
    MaxIterations(u32),
    /// The tool that the caller named does not exist; holds the message.
    NoSuchTool(String),
    /// A guest's answer consists of tool calls only (RUN-2).
    OnlyToolCalls(String),
    /// The model's answer is empty.
    Empty(String),
    /// The model's answer consists of reasoning only.
    OnlyThoughts(String),
    /// The same call had the same result repeatedly (MODEL-7).
    Repeated(String),
    Cancelled,
    ShuttingDown,
}

impl From<storage::Error> for Stop {
    fn from(error: storage::Error) -> Self {
        Self::Storage(error)
    }
}

impl From<model::Error> for Stop {
    fn from(error: model::Error) -> Self {
        Self::Model(error)
    }
}

/// Calls of the current step and their results so far.
struct Calls {
    calls: Vec<ToolCall>,
    results: Vec<Option<Arc<Message>>>,
}

struct Run<'a> {
    rt: &'a Arc<Inner>,
    shared: &'a Arc<Shared>,
    open: &'a mut OpenConversation,
    request: RunRequest,
    /// The agent that answers, as hooks composed it.
    speaker: Arc<AgentConfig>,
    /// The conversation's own agent, whose settings apply to compaction.
    primary: Arc<AgentConfig>,
    /// When to compact.
    budget: compaction::Budget,
    /// The record of the start, repeated after a marker.
    started_as: RunRecord,
    number: u64,
    cwd: PathBuf,
    standing: Standing,
    mode: Mode,
    facts: Arc<Facts>,
    /// Whether the run resumes an interrupted run, so that no client waits for it.
    carried_on: bool,
    publisher: Arc<Publisher>,
    /// The stream that shows its asks: its own, or that of the root of a
    /// delegation (RUN-9).
    audience: Arc<Publisher>,
    announcer: Announcer,
    system: Arc<str>,
    injected: Arc<Vec<Message>>,
    injected_at: usize,
    calls: Option<Calls>,
    repeats: Repeats,
    /// Whether the run has produced text.
    has_text: bool,
    /// Ids of its calls, which are unique.
    call_ids: Vec<String>,
    /// Steering messages that were taken but are not in the log yet.
    unkept: Vec<String>,
    usage: Usage,
    /// Use of the context window after the last answer.
    context: Option<ContextUse>,
    tally: Arc<Tally>,
    ending: Arc<Ending>,
    provider: String,
    model: String,
    started: tokio::time::Instant,
}

impl Run<'_> {
    fn is_guest(&self) -> bool {
        self.request.guest.is_some()
    }
}

pub(crate) struct RunTask {
    pub(crate) job: Box<Job>,
    /// The interrupted run that this one resumes.
    pub(crate) cut: Option<Box<RunRecord>>,
}

/// The state of memory after a run.
pub(crate) enum Outcome {
    /// Memory and disk agree.
    Intact,
    /// Memory may differ from the disk, which takes precedence.
    Unsure,
    /// After a panic, memory is not trusted, and the end was not reported.
    Panicked(Arc<Ending>),
}

pub(crate) async fn execute(
    rt: &Arc<Inner>,
    shared: &Arc<Shared>,
    open: &mut OpenConversation,
    work: RunTask,
) -> Outcome {
    rt.running.fetch_add(1, Ordering::Relaxed);
    let request = &work.job.request;
    let own = request.key.agent.as_str();
    let speaker = request.guest.as_deref().unwrap_or(own);
    let ending = Arc::new(Ending::new(rt, shared, open.last_run + 1, speaker, &work));
    // Boxed to keep the surrounding futures small.
    let work = Box::pin(run(rt, shared, open, work, Arc::clone(&ending)));
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    rt.running.fetch_sub(1, Ordering::Relaxed);
    outcome.unwrap_or_else(|_| {
        tracing::error!(conversation = %shared.key, "a run panicked");
        Outcome::Panicked(ending)
    })
}

async fn run(
    rt: &Arc<Inner>,
    shared: &Arc<Shared>,
    open: &mut OpenConversation,
    work: RunTask,
    ending: Arc<Ending>,
) -> Outcome {
    let (log, cancel) = (Arc::clone(&work.job.log), work.job.cancel.clone());
    // Boxed to keep a run that waits for its model small.
    let mut run = match Box::pin(start::start(rt, shared, open, work, ending)).await {
        Ok(run) => run,
        Err(error) => {
            let failed = matches!(error, crate::Error::Storage(_));
            shared.forget_current();
            log.refuse(error);
            return if failed {
                Outcome::Unsure
            } else {
                Outcome::Intact
            };
        }
    };
    let outcome = {
        let steps = Box::pin(run.steps());
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Stop::Cancelled),
            () = rt.shutdown.cancelled() => Err(Stop::ShuttingDown),
            outcome = steps => outcome,
        }
    };
    Box::pin(run.finish(outcome)).await
}
