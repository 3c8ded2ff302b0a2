//! Writes requests for Bedrock's Converse API.
//! Invariants: only reasoning that Claude signed goes back; marks for the cache
//! are set only for models that know them, since others refuse the request.

use crate::blocks::{self, blocks};
use crate::body::{self, arguments, strict_id};
use crate::claude::{self, Thinking};
use crate::known;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::turns;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Image, ImageType, Message, ToolCall, tool};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Nothing needs longer answers, and room for them counts against the context.
const MAX_OUTPUT: u64 = 32_000;

/// Stands for a result without words; a result must not be empty here.
const NO_WORDS: &str = "(no output)";

/// Claudes from before Bedrock cached for them.
const WITHOUT_CACHE: [&str; 6] = [
    "claude-v",
    "claude-instant",
    "claude-3-haiku",
    "claude-3-sonnet",
    "claude-3-opus",
    "claude-3-5-sonnet",
];

/// The parts of a request that a model's cache can keep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    Nothing,
    /// System prompt and messages.
    Text,
    /// Tools as well.
    Everything,
}

impl Cache {
    fn of(model_id: &str) -> Self {
        let name = known::bare(model_id);
        if name.starts_with("claude-") {
            if WITHOUT_CACHE.iter().any(|old| name.starts_with(old)) {
                Self::Nothing
            } else {
                Self::Everything
            }
        } else if name.starts_with("amazon.nova") {
            Self::Text
        } else {
            Self::Nothing
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Converse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    inference_config: Option<InferenceConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<OfClaude>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    max_tokens: u64,
}

#[derive(Serialize)]
struct OfClaude {
    thinking: Thinking,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Tool<'a> {
    ToolSpec(Spec<'a>),
    CachePoint(Point),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    name: &'a str,
    /// An empty one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    input_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Schema<'a> {
    json: &'a tool::Schema,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Choice<'a> {
    Any {},
    Tool { name: &'a str },
}

/// Everything up to it will be the same next time.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Point {
    Default,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Block<'a> {
    Text(Cow<'a, str>),
    ReasoningContent(Reasoning<'a>),
    Image {
        format: &'static str,
        source: ImageSource<'a>,
    },
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, RawValue>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
    },
    CachePoint(Point),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Reasoning<'a> {
    ReasoningText {
        text: Cow<'a, str>,
        signature: &'a str,
    },
    RedactedContent(&'a str),
}

#[derive(Serialize)]
struct ImageSource<'a> {
    bytes: Cow<'a, str>,
}

impl<'a> blocks::Block<'a> for Block<'a> {
    fn text(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }

    fn thought(text: &'a str, signature: Signature<'a>) -> Option<Self> {
        match signature {
            Signature::Claude(signature) => Some(Reasoning::ReasoningText {
                text: text.into(),
                signature,
            }),
            Signature::BedrockRedacted(data) => Some(Reasoning::RedactedContent(data)),
            Signature::Redacted(_)
            | Signature::GoogleCall(..)
            | Signature::GoogleText(_)
            | Signature::Missing => None,
        }
        .map(Self::ReasoningContent)
    }

    fn image(image: &'a Image) -> Self {
        Self::Image {
            format: match image.media_type() {
                ImageType::Png => "png",
                ImageType::Jpeg => "jpeg",
                ImageType::Gif => "gif",
                ImageType::Webp => "webp",
            },
            source: ImageSource {
                bytes: image.base64().into(),
            },
        }
    }

    fn call(call: &'a ToolCall) -> Self {
        Self::ToolUse {
            tool_use_id: strict_id(&call.id),
            name: &call.name,
            input: arguments(call),
        }
    }

    fn result(message: &'a Message, content: Cow<'a, str>, images: Vec<Self>) -> Self {
        let text = match content.trim().is_empty() {
            true => NO_WORDS.into(),
            false => content,
        };
        Self::ToolResult {
            tool_use_id: strict_id(&message.tool_call_id),
            content: std::iter::once(Self::text(text)).chain(images).collect(),
            status: message.is_error.then_some("error"),
        }
    }
}

/// The whole request body. The model is part of the address.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let cache = Cache::of(model_id);
    let point = || (cache != Cache::Nothing).then_some(Block::CachePoint(Point::Default));
    // Calls can only be forbidden by offering no tools.
    let with_tools = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
    let seen = sight.messages(request);
    let turns = turns(
        request,
        &seen,
        |message, _| blocks(message, request.has_guests, !with_tools),
        |blocks| blocks.extend(point()),
    );
    let messages = turns.into_iter().map(|turn| Turn {
        role: if turn.of_model { "assistant" } else { "user" },
        content: turn.parts,
    });
    let mut system = Vec::new();
    if !request.system.trim().is_empty() {
        system.push(Block::Text(Cow::from(&*request.system)));
        system.extend(point());
    }
    let output = known::output(model_id).map(|output| output.min(MAX_OUTPUT));
    let is_claude = known::bare(model_id).starts_with("claude-");
    let thinking = output
        .filter(|_| is_claude)
        .and_then(|output| claude::thinking(model_id, request, output));
    body::json(
        request,
        &Converse {
            inference_config: output.map(|max_tokens| InferenceConfig { max_tokens }),
            additional_model_request_fields: thinking.map(|thinking| OfClaude { thinking }),
            tool_config: with_tools.then(|| tool_config(request, cache)),
            system,
            messages: messages.collect(),
        },
    )
}

fn tool_config(request: &Request, cache: Cache) -> ToolConfig<'_> {
    let tools = request.tools.iter().map(|tool| {
        let description = tool.description.as_str();
        Tool::ToolSpec(Spec {
            name: &tool.name,
            description: (!description.trim().is_empty()).then(|| description.into()),
            input_schema: Schema {
                json: &tool.parameters,
            },
        })
    });
    let point = (cache == Cache::Everything).then_some(Tool::CachePoint(Point::Default));
    ToolConfig {
        tools: tools.chain(point).collect(),
        tool_choice: match &request.tool_choice {
            ToolChoice::Auto | ToolChoice::None => None,
            ToolChoice::Required => Some(Choice::Any {}),
            ToolChoice::Named(name) => Some(Choice::Tool { name }),
        },
    }
}
