//! Writes requests for OpenAI's Chat Completions API.
//! Invariant: nothing comes between a call and its results, nor between those.

use crate::body::{self, arguments, says_something};
use crate::known;
use crate::sight::Sight;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::Schema;
use crabtalk_domain::{Image, Message, Role};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
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
    messages: Messages<'a>,
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
    description: Cow<'a, str>,
    parameters: &'a Schema,
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
        content: Cow<'a, str>,
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
    Text { text: Cow<'static, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: Cow<'static, str>,
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
    arguments: Cow<'a, str>,
}

pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let tools = request.tools.iter().map(|tool| Typed::Function {
        function: Tool {
            name: &tool.name,
            description: Cow::from(tool.description.as_str()),
            parameters: &tool.parameters,
        },
    });
    body::json(
        request,
        &Chat {
            model: model_id,
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
            },
            reasoning_effort: request.thinking.then_some(REASONING_EFFORT),
            tools: tools.collect(),
            tool_choice: choice(request),
            messages: Messages {
                request,
                sight,
                strict: known::is_strict(model_id),
            },
        },
    )
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

/// Encodes the messages one by one.
///
/// Results hold text alone, and nothing may come between them: their images
/// follow the last one in a separate message.
struct Messages<'a> {
    request: &'a Request,
    sight: &'a Sight<'a>,
    /// Whether [`BRIDGE`] is wanted.
    strict: bool,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(None)?;
        if !self.request.system.is_empty() {
            let content = Cow::from(&*self.request.system);
            out.serialize_element(&Said::System { content })?;
        }
        let (mut images, mut follows_results) = (Vec::new(), false);
        for message in self.request.messages() {
            let message = &*self.sight.of(message);
            if message.role != Role::Tool {
                self.show(&mut out, &mut images)?;
            }
            if !says_something(message) {
                continue;
            }
            if self.strict && message.role == Role::User && follows_results {
                out.serialize_element(&bridge())?;
            }
            follows_results = message.role == Role::Tool;
            out.serialize_element(&said(message, self.request.has_guests))?;
            if message.role == Role::Tool {
                push_images(&mut images, message);
            }
        }
        self.show(&mut out, &mut images)?;
        out.end()
    }
}

impl Messages<'_> {
    /// Shows the images of the results that were written last.
    fn show<S: SerializeSeq>(&self, out: &mut S, images: &mut Vec<Part>) -> Result<(), S::Error> {
        if images.is_empty() {
            return Ok(());
        }
        if self.strict {
            out.serialize_element(&bridge())?;
        }
        let content = Content::Parts(std::mem::take(images));
        out.serialize_element(&Said::User { content })
    }
}

fn bridge() -> Said<'static> {
    Said::Assistant {
        content: Some(BRIDGE.into()),
        tool_calls: Vec::new(),
    }
}

fn said(message: &Message, has_guests: bool) -> Said<'_> {
    let content = message.rendered(has_guests);
    match message.role {
        Role::User if message.images.is_empty() => Said::User {
            content: Content::Text(content),
        },
        Role::User => {
            let text = Part::Text {
                text: content.into_owned().into(),
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
                arguments: as_text(arguments(call)),
            },
        },
    }
}

fn as_text(json: Cow<'_, RawValue>) -> Cow<'_, str> {
    match json {
        Cow::Borrowed(json) => json.get().into(),
        Cow::Owned(json) => String::from(Box::<str>::from(json)).into(),
    }
}

fn push_images(out: &mut Vec<Part>, message: &Message) {
    if message.images.is_empty() {
        return;
    }
    let id = &message.tool_call_id;
    out.push(Part::Text {
        text: format!("[what the tool call {id} shows]").into(),
    });
    out.extend(message.images.iter().map(shown));
}

fn shown(image: &Image) -> Part {
    let url = format!("data:{};base64,{}", image.media_type(), image.base64());
    Part::ImageUrl {
        image_url: ImageUrl { url: url.into() },
    }
}
