//! Shortens a working history by summarising it (RUN-4, RUN-5).
//!
//! Invariants: the log is never shortened, a marker only moves the beginning of the
//! working history; the kept tail follows the summary verbatim and begins with a whole
//! group of calls and results; an unfinished todo list survives; a summary that is
//! missing, empty or longer than what it replaces changes nothing.

mod pieces;
mod plan;
mod prompt;

#[cfg(test)]
mod tests;

pub(crate) use plan::{Budget, Plan};

use crate::inner::Inner;
use crate::open::OpenConversation;
use crate::registry::Shared;
use crate::router;
use crate::spending::{self, Account, Tally};
use crate::{Error, framing};
use crabtalk_domain::model::{Error as ModelError, ErrorKind, Request, Response, ToolChoice};
use crabtalk_domain::storage::{self, MetaRecord, Position, Record, RunRecord, archive_title};
use crabtalk_domain::tool::ToolSpec;
use crabtalk_domain::{
    AgentConfig, AgentEvent, BoxFuture, ContextUse, Message, Role, estimate_tokens,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Attempts at a summary before compaction fails (RUN-4).
const ATTEMPTS: usize = 2;

/// Lower limit for the assumed window: the instruction alone fills it.
const SMALLEST_WINDOW: u64 = 1000;

/// Time limit of a compaction on demand, during which messages queue: enough for many
/// pieces of a slow model.
const MAX_TIME: Duration = Duration::from_secs(15 * 60);

/// Tokens below which a history is short.
const SHORT_HISTORY: u64 = 1000;

/// The agent, prompt and limits of a compaction.
pub(crate) struct Job<'a> {
    /// The conversation's own agent, also if a guest answers.
    pub(crate) agent: &'a AgentConfig,
    /// The conversation's system prompt, so that the provider's cache is used.
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<Vec<Arc<ToolSpec>>>,
    /// The topic that the summary should focus on.
    pub(crate) focus: Option<&'a str>,
    /// A summary with fewer tokens is never rejected as too long.
    pub(crate) min_replaced: u64,
    /// Adds up the cost.
    pub(crate) tally: &'a Tally,
}

/// A compaction that took place.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) summary: String,
    pub(crate) title: String,
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) at: Position,
}

/// Compacts at a client's request (RUN-5), until cancelled. The summary of a short
/// history may be longer than the history. Without messages since the last summary,
/// returns that summary.
pub(crate) async fn on_demand(
    rt: &Arc<Inner>,
    shared: &Arc<Shared>,
    open: &mut OpenConversation,
    focus: Option<&str>,
    cancel: &CancellationToken,
) -> Result<String, Error> {
    if open.history.is_empty() {
        return Err(Error::BadRequest(format!(
            "{} is empty: nothing to compact",
            shared.key
        )));
    }
    if let Some(summary) = open.fresh_summary() {
        return Ok(summary.to_owned());
    }
    let (key, run) = (Arc::clone(&shared.key), open.last_run);
    let agent = key.agent.to_string();
    let publisher = rt.publisher(key, run, &agent, "", Arc::default());
    let done = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Cancelled),
        () = rt.shutdown.cancelled() => Err(Error::ShuttingDown),
        () = tokio::time::sleep(MAX_TIME) => Err(Error::TookTooLong(MAX_TIME.as_secs() / 60)),
        done = now(rt, shared, open, focus) => done,
    };
    publisher.publish(event(&done));
    Ok(done?.summary)
}

async fn now(
    rt: &Arc<Inner>,
    shared: &Arc<Shared>,
    open: &mut OpenConversation,
    focus: Option<&str>,
) -> Result<Done, Error> {
    let catalog = rt.catalog.load_full();
    let agent = catalog.agent(shared.key.agent.as_str())?;
    let agent = rt.build_agent(agent).await;
    let name = shared.key.agent.as_str();
    let system = framing::system_prompt(&agent.prompt, None, name, open.has_guests);
    let job = Job {
        system: system.into(),
        tools: Arc::clone(&router::tools(rt, &agent, &catalog).offered),
        agent: &agent,
        focus,
        min_replaced: SHORT_HISTORY,
        // The run is over; the ledger adds the call to the day.
        tally: &Tally::default(),
    };
    let done = compact(rt, shared, open, &job, Plan::all(), None).await?;
    // The answer must survive a power cut.
    shared.synced_at_end(done.at).await?;
    Ok(done)
}

/// Archives the working history without a summary, and returns the archive's title
/// (CONV-11), which is empty if there was nothing to archive. Calls no model, so that
/// only the disk can fail.
pub(crate) async fn start_fresh(
    rt: &Arc<Inner>,
    shared: &Arc<Shared>,
    open: &mut OpenConversation,
) -> Result<String, Error> {
    if open.history.is_empty() {
        return Ok(String::new());
    }
    let tokens_before = open.history.estimated_tokens();
    let title = title_without_summary(shared, open);
    let at = append_compact(rt, shared, open, "", &title, 0, None).await?;
    open.begin_anew("", 0);
    shared.synced_at_end(at).await?;
    tell_put_away(rt, shared, open, (tokens_before, 0), &title);
    Ok(title)
}

/// Publishes that the working history became an archive, with the tokens before and
/// after.
pub(crate) fn tell_put_away(
    rt: &Arc<Inner>,
    shared: &Shared,
    open: &OpenConversation,
    (tokens_before, tokens_after): (u64, u64),
    title: &str,
) {
    let (key, run) = (Arc::clone(&shared.key), open.last_run);
    let agent = key.agent.to_string();
    rt.publisher(key, run, &agent, "", Arc::default())
        .publish(AgentEvent::Compacted {
            tokens_before,
            tokens_after,
            title: title.to_owned(),
            failed: String::new(),
        });
}

/// The title of an archive that has no summary.
pub(crate) fn title_without_summary(shared: &Shared, open: &OpenConversation) -> String {
    match shared.live().meta.title.as_str() {
        "" => archive_title(first_words(open)),
        title => title.to_owned(),
    }
}

/// The first user message since the last marker.
fn first_words(open: &OpenConversation) -> &str {
    let said = open.history.iter().find(|m| m.role == Role::User);
    said.map_or("", |message| message.content.as_str())
}

/// The event that reports a compaction to clients.
pub(crate) fn event(done: &Result<Done, Error>) -> AgentEvent {
    match done {
        Ok(done) => AgentEvent::Compacted {
            tokens_before: done.tokens_before,
            tokens_after: done.tokens_after,
            title: done.title.clone(),
            failed: String::new(),
        },
        Err(error) => AgentEvent::Compacted {
            tokens_before: 0,
            tokens_after: 0,
            title: String::new(),
            failed: error.to_string(),
        },
    }
}

/// Summarises the archived part of the plan and begins a new working history.
pub(crate) async fn compact(
    rt: &Inner,
    shared: &Shared,
    open: &mut OpenConversation,
    job: &Job<'_>,
    plan: Plan,
    running: Option<RunRecord>,
) -> Result<Done, Error> {
    let tokens_before = open.history.estimated_tokens();
    let account = Account {
        ledger: &*rt.ledger,
        key: &shared.key,
        run: open.last_run,
        agent: job.agent,
        tally: job.tally,
    };
    let mut summary = summarise(rt, account, open, job, &plan).await?;
    if let Some(list) = archived_todo_list(open, plan.keep) {
        summary = prompt::with_todo_list(&summary, &list);
    }
    if let Some(question) = plan.open_question(&open.history) {
        summary = prompt::with_question(&summary, &question);
    }
    let title = archive_title(&summary);
    let at = append_compact(rt, shared, open, &summary, &title, plan.keep, running).await?;
    open.begin_anew(&summary, plan.keep);
    let tokens_after = open.history.estimated_tokens();
    Ok(Done {
        summary,
        title,
        tokens_before,
        tokens_after,
        at,
    })
}

/// The todo list, unless the kept messages contain it or every item is done.
fn archived_todo_list(open: &OpenConversation, keep: usize) -> Option<String> {
    let (archived, kept) = open.history.split_at(open.history.len() - keep);
    if router::last_todo_list(kept).is_some() {
        return None;
    }
    let list = router::last_todo_list(archived).or_else(|| {
        let summary = archived.first().filter(|_| open.has_summary)?;
        prompt::todo_list(&summary.content).map(str::to_owned)
    });
    list.filter(|list| !list.is_empty())
}

/// Appends a compact marker.
fn append_compact(
    rt: &Inner,
    shared: &Shared,
    open: &OpenConversation,
    summary: &str,
    title: &str,
    keep: usize,
    running: Option<RunRecord>,
) -> BoxFuture<'static, Result<Position, storage::Error>> {
    let kept = &open.history[open.history.len() - keep..];
    let in_summary = match summary {
        "" => 0,
        summary => Message::user(summary).estimated_tokens(),
    };
    let marker = Record::Compact {
        summary: summary.to_owned(),
        title: title.to_owned(),
        archived_at: rt.now(),
        keep,
    };
    let used = plan::tokens(kept) + in_summary;
    append_marker(shared, open, marker, Some(used), running)
}

/// Appends a marker between two records of the state: a crash may cut the batch
/// anywhere, and a reader from the end needs the state beside the marker. `used` is the
/// number of tokens after it, if known.
pub(crate) fn append_marker(
    shared: &Shared,
    open: &OpenConversation,
    marker: Record,
    used: Option<u64>,
    running: Option<RunRecord>,
) -> BoxFuture<'static, Result<Position, storage::Error>> {
    // Locked until the append, so that no steering message comes between the records.
    let mut live = shared.live();
    if let Some(used) = used {
        live.meta.context = Some(ContextUse {
            used,
            window: live.meta.context.and_then(|context| context.window),
        });
    }
    let meta = live.meta.clone();
    let steers = live.steers.as_ref().map(|steers| steers.waiting().to_vec());
    let state = MetaRecord {
        title: Some(meta.title),
        cwd: Some(meta.cwd),
        own_cwd: Some(meta.own_cwd),
        uptime_secs: Some(meta.uptime_secs),
        context: None,
        last_run: Some(open.last_run),
        open_run: running,
        requests: Some(open.requests.iter().cloned().collect()),
        waiting: None,
        steers: steers.filter(|steers| !steers.is_empty()),
    };
    shared.append(&[
        Record::Meta(state.clone()),
        marker,
        Record::Meta(MetaRecord {
            context: meta.context.filter(|_| used.is_some()),
            ..state
        }),
    ])
}

async fn summarise(
    rt: &Inner,
    account: Account<'_>,
    open: &OpenConversation,
    job: &Job<'_>,
    plan: &Plan,
) -> Result<String, ModelError> {
    let archived = &open.history[..open.history.len() - plan.keep];
    let replaced: u64 = archived.iter().map(|m| m.estimated_tokens()).sum();
    let archived = &in_words(archived)[..];
    let instruction = prompt::instruction(job.agent.compact_prompt.as_deref(), job.focus);
    let mut window = rt.model.context_limit(&job.agent.model);
    let mut failure = String::new();
    let mut attempt = 0;
    while attempt < ATTEMPTS {
        let in_pieces = window.filter(|window| plan::tokens(archived) > window / 10 * 8);
        let summary = match in_pieces {
            Some(window) => {
                pieces::summarise(rt, account, job, archived, &instruction, window).await
            }
            None => {
                // The second attempt omits the tools: some servers let a
                // model call them although the request forbids it.
                let request = Request {
                    model: job.agent.model.clone(),
                    fallback: job.agent.fallback.clone(),
                    closing: Some(Arc::new(Message::user(instruction.clone()))),
                    has_guests: open.has_guests,
                    tools: if attempt == 0 {
                        Arc::clone(&job.tools)
                    } else {
                        Arc::default()
                    },
                    tool_choice: ToolChoice::None,
                    ..Request::new(Arc::clone(&job.system), archived.to_vec())
                };
                spending::send(rt, account, request).await.map(text)
            }
        };
        attempt += 1;
        match summary {
            Ok(summary) if summary.is_empty() => failure = "the summary was empty".into(),
            Ok(summary) if estimate_tokens(&summary) >= replaced.max(job.min_replaced) => {
                failure = "the summary was longer than the messages that it replaces".into();
            }
            Ok(summary) => return Ok(summary),
            Err(error) if error.kind == ErrorKind::Budget => return Err(error),
            Err(error) if error.kind == ErrorKind::TooLong => {
                // The window is smaller than reported, or the text
                // has more tokens than estimated: use smaller
                // pieces.
                let tried = in_pieces.unwrap_or_else(|| plan::tokens(archived));
                if tried > SMALLEST_WINDOW {
                    window = Some(tried / 2);
                    attempt -= 1;
                }
                failure = error.message;
            }
            Err(error) => failure = error.message,
        }
    }
    let message = format!("the history was not compacted: {failure}");
    Err(ModelError::new(ErrorKind::Malformed, message))
}

/// Replaces images by notes: a summary is text, and images may have made the
/// history too long.
fn in_words(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let told = |message: &Arc<Message>| {
        if message.images.is_empty() {
            return Arc::clone(message);
        }
        Arc::new(message.with_notes(|image| Some(image.note())))
    };
    history.iter().map(told).collect()
}

fn text(response: Response) -> String {
    response.content.trim().to_owned()
}
