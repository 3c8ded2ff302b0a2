//! A [`Model`] that plays a script and checks every request.
//! Invariant: a request that a real provider would refuse is refused here, by
//! the rules of [`history_problems`], so that no test passes on a history that
//! would fail in practice.

use crabtalk_domain::model::{Chunk, Error, ErrorKind, Model, Request, StopReason};
use crabtalk_domain::{BoxStream, Message, Role, Usage};
use futures_util::stream;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// A step of a reply.
#[derive(Debug, Clone)]
pub enum Step {
    /// Streams a chunk.
    Send(Chunk),
    /// Streams a whole tool call with a generated id, unique in this model.
    Call {
        /// The tool.
        name: String,
        /// The arguments as text.
        arguments: String,
    },
    /// Waits for [`ScriptedModel::release`].
    Hang,
    /// Waits for this time.
    Pause(Duration),
    /// Fails and ends the stream.
    Fail(Error),
}

/// One answer of a [`ScriptedModel`].
#[derive(Debug, Clone)]
pub enum Reply {
    /// Plays these steps after `Answering`. Without a final `Stop`, the answer was cut off.
    Steps(Vec<Step>),
    /// Fails before any content.
    Error(Error),
}

impl Reply {
    /// Answers with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::pieces([text])
    }

    /// Answers with a text in several chunks.
    pub fn pieces<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let mut steps: Vec<Step> = pieces
            .into_iter()
            .map(|piece| Step::Send(Chunk::Text(piece.into())))
            .collect();
        steps.push(Step::Send(Chunk::Stop(StopReason::Done)));
        Self::Steps(steps)
    }

    /// Calls a tool.
    pub fn tool(name: impl Into<String>, arguments: Value) -> Self {
        Self::tools([(name, arguments)])
    }

    /// Calls several tools in one step.
    pub fn tools<T: Into<String>>(calls: impl IntoIterator<Item = (T, Value)>) -> Self {
        let mut steps: Vec<Step> = calls
            .into_iter()
            .map(|(name, arguments)| Step::Call {
                name: name.into(),
                arguments: arguments.to_string(),
            })
            .collect();
        steps.push(Step::Send(Chunk::Stop(StopReason::ToolCalls)));
        Self::Steps(steps)
    }

    /// Stalls until released, then answers `released`.
    pub fn hang() -> Self {
        Self::text("released").after([Step::Hang])
    }

    /// Answers with a text, then stalls until released.
    pub fn hang_after(text: impl Into<String>) -> Self {
        Self::Steps(vec![
            Step::Send(Chunk::Text(text.into())),
            Step::Hang,
            Step::Send(Chunk::Stop(StopReason::Done)),
        ])
    }

    /// Answers with a text and ends without a `Stop`.
    pub fn cut(text: impl Into<String>) -> Self {
        Self::Steps(vec![Step::Send(Chunk::Text(text.into()))])
    }

    /// Adds reasoning before the reply; the signature may be empty.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.after([
            Step::Send(Chunk::Thinking(text.into())),
            Step::Send(Chunk::ThinkingSignature(signature.into())),
        ])
    }

    /// Adds usage before the reply.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.after([Step::Send(Chunk::Usage(usage))])
    }

    /// Adds text before the reply.
    #[must_use]
    pub fn saying(self, text: impl Into<String>) -> Self {
        self.after([Step::Send(Chunk::Text(text.into()))])
    }

    /// Adds steps before the reply.
    #[must_use]
    pub fn after(self, first: impl IntoIterator<Item = Step>) -> Self {
        match self {
            Self::Steps(rest) => Self::Steps(first.into_iter().chain(rest).collect()),
            Self::Error(error) => {
                Self::Steps(first.into_iter().chain([Step::Fail(error)]).collect())
            }
        }
    }
}

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

/// Counters that tests may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests so far.
    pub requests: usize,
    /// Streams that reached a [`Step::Hang`] so far.
    pub hung: usize,
    /// Streams that were dropped before their end.
    pub dropped: usize,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    requests: Vec<Request>,
    expected: Vec<String>,
    problems: Vec<String>,
    calls: u64,
}

struct Shared {
    state: Mutex<State>,
    answer: Option<Box<Answer>>,
    release: Semaphore,
    progress: watch::Sender<Counters>,
    name: String,
    context_limit: Option<u64>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plays replies in order; clones share the script.
#[derive(Clone)]
pub struct ScriptedModel(Arc<Shared>);

impl ScriptedModel {
    /// Creates a model with these replies, one per request, followed by errors.
    pub fn new(replies: Vec<Reply>) -> Self {
        Self::build(
            State {
                replies: replies.into(),
                ..State::default()
            },
            None,
        )
    }

    /// Creates a model whose replies a function decides.
    pub fn answering(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::build(State::default(), Some(Box::new(answer)))
    }

    fn build(state: State, answer: Option<Box<Answer>>) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            answer,
            release: Semaphore::new(0),
            progress: watch::Sender::default(),
            name: "scripted".into(),
            context_limit: None,
        }))
    }

    /// Sets the context size in tokens. Call it before cloning.
    #[must_use]
    pub fn with_context_limit(mut self, tokens: u64) -> Self {
        let shared = Arc::get_mut(&mut self.0).expect("set up before it is cloned");
        shared.context_limit = Some(tokens);
        self
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, reply: Reply) {
        self.0.state().replies.push_back(reply);
    }

    /// Continues the stream that hung first, or the next one that hangs.
    pub fn release(&self) {
        self.0.release.add_permits(1);
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.0.state().requests.clone()
    }

    /// The names of the models that were announced for a call so far.
    pub fn expected(&self) -> Vec<String> {
        self.0.state().expected.clone()
    }

    /// The problems of the requests so far.
    pub fn problems(&self) -> Vec<String> {
        self.0.state().problems.clone()
    }

    /// The current counters.
    pub fn progress(&self) -> Counters {
        *self.0.progress.borrow()
    }

    /// Waits for a state, for instance `|p| p.hung == 1`.
    pub async fn until(&self, reached: impl FnMut(&Counters) -> bool) {
        let mut progress = self.0.progress.subscribe();
        progress
            .wait_for(reached)
            .await
            .expect("the sender lives in self");
    }

    fn next_reply(&self, request: &Request) -> Reply {
        let problems = request_problems(request);
        let answer = self.0.answer.as_ref().map(|answer| answer(request));
        let mut state = self.0.state();
        state.requests.push(request.clone());
        if !problems.is_empty() {
            let message = format!("the scripted model refuses: {}", problems.join("; "));
            state.problems.extend(problems);
            return Reply::Error(Error::new(ErrorKind::Invalid, message));
        }
        answer
            .or_else(|| state.replies.pop_front())
            .unwrap_or_else(|| {
                Reply::Error(Error::new(
                    ErrorKind::Invalid,
                    "the script has no reply left",
                ))
            })
    }
}

impl Model for ScriptedModel {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Chunk, Error>> {
        let reply = self.next_reply(&request);
        self.0.progress.send_modify(|p| p.requests += 1);
        let model = if request.model.is_empty() {
            self.0.name.clone()
        } else {
            request.model.clone()
        };
        let answering = Chunk::Answering {
            provider: "scripted".into(),
            model,
        };
        let steps = match reply {
            Reply::Steps(steps) => [Step::Send(answering)].into_iter().chain(steps).collect(),
            Reply::Error(error) => vec![Step::Fail(error)],
        };
        let playing = Playing {
            shared: self.0.clone(),
            steps: steps.into(),
            ready: VecDeque::new(),
            calls: 0,
            finished: false,
        };
        Box::pin(stream::unfold(playing, |mut playing| async move {
            let item = playing.next().await?;
            Some((item, playing))
        }))
    }

    fn context_limit(&self, _model: &str) -> Option<u64> {
        self.0.context_limit
    }

    fn active_model(&self) -> String {
        self.0.name.clone()
    }

    fn expect(&self, model: &str) {
        self.0.state().expected.push(model.to_owned());
    }
}

/// A reply that is being streamed.
struct Playing {
    shared: Arc<Shared>,
    steps: VecDeque<Step>,
    ready: VecDeque<Chunk>,
    calls: u32,
    finished: bool,
}

impl Playing {
    async fn next(&mut self) -> Option<Result<Chunk, Error>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            let Some(step) = self.steps.pop_front() else {
                self.finished = true;
                return None;
            };
            match step {
                Step::Send(chunk) => return Some(Ok(chunk)),
                Step::Call { name, arguments } => self.call(name, arguments),
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::Hang => {
                    self.shared.progress.send_modify(|p| p.hung += 1);
                    self.shared
                        .release
                        .acquire()
                        .await
                        .expect("never closed")
                        .forget();
                }
                Step::Fail(error) => {
                    self.steps.clear();
                    self.finished = true;
                    return Some(Err(error));
                }
            }
        }
    }

    fn call(&mut self, name: String, arguments: String) {
        let id = {
            let mut state = self.shared.state();
            state.calls += 1;
            format!("call-{}", state.calls)
        };
        let index = self.calls;
        self.calls += 1;
        self.ready
            .push_back(Chunk::ToolCallStart { index, id, name });
        self.ready.push_back(Chunk::ToolCallArguments {
            index,
            fragment: arguments,
        });
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if !self.finished {
            self.shared.progress.send_modify(|p| p.dropped += 1);
        }
    }
}

/// The reasons why a provider would refuse a request, and contents that must never
/// reach one.
pub fn request_problems(request: &Request) -> Vec<String> {
    let messages: Vec<&Message> = request.messages().collect();
    let mut problems = history_problems(&messages);
    if request.history.iter().any(|m| m.auto_injected) {
        problems.push("the history holds an injected message".into());
    }
    if messages.last().is_some_and(|m| m.role == Role::Assistant) {
        problems.push("the last message is the assistant's".into());
    }
    let framed = |m: &Message| m.role == Role::Assistant && m.content.starts_with("<from agent=");
    if request.history.iter().any(|m| framed(m)) {
        problems.push("the history holds a <from> tag that was already rendered".into());
    }
    problems
}

/// Violations of the rules that all providers share: the user speaks first,
/// every call is answered at once, every result has its call.
pub fn history_problems(messages: &[&Message]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut called: BTreeSet<&str> = BTreeSet::new();
    match messages.first() {
        None => problems.push("there is no message".into()),
        Some(first) if first.role != Role::User => {
            problems.push(format!(
                "the first message is of role {}",
                first.role.as_str()
            ));
        }
        Some(_) => {}
    }
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            if !open.remove(message.tool_call_id.as_str()) {
                problems.push(format!(
                    "message {at}: result of no call {:?}",
                    message.tool_call_id
                ));
            }
            continue;
        }
        for id in std::mem::take(&mut open) {
            problems.push(format!("message {at}: call {id:?} has no result"));
        }
        for call in &message.tool_calls {
            if call.id.is_empty() || call.name.is_empty() {
                problems.push(format!("message {at}: a call without id or name"));
            } else if !called.insert(&call.id) {
                problems.push(format!("message {at}: call id {:?} twice", call.id));
            } else {
                open.insert(&call.id);
            }
        }
    }
    problems.extend(
        open.iter()
            .map(|id| format!("call {id:?} has no result at the end")),
    );
    problems
}

#[cfg(test)]
mod tests;
