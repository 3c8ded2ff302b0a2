//! Writes requests.
//! Invariant: nothing comes between a call and its results, nor between those.

use crate::body::{self, arguments, says_something};
use crate::known;
use crate::sight::Sight;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Image, Message, Role};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Effort asked for when an agent's `thinking` is on: the middle of the scale.
const REASONING_EFFORT: &str = "medium";

/// Stands between results and a user's message where that is demanded.
const BRIDGE: &str = "I have the results.";

#[derive(Serialize)]
struct Chat<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Typed<Tool<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    messages: Vec<Said<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// `{"type": "function", "function": ..}`, as tools and calls are written.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Typed<T> {
    Function { function: T },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Mode(&'static str),
    Of(Typed<Named<'a>>),
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Said<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// Null beside calls, where nothing is said.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(flatten)]
    function: Typed<Function<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(serialize_with = "as_text")]
    arguments: Cow<'a, RawValue>,
}

fn as_text<S: Serializer>(json: &RawValue, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(json.get())
}

/// The whole request body.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let seen = sight.messages(request);
    let mut messages = Vec::with_capacity(seen.len() + 1);
    if !request.system.is_empty() {
        messages.push(Said::System {
            content: &request.system,
        });
    }
    push_messages(
        &mut messages,
        &seen,
        request.has_guests,
        known::is_strict(model_id),
    );
    let tools = request.tools.iter().map(|tool| Typed::Function {
        function: Tool {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        },
    });
    body::json(&Chat {
        model: model_id,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        reasoning_effort: request.thinking.then_some(REASONING_EFFORT),
        tools: tools.collect(),
        tool_choice: choice(request),
        messages,
    })
}

fn choice(request: &Request) -> Option<Choice<'_>> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(Choice::Mode("none")),
        ToolChoice::Required => Some(Choice::Mode("required")),
        ToolChoice::Named(name) => Some(Choice::Of(Typed::Function {
            function: Named { name },
        })),
    }
}

/// Results hold text alone, and nothing may come between them: their images
/// follow the last one in a message of their own. `strict`: whether
/// [`BRIDGE`] is wanted.
fn push_messages<'a>(
    out: &mut Vec<Said<'a>>,
    messages: &'a [Cow<'a, Message>],
    has_guests: bool,
    strict: bool,
) {
    let bridge = || Said::Assistant {
        content: Some(BRIDGE.into()),
        tool_calls: Vec::new(),
    };
    let show = |out: &mut Vec<Said<'a>>, images: &mut Vec<Part>| {
        if !images.is_empty() {
            out.extend(strict.then(bridge));
            let content = Content::Parts(std::mem::take(images));
            out.push(Said::User { content });
        }
    };
    let (mut images, mut follows_results) = (Vec::new(), false);
    for message in messages {
        if message.role != Role::Tool {
            show(out, &mut images);
        }
        if !says_something(message) {
            continue;
        }
        if strict && message.role == Role::User && follows_results {
            out.push(bridge());
        }
        follows_results = message.role == Role::Tool;
        out.push(said(message, has_guests));
        if message.role == Role::Tool {
            push_images(&mut images, message);
        }
    }
    show(out, &mut images);
}

fn said(message: &Message, has_guests: bool) -> Said<'_> {
    let content = message.rendered(has_guests);
    match message.role {
        Role::User if message.images.is_empty() => Said::User {
            content: Content::Text(content),
        },
        Role::User => {
            let text = Part::Text {
                text: content.into_owned(),
            };
            let text = (!message.content.trim().is_empty()).then_some(text);
            let parts = text.into_iter().chain(message.images.iter().map(shown));
            Said::User {
                content: Content::Parts(parts.collect()),
            }
        }
        Role::Assistant => Said::Assistant {
            content: (!content.is_empty() || message.tool_calls.is_empty()).then_some(content),
            tool_calls: message.tool_calls.iter().map(call).collect(),
        },
        Role::Tool => Said::Tool {
            tool_call_id: &message.tool_call_id,
            content,
        },
    }
}

fn call(call: &crabtalk_domain::ToolCall) -> Call<'_> {
    Call {
        id: &call.id,
        function: Typed::Function {
            function: Function {
                name: &call.name,
                arguments: arguments(call),
            },
        },
    }
}

fn push_images(out: &mut Vec<Part>, message: &Message) {
    if message.images.is_empty() {
        return;
    }
    let id = &message.tool_call_id;
    out.push(Part::Text {
        text: format!("[what the tool call {id} shows]"),
    });
    out.extend(message.images.iter().map(shown));
}

fn shown(image: &Image) -> Part {
    let url = format!("data:{};base64,{}", image.media_type(), image.base64());
    Part::ImageUrl {
        image_url: ImageUrl { url },
    }
}
