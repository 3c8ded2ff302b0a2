//! Differences between the providers of the table.

use crate::support::{Bench, history, offer};
use crabtalk_domain::Message;
use crabtalk_domain::model::Request;
use crabtalk_model::{Kind, ModelConfig, Registry};
use crabtalk_testkit::scripted::{
    Action, FinishReason, Format, Part, Reply, Script, Server, answer,
};

/// A column of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Google,
    Bedrock,
    Azure,
    Ollama,
}

impl Dialect {
    pub(crate) const ALL: [Self; 6] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Google,
        Self::Bedrock,
        Self::Azure,
        Self::Ollama,
    ];

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::OpenAi => Kind::OpenAi,
            Self::Anthropic => Kind::Anthropic,
            Self::Google => Kind::Google,
            Self::Bedrock => Kind::Bedrock,
            Self::Azure => Kind::Azure,
            Self::Ollama => Kind::Ollama,
        }
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::OpenAi | Self::Azure | Self::Ollama => Format::OpenAi,
            Self::Anthropic => Format::Anthropic,
            Self::Google => Format::Google,
            Self::Bedrock => Format::Bedrock,
        }
    }

    /// A model whose rules are the strictest of the provider's.
    pub(crate) fn model_id(self) -> &'static str {
        match self {
            Self::OpenAi => "gpt-5",
            Self::Anthropic => "claude-sonnet-4-5",
            Self::Google => "gemini-3-pro",
            Self::Bedrock => "eu.anthropic.claude-sonnet-4-5-v1:0",
            Self::Azure => "my-deployment",
            Self::Ollama => "llama3.2:3b",
        }
    }

    /// Where a streaming call goes to.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Ollama => "/v1/chat/completions",
            Self::Anthropic => "/v1/messages",
            Self::Google => "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
            Self::Bedrock => "/model/eu.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream",
            Self::Azure => "/openai/v1/chat/completions",
        }
    }

    /// The header with the key, and what it says.
    pub(crate) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenAi | Self::Bedrock | Self::Ollama => ("authorization", "Bearer sk-planted"),
            Self::Anthropic => ("x-api-key", "sk-planted"),
            Self::Google => ("x-goog-api-key", "sk-planted"),
            Self::Azure => ("api-key", "sk-planted"),
        }
    }

    /// The provider's name of an error of this status.
    pub(crate) fn class(self, status: u16) -> &'static str {
        match (self.format(), status) {
            (Format::OpenAi, 401) => "invalid_api_key",
            (Format::OpenAi, 404) => "model_not_found",
            (Format::OpenAi, _) => "server_error",
            (Format::Anthropic, 401) => "authentication_error",
            (Format::Anthropic, 403) => "permission_error",
            (Format::Anthropic, 404) => "not_found_error",
            (Format::Anthropic, 529) => "overloaded_error",
            (Format::Anthropic, _) => "api_error",
            (Format::Google, 401) => "UNAUTHENTICATED",
            (Format::Google, 403) => "PERMISSION_DENIED",
            (Format::Google, 404) => "NOT_FOUND",
            (Format::Google, 500) => "INTERNAL",
            (Format::Google, _) => "UNAVAILABLE",
            (Format::Bedrock, 401) => "UnrecognizedClientException",
            (Format::Bedrock, 403) => "AccessDeniedException",
            (Format::Bedrock, 404) => "ResourceNotFoundException",
            (Format::Bedrock, 500) => "InternalServerException",
            (Format::Bedrock, _) => "ServiceUnavailableException",
        }
    }

    pub(crate) fn refusal(self, status: u16, message: &str) -> Reply {
        answer::refusal(self.format(), status, self.class(status), message)
    }

    pub(crate) fn answer(self, parts: &[Part], end: FinishReason) -> Reply {
        answer::answer(self.format(), parts, end)
    }

    pub(crate) fn text(self, pieces: &[&str]) -> Reply {
        self.answer(&[Part::text(pieces)], FinishReason::Done)
    }

    /// A registry of this provider alone, at the bare origin of a server.
    pub(crate) async fn bench(self, replies: impl IntoIterator<Item = Reply>) -> Bench {
        self.bench_with(replies, |_| {}).await
    }

    /// The same with models that `change` has changed.
    pub(crate) async fn bench_with(
        self,
        replies: impl IntoIterator<Item = Reply>,
        change: impl Fn(&mut ModelConfig),
    ) -> Bench {
        let server = Server::start(Script::new(self.format(), replies)).await;
        let mut config =
            crate::support::provider("p", self.kind(), &server.origin(), &["m", "other"]);
        for model in &mut config.models {
            *model = ModelConfig {
                id: self.model_id().into(),
                ..ModelConfig::new(&model.name)
            };
            change(model);
        }
        let registry = Registry::new(vec![config], None).expect("a good configuration");
        Bench { server, registry }
    }
}

/// Where in a reply a text is sent, as a number of actions up to there.
pub(crate) fn up_to(reply: &Reply, text: &str) -> usize {
    let has = |action: &Action| match action {
        Action::Event(data) | Action::Body(data) => data.contains(text),
        Action::Bytes(bytes) => String::from_utf8_lossy(bytes).contains(text),
        Action::Head { .. }
        | Action::Dribble(_)
        | Action::Flood(_)
        | Action::FloodHeld(_)
        | Action::Raw(_)
        | Action::RawFlood(_)
        | Action::SleepMs(_)
        | Action::Stall
        | Action::Cut => false,
    };
    1 + reply.actions.iter().position(has).expect("it is sent")
}

/// A request with tools.
pub(crate) fn with_tools(messages: Vec<Message>) -> Request {
    let mut asked = history(messages);
    offer(&mut asked, &["read", "bash"]);
    asked
}
