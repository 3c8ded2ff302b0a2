//! One call of a tool, which ends with an answer, at its timeout, or with its link.
//!
//! Invariants: dropping a call cancels it at the server; the timeout is suspended while
//! a person is asked; the number of concurrent calls of a server, and of questions in
//! each, is bounded.

use crate::elicit;
use crate::handler::{Answered, Heard};
use crate::link::Link;
use crate::settings::Settings;
use crabtalk_domain::tool::{Caller, Progress};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
    ClientRequest, JsonObject, ProgressNotificationParam, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::AuthRequiredError;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;

/// Longest duration of a call that reports progress, in multiples of its timeout.
const MAX_TURNS: u32 = 60;

/// Minimum interval between progress events, which people read.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Longest message of a progress event, in bytes.
const MAX_MESSAGE: usize = 200;

/// Timeout for sending a cancellation.
const CANCEL_WITHIN: Duration = Duration::from_secs(5);

/// Time to wait for the reason why the connection ended.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// Maximum number of questions to a person in one call; others are declined.
const MAX_QUESTIONS: usize = 16;

/// The parameters of a call.
pub(crate) struct Wanted<'a> {
    pub(crate) settings: &'a Settings,
    /// The server's own name for it.
    pub(crate) raw: &'a str,
    pub(crate) arguments: JsonObject,
    /// Metadata for the server in addition to the arguments.
    pub(crate) meta: Option<JsonObject>,
    /// The conversation whose people are asked.
    pub(crate) conversation: String,
}

/// Cancels a request at the server when it is dropped.
pub(crate) struct CancelOnDrop<'a> {
    pub(crate) peer: &'a Peer<RoleClient>,
    pub(crate) tasks: &'a TaskTracker,
    /// `None` once the request has ended.
    pub(crate) id: Option<RequestId>,
    pub(crate) why: &'static str,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        let (peer, why) = (self.peer.clone(), self.why);
        self.tasks.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some(why.to_owned()));
            let told = peer.notify_cancelled(params);
            // A server that ignores the cancellation ends the call itself.
            let _ = tokio::time::timeout(CANCEL_WITHIN, told).await;
        });
    }
}

/// A call in flight with its permit.
type Begun<'a> = (SemaphorePermit<'a>, RequestHandle<RoleClient>);

/// Sends a call when a permit is free, within the call's timeout.
async fn begin<'a>(
    link: &'a Link,
    raw: &str,
    arguments: JsonObject,
    meta: Option<JsonObject>,
    settings: &Settings,
) -> Result<Begun<'a>, String> {
    let mut params = CallToolRequestParams::new(raw.to_owned());
    params.arguments = Some(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut options = PeerRequestOptions::no_options();
    options.meta = meta.map(RequestMetaObject::from);
    let begun = async {
        let turn = link.turns.acquire().await;
        let turn = turn.expect("the semaphore is never closed");
        let sent = link.peer.send_cancellable_request(request, options).await;
        sent.map(|handle| (turn, handle))
            .map_err(|e| failed(&e, link))
    };
    tokio::select! {
        begun = timeout(settings.timeout, begun) => begun.unwrap_or_else(|_| Err(late(settings))),
        () = link.gone.cancelled() => Err(gone(link)),
    }
}

/// Calls a tool.
pub(crate) async fn call(
    link: &Link,
    tasks: &TaskTracker,
    wanted: Wanted<'_>,
    caller: &dyn Caller,
) -> Result<CallToolResult, String> {
    let Wanted {
        settings,
        raw,
        arguments,
        meta,
        conversation,
    } = wanted;
    let silence = settings.timeout;
    let (_turn, mut handle) = begin(link, raw, arguments, meta, settings).await?;
    let (token, id) = (handle.progress_token.0.clone(), handle.id.clone());
    let (mut heard, _listening) = link.calls.listen(token, id.clone(), conversation);
    let mut cancel = CancelOnDrop {
        peer: &link.peer,
        tasks,
        id: Some(id),
        why: "the caller ended",
    };
    let mut until = Instant::now() + silence;
    let mut at_most = Instant::now() + silence * MAX_TURNS;
    let (mut told, mut questions) = (None, 0);
    loop {
        tokio::select! {
            biased;
            Some(heard) = heard.recv() => match heard {
                Heard::Progress(params) => {
                    until = Instant::now() + silence;
                    let due = told.is_none_or(|told: Instant| told.elapsed() >= TELL_EVERY);
                    if due || is_done(&params) {
                        told = Some(Instant::now());
                        caller.progress(progress(params));
                    }
                }
                Heard::Question { answer, .. } if questions >= MAX_QUESTIONS => {
                    // The server may have cancelled the question.
                    let _ = answer.send(Answered::Decline);
                }
                Heard::Question { message, schema, answer } => {
                    questions += 1;
                    let asked = Instant::now();
                    let server = &settings.name;
                    let answered = answered(link, server, &message, &schema, caller).await?;
                    let _ = answer.send(answered);
                    until = Instant::now() + silence;
                    at_most += asked.elapsed();
                }
            },
            // Handle the answer after the events that precede it.
            answer = &mut handle.rx => {
                cancel.id = None;
                return match answer {
                    Err(_) | Ok(Err(ServiceError::TransportClosed)) => Err(closed(link).await),
                    Ok(answer) => result(answer.map_err(|e| failed(&e, link))?),
                };
            }
            () = link.gone.cancelled() => {
                cancel.id = None;
                return Err(gone(link));
            }
            () = sleep_until(until.min(at_most)) => {
                cancel.why = "timeout";
                return Err(late(settings));
            }
        }
    }
}

fn late(settings: &Settings) -> String {
    let (secs, name) = (settings.timeout.as_secs(), &settings.name);
    format!("no answer within {secs} s: the call was cancelled (timeout_secs of [mcp.{name}])")
}

/// The reason why the connection ended during a call.
fn gone(link: &Link) -> String {
    if let Some(tokens) = link.tokens.as_ref().filter(|tokens| tokens.is_refused()) {
        return tokens.wanted();
    }
    let why = link.over.get().map(|why| format!(" ({why})"));
    let why = why.unwrap_or_default();
    format!("the server ended before it answered{why}; the call may have taken effect")
}

/// Waits for the reason, since the library reports the end of a connection before it is known.
async fn closed(link: &Link) -> String {
    // Immediate, except for a program that closed its pipes and continues to run.
    let _ = timeout(TOLD_WITHIN, link.gone.cancelled()).await;
    gone(link)
}

/// Asks a person as long as the server can accept the answer.
async fn answered(
    link: &Link,
    server: &str,
    message: &str,
    schema: &Value,
    caller: &dyn Caller,
) -> Result<Answered, String> {
    tokio::select! {
        answered = elicit::ask(server, message, schema, caller) => Ok(answered),
        () = link.gone.cancelled() => Err(gone(link)),
    }
}

fn is_done(params: &ProgressNotificationParam) -> bool {
    params.total.is_some_and(|total| params.progress >= total)
}

fn progress(params: ProgressNotificationParam) -> Progress {
    let mut message = params.message.unwrap_or_default();
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    Progress {
        done: params.progress,
        total: params.total,
        message,
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "any other result is an error"
)]
fn result(answer: ServerResult) -> Result<CallToolResult, String> {
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        // Results without known fields, such as an empty object.
        ServerResult::EmptyResult(_) => Ok(CallToolResult::success(Vec::new())),
        ServerResult::CustomResult(custom) => serde_json::from_value(custom.0)
            .map_err(|e| format!("its answer is not a tool result: {e}")),
        _ => Err("its answer is not a tool result".into()),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add variants, whose text suffices"
)]
fn failed(error: &ServiceError, link: &Link) -> String {
    match error {
        ServiceError::TransportSend(error) if wants_login(&*error.error) => match &link.tokens {
            Some(tokens) => tokens.wanted(),
            None => "the server refused the credentials of its headers".into(),
        },
        ServiceError::McpError(error) => format!("the server refused: {}", error.message),
        ServiceError::TransportClosed => gone(link),
        ServiceError::TransportSend(error) => {
            format!(
                "the server cannot be reached: {}",
                crate::http::chain(&*error.error)
            )
        }
        other => other.to_string(),
    }
}

/// Whether one of the causes is a refusal for lack of authorization.
fn wants_login(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .into_iter()
        .any(|error| error.is::<AuthRequiredError>())
}
