//! Answers and errors in any format, for tests that apply the
//! same cases to all formats.

pub use super::figures::{ANSWER_TOKENS, CACHED_TOKENS, PROMPT_TOKENS};
use super::{Action, Format, Reply, anthropic, bedrock, google, openai};

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text in pieces.
    Text(Vec<String>),
    /// Reasoning, with a signature if the format has one.
    Thinking {
        /// The thought.
        text: String,
        /// The signature that must be returned.
        proof: String,
    },
    /// A call of a tool.
    Call {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments as JSON text, in pieces.
        arguments: Vec<String>,
    },
}

impl Part {
    /// Text in pieces.
    pub fn text(pieces: &[&str]) -> Self {
        Self::Text(owned(pieces))
    }

    /// Reasoning.
    pub fn thinking(text: &str, proof: &str) -> Self {
        Self::Thinking {
            text: text.into(),
            proof: proof.into(),
        }
    }

    /// A call whose arguments come in pieces.
    pub fn call(id: &str, name: &str, arguments: &[&str]) -> Self {
        Self::Call {
            id: id.into(),
            name: name.into(),
            arguments: owned(arguments),
        }
    }
}

fn owned(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| (*piece).into()).collect()
}

/// The stop reason of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The answer is complete.
    Done,
    /// The answer ends with tool calls.
    Calls,
    /// The answer reached its length limit.
    Length,
    /// A filter stopped the answer.
    Filtered,
}

/// A complete answer.
pub fn answer(format: Format, parts: &[Part], end: FinishReason) -> Reply {
    match format {
        Format::OpenAi => openai::answer(parts, end),
        Format::Anthropic => anthropic::answer(parts, end),
        Format::Google => google::answer(parts, end),
        Format::Bedrock => bedrock::answer(parts, end),
    }
}

/// A complete answer of a server that does not stream.
pub fn whole(format: Format, text: &str) -> Reply {
    let body = match format {
        Format::OpenAi => openai::whole(text),
        Format::Anthropic => anthropic::whole(text),
        Format::Google => google::whole(text),
        Format::Bedrock => bedrock::whole(text),
    };
    Reply::json(200, &body)
}

/// An error status, in the provider's format.
pub fn refusal(format: Format, status: u16, class: &str, message: &str) -> Reply {
    match format {
        Format::OpenAi => Reply::error(status, class, message),
        Format::Anthropic => anthropic::refusal(status, class, message),
        Format::Google => google::refusal(status, class, message),
        Format::Bedrock => bedrock::refusal(status, class, message),
    }
}

/// An error event within an answer.
pub fn failure(format: Format, class: &str, message: &str) -> Action {
    match format {
        Format::OpenAi => Action::Event(
            serde_json::json!({"error": {"message": message, "type": class}}).to_string(),
        ),
        Format::Anthropic => anthropic::error(class, message),
        Format::Google => google::failure(message),
        Format::Bedrock => bedrock::exception(class, message),
    }
}

/// A malformed event.
pub fn nonsense(format: Format) -> Action {
    match format {
        Format::OpenAi | Format::Anthropic | Format::Google => Action::Event("{oops".into()),
        Format::Bedrock => Action::Bytes(bedrock::frame("contentBlockDelta", "{oops")),
    }
}
