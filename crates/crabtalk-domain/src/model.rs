//! The port for language models (MODEL-1).

use crate::tool::ToolSpec;
use crate::{BoxFuture, BoxStream, History, Message, Thinking, ToolCall, Usage};
use std::sync::Arc;
use std::time::Duration;

/// The caller's constraint on tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Required,
    /// The model must call this tool.
    Named(String),
}

/// One model call. Cheap to clone, so that it can be retried.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model's name; empty for the active one.
    pub model: String,
    /// Models to try in order when `model` fails.
    pub fallback: Vec<String>,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation.
    pub history: History,
    /// Context for this run only (RUN-3).
    pub injected: Arc<Vec<Message>>,
    /// Index in `history` before which `injected` is inserted.
    pub injected_at: usize,
    /// A final message that is not part of the conversation, for instance the
    /// compaction instruction.
    pub closing: Option<Arc<Message>>,
    /// Whether guests have spoken, so that speakers are tagged (RUN-2).
    pub has_guests: bool,
    /// Tools on offer, in a stable order.
    pub tools: Arc<Vec<Arc<ToolSpec>>>,
    /// The caller's constraint on tool calls.
    pub tool_choice: ToolChoice,
    /// Whether to ask for reasoning.
    pub thinking: bool,
}

impl Request {
    /// Creates a request with a system prompt and a history only.
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

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    Done,
    /// The model waits for tool results.
    ToolCalls,
    /// The output limit was reached.
    Length,
    /// The provider's filter cut the answer off.
    ContentFilter,
}

/// A piece of a streamed answer. A stream that ends without `Stop` was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// The provider and model that answer; always the first chunk of an answer.
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
    /// Signature of the reasoning since the last signature.
    ThinkingSignature(String),
    /// A tool call begins.
    ToolCallStart {
        /// Position of the call in the answer; argument fragments refer to it.
        index: u32,
        /// The provider's id, or a generated one.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A fragment of a call's arguments.
    ToolCallArguments {
        /// Position of the call in the answer.
        index: u32,
        /// Text to append to the arguments.
        fragment: String,
    },
    /// Token counts; the last ones replace earlier ones.
    Usage(Usage),
    /// The end of a complete answer.
    Stop(StopReason),
}

/// A whole answer, assembled from chunks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The text.
    pub content: String,
    /// The reasoning.
    pub thinking: Vec<Thinking>,
    /// The requested tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// The tokens of the call.
    pub usage: Option<Usage>,
    /// The reason for the end; `None` while the answer is incomplete.
    pub stop: Option<StopReason>,
}

impl Response {
    /// Adds a chunk. Only this method assembles answers from chunks.
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

/// A failed model call. Never contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The failure, the provider and the remedy.
    pub message: String,
}

impl Error {
    /// Creates an error of a kind with a message.
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
    /// The model does not exist; the message names those that do.
    UnknownModel,
    /// The configuration does not permit the call, for instance without a key.
    NotConfigured,
    /// The provider rejected the credentials (401, 403).
    Refused,
    /// The provider rejected the request (other 4xx).
    Invalid,
    /// The request is longer than the model's context; compaction helps.
    TooLong,
    /// The provider limits the rate of requests (429).
    RateLimited {
        /// The delay that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// The provider failed (5xx).
    Provider {
        /// The delay that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// The connection was refused, or the host name does not resolve.
    Unreachable,
    /// The first byte did not arrive in time.
    Timeout,
    /// The stream stalled (MODEL-4: 504).
    Stalled,
    /// The stream ended early or is invalid (MODEL-4: 502).
    Malformed,
    /// The provider's filter rejected the request or the answer.
    Filtered,
    /// A daily budget is exhausted (MODEL-7: 402).
    Budget,
    /// The answer exceeds a limit (MODEL-9: 422).
    Limit,
}

impl ErrorKind {
    /// Whether a retry of the call may succeed (MODEL-3).
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

    /// The code on the wire (WIRE-3).
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

    /// Returns the whole answer.
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

    /// Size of the model's context window in tokens, if known.
    fn context_limit(&self, model: &str) -> Option<u64>;

    /// The model to which an empty name refers.
    fn active_model(&self) -> String;

    /// Announces a request to this model, so that connections can be opened in advance
    /// (MODEL-8). Returns at once, reports no failure and costs nothing.
    fn expect(&self, model: &str) {
        let _ = model;
    }
}
