//! Writes requests for Anthropic's Messages API.
//! Invariant: only thinking that Claude signed goes back.

use crate::blocks::{self, blocks};
use crate::body::{self, arguments, strict_id};
use crate::claude::{self, Thinking};
use crate::known;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::turns;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::Schema;
use crabtalk_domain::{Image, Message, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Written at most by a model that is not known.
const DEFAULT_OUTPUT: u64 = 8_192;
/// Nothing needs longer answers, and room for them counts against the context.
const MAX_OUTPUT: u64 = 32_000;

/// Marks what everything up to will be the same next time.
type Mark = Option<CacheControl>;

const MARK: Mark = Some(CacheControl::Ephemeral);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
struct Messages<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: Cow<'a, str>,
    input_schema: &'a Schema,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Mark,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Choice<'a> {
    None,
    Any,
    Tool { name: &'a str },
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Thinking {
        thinking: Cow<'a, str>,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ImageSource<'a> {
    Base64 {
        media_type: &'static str,
        data: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl Block<'_> {
    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolUse { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = MARK,
            Self::Thinking { .. } | Self::RedactedThinking { .. } => {}
        }
    }
}

impl<'a> blocks::Block<'a> for Block<'a> {
    fn text(text: Cow<'a, str>) -> Self {
        Self::Text {
            text,
            cache_control: None,
        }
    }

    fn thought(text: &'a str, signature: Signature<'a>) -> Option<Self> {
        match signature {
            Signature::Claude(signature) => Some(Self::Thinking {
                thinking: text.into(),
                signature,
            }),
            Signature::Redacted(data) => Some(Self::RedactedThinking { data }),
            Signature::GoogleCall(..)
            | Signature::GoogleText(_)
            | Signature::BedrockRedacted(_)
            | Signature::Missing => None,
        }
    }

    fn image(image: &'a Image) -> Self {
        Self::Image {
            source: ImageSource::Base64 {
                media_type: image.media_type().as_str(),
                data: image.base64().into(),
            },
            cache_control: None,
        }
    }

    fn call(call: &'a ToolCall) -> Self {
        Self::ToolUse {
            id: strict_id(&call.id),
            name: &call.name,
            input: arguments(call),
            cache_control: None,
        }
    }

    fn result(message: &'a Message, content: Cow<'a, str>, images: Vec<Self>) -> Self {
        let text = (!content.trim().is_empty()).then_some(content);
        let content = if images.is_empty() {
            text.map(Content::Text)
        } else {
            let text = text.map(Self::text);
            Some(Content::Blocks(text.into_iter().chain(images).collect()))
        };
        Self::ToolResult {
            tool_use_id: strict_id(&message.tool_call_id),
            content,
            is_error: message.is_error,
            cache_control: None,
        }
    }
}

pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let output = known::output(model_id)
        .unwrap_or(DEFAULT_OUTPUT)
        .min(MAX_OUTPUT);
    let has_system = !request.system.trim().is_empty();
    let as_text = request.tools.is_empty();
    let seen = sight.messages(request);
    let turns = turns(
        request,
        &seen,
        |message, _| blocks(message, request.has_guests, as_text),
        |blocks| blocks.last_mut().into_iter().for_each(Block::mark),
    );
    let messages = turns.into_iter().map(|turn| Turn {
        role: if turn.of_model { "assistant" } else { "user" },
        content: turn.parts,
    });
    body::json(
        request,
        &Messages {
            model: model_id,
            max_tokens: output,
            stream: true,
            thinking: claude::thinking(model_id, request, output),
            tools: tools(request),
            tool_choice: choice(request),
            system: has_system.then(|| {
                [Block::Text {
                    text: Cow::from(&*request.system),
                    cache_control: MARK,
                }]
            }),
            messages: messages.collect(),
        },
    )
}

fn tools(request: &Request) -> Vec<Tool<'_>> {
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: Cow::from(tool.description.as_str()),
        input_schema: &tool.parameters,
        cache_control: None,
    });
    let mut tools: Vec<_> = tools.collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = MARK;
    }
    tools
}

fn choice(request: &Request) -> Option<Choice<'_>> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Required => Some(Choice::Any),
        ToolChoice::Named(name) => Some(Choice::Tool { name }),
    }
}
