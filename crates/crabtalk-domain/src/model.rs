//! The port behind which language models live (MODEL-1).

use crate::tool::ToolSpec;
use crate::{BoxFuture, BoxStream, History, Message, Thinking, ToolCall, Usage};
use std::sync::Arc;
use std::time::Duration;

/// Whether and which tool the model must call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Named(String),
}

/// One model call. Cheap to clone, so that it can be retried.
#[derive(Debug, Clone)]
pub struct Request {
    /// Model name; empty for the active one.
    pub model: String,
    /// Models to try in order when that one fails.
    pub fallback: Vec<String>,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation.
    pub history: History,
    /// Context for this run only (RUN-3).
    pub injected: Arc<Vec<Message>>,
    /// Index in `history` before which `injected` stands.
    pub injected_at: usize,
    /// A last message that is not part of the conversation, for instance the
    /// compaction instruction.
    pub closing: Option<Arc<Message>>,
    /// Whether guests speak in it, so that speakers are tagged (RUN-2).
    pub has_guests: bool,
    /// Tools on offer, in a stable order.
    pub tools: Arc<Vec<Arc<ToolSpec>>>,
    /// Whether one must be called.
    pub tool_choice: ToolChoice,
    /// Whether reasoning is wanted.
    pub thinking: bool,
}

impl Request {
    /// A request of a history and nothing else.
    pub fn new(system: impl Into<Arc<str>>, history: impl Into<History>) -> Self {
        let history = history.into();
        Self {
            model: String::new(),
            fallback: Vec::new(),
            system: system.into(),
            injected: Arc::default(),
            injected_at: history.len(),
            history,
            closing: None,
            has_guests: false,
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            thinking: false,
        }
    }

    /// Every message in the order in which the model reads it.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        let at = self.injected_at.min(self.history.len());
        let (before, after) = self.history.split_at(at);
        before
            .iter()
            .map(Arc::as_ref)
            .chain(self.injected.iter())
            .chain(after.iter().map(Arc::as_ref))
            .chain(self.closing.as_deref())
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It had said everything.
    Done,
    /// It wants tools called.
    ToolCalls,
    /// It ran into its output limit.
    Length,
    /// The provider's filter cut it.
    ContentFilter,
}

/// A piece of a streamed answer. A stream that ends without `Stop` was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Who answers; comes first.
    Answering {
        /// The provider's configured name.
        provider: String,
        /// The model's configured name.
        model: String,
    },
    /// A notice before the answer, such as a retry or a change of the model.
    /// Not part of the answer.
    Notice(String),
    /// Text.
    Text(String),
    /// Reasoning.
    Thinking(String),
    /// Proof of the reasoning since the last signature.
    ThinkingSignature(String),
    /// A tool call begins.
    ToolCallStart {
        /// Its place in the answer; fragments name it.
        index: u32,
        /// The provider's id, or one made up where it has none.
        id: String,
        /// The tool.
        name: String,
    },
    /// A piece of a call's argument text.
    ToolCallArguments {
        /// Which call.
        index: u32,
        /// What to append.
        fragment: String,
    },
    /// Figures; the last one counts.
    Usage(Usage),
    /// The answer is complete.
    Stop(StopReason),
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// Its text.
    pub content: String,
    /// Its reasoning.
    pub thinking: Vec<Thinking>,
    /// The calls it wants.
    pub tool_calls: Vec<ToolCall>,
    /// Its usage.
    pub usage: Option<Usage>,
    /// Why it stopped; `None` while incomplete.
    pub stop: Option<StopReason>,
}

impl Response {
    /// Takes in the next chunk. The one place where chunks become an answer.
    pub fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Answering { provider, model } => {
                self.provider = provider;
                self.model = model;
            }
            Chunk::Notice(_) => {}
            Chunk::Text(text) => self.content.push_str(&text),
            Chunk::Thinking(text) => match self.thinking.last_mut() {
                Some(block) if block.signature.is_empty() => block.text.push_str(&text),
                Some(_) | None => {
                    self.thinking.push(Thinking {
                        text,
                        signature: String::new(),
                    });
                }
            },
            Chunk::ThinkingSignature(signature) => match self.thinking.last_mut() {
                Some(block) if block.signature.is_empty() => block.signature = signature,
                Some(_) | None => {
                    self.thinking.push(Thinking {
                        text: String::new(),
                        signature,
                    });
                }
            },
            Chunk::ToolCallStart { index, id, name } => {
                let at = index as usize;
                if self.tool_calls.len() <= at {
                    self.tool_calls.resize_with(at + 1, ToolCall::default);
                }
                self.tool_calls[at].id = id;
                self.tool_calls[at].name = name;
            }
            Chunk::ToolCallArguments { index, fragment } => {
                if let Some(call) = self.tool_calls.get_mut(index as usize) {
                    call.arguments.push_str(&fragment);
                }
            }
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::Stop(stop) => self.stop = Some(stop),
        }
    }
}

/// What went wrong with a model call, said so that a person can act on it.
/// Never carries a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What happened, at which provider, and what to do.
    pub message: String,
}

impl Error {
    /// Joins both.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Kinds of failure that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such model; the message names those that exist.
    UnknownModel,
    /// The configuration does not allow the call, for instance a missing key.
    NotConfigured,
    /// The provider refused the credentials (401, 403).
    Refused,
    /// The provider found the request wrong (other 4xx).
    Invalid,
    /// The request is longer than the model's context; compaction helps.
    TooLong,
    /// Too many requests (429).
    RateLimited {
        /// When to come back, where the provider said so.
        retry_after: Option<Duration>,
    },
    /// The provider failed (5xx).
    Provider {
        /// When to come back, where the provider said so.
        retry_after: Option<Duration>,
    },
    /// Nothing listens, or the name does not resolve.
    Unreachable,
    /// Connect to first byte took too long.
    Timeout,
    /// The stream went silent (MODEL-4: 504).
    Stalled,
    /// The stream ended early or made no sense (MODEL-4: 502).
    Malformed,
    /// The provider's filter refused to answer.
    Filtered,
    /// A day's budget is spent (MODEL-7: 402).
    Budget,
    /// The answer was more than one may be (MODEL-9: 422).
    Limit,
}

impl ErrorKind {
    /// Whether the same call may succeed in a moment (MODEL-3).
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Provider { .. }
            | Self::Unreachable
            | Self::Timeout
            | Self::Stalled
            | Self::Malformed => true,
            Self::UnknownModel
            | Self::NotConfigured
            | Self::Refused
            | Self::Invalid
            | Self::TooLong
            | Self::Filtered
            | Self::Budget
            | Self::Limit => false,
        }
    }

    /// The wire's code (WIRE-3).
    pub fn code(self) -> u32 {
        match self {
            Self::UnknownModel => 404,
            Self::NotConfigured => 400,
            Self::RateLimited { .. } => 429,
            Self::Timeout | Self::Stalled => 504,
            Self::Budget => 402,
            Self::Filtered | Self::Limit => 422,
            Self::Refused
            | Self::Invalid
            | Self::TooLong
            | Self::Provider { .. }
            | Self::Unreachable
            | Self::Malformed => 502,
        }
    }
}

/// A language model, or a registry of them.
pub trait Model: Send + Sync {
    /// Streams an answer. Dropping the stream closes the connection.
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Chunk, Error>>;

    /// Gives a whole answer.
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, Error>> {
        let mut stream = self.stream(request);
        Box::pin(async move {
            let mut response = Response::default();
            while let Some(chunk) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
                response.push(chunk?);
            }
            Ok(response)
        })
    }

    /// Tokens that a model can read, where that is known.
    fn context_limit(&self, model: &str) -> Option<u64>;

    /// The model that an empty name means.
    fn active_model(&self) -> String;

    /// Announces a request to this model, so that connections can be opened
    /// ahead (MODEL-8). Returns at once, reports no failure and costs nothing.
    fn expect(&self, model: &str) {
        let _ = model;
    }
}
