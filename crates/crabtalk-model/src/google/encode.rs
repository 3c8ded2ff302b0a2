//! Writes requests for Google's Gemini API.
//! Invariants: every proof goes back in the part in which it came; a result
//! names the tool that gave it, because here results have no other address.

use super::{nests_images, thinks, wants_proofs};
use crate::body::{self, arguments};
use crate::decode::is_made_up;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::turns;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::Schema;
use crabtalk_domain::{Image, Message, Role, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The substitute for the signature of another model's call.
const NO_PROOF: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerateContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Vec<Turn<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    thinking_config: ThinkingConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: Cow<'a, str>,
    /// `parameters` would refuse most of what JSON schemas may say.
    parameters_json_schema: &'a Schema,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: CallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

/// One of its first four fields is there.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Answer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Picture<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Cow<'a, RawValue>,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Response<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Picture<'a> {
    mime_type: &'static str,
    data: Cow<'a, str>,
}

impl<'a> Part<'a> {
    fn image(image: &'a Image) -> Self {
        Self {
            inline_data: Some(Picture {
                mime_type: image.media_type().as_str(),
                data: image.base64().into(),
            }),
            ..Self::default()
        }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }
}

/// The whole request body. The model is part of the address.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let has_system = !request.system.trim().is_empty();
    let seen = sight.messages(request);
    let (proofs, nested) = (wants_proofs(model_id), nests_images(model_id));
    let parts = |message, calls| {
        let content = Message::rendered(message, request.has_guests);
        match message.role {
            Role::Tool => result(message, calls, content, nested),
            Role::User | Role::Assistant => parts(message, content, proofs),
        }
    };
    // Caching needs no marks here, only the same bytes.
    let turns = turns(request, &seen, parts, |_| {});
    let contents = turns.into_iter().map(|turn| Turn {
        role: if turn.of_model { "model" } else { "user" },
        parts: turn.parts,
    });
    let thinks = request.thinking && thinks(model_id);
    body::json(
        request,
        &GenerateContent {
            generation_config: thinks.then_some(GenerationConfig {
                thinking_config: ThinkingConfig {
                    include_thoughts: true,
                },
            }),
            tools: tools(request),
            tool_config: tool_config(request),
            system_instruction: has_system.then(|| Instruction {
                parts: [Part::text(&*request.system)],
            }),
            contents: contents.collect(),
        },
    )
}

fn tools(request: &Request) -> Option<[Tools<'_>; 1]> {
    let declarations = request.tools.iter().map(|tool| Declaration {
        name: &tool.name,
        description: Cow::from(tool.description.as_str()),
        parameters_json_schema: &tool.parameters,
    });
    let tools = Tools {
        function_declarations: declarations.collect(),
    };
    (!request.tools.is_empty()).then_some([tools])
}

fn tool_config(request: &Request) -> Option<ToolConfig<'_>> {
    let (mode, name) = match &request.tool_choice {
        _ if request.tools.is_empty() => return None,
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name.as_str()])),
    };
    Some(ToolConfig {
        function_calling_config: CallingConfig {
            mode,
            allowed_function_names: name,
        },
    })
}

/// Proofs of one message, by what they belong to.
#[derive(Default)]
struct Proofs<'a> {
    text: Option<&'a str>,
    calls: Vec<(u32, &'a str)>,
}

impl<'a> Proofs<'a> {
    fn of(message: &'a Message) -> Self {
        let mut proofs = Self::default();
        // The speaker cannot prove a guest's thinking.
        let own = message.agent.is_empty();
        for block in message.thinking.iter().filter(|_| own) {
            match Signature::read(&block.signature) {
                Signature::GoogleText(proof) => proofs.text = Some(proof),
                Signature::GoogleCall(number, proof) => proofs.calls.push((number, proof)),
                Signature::Claude(_)
                | Signature::Redacted(_)
                | Signature::BedrockRedacted(_)
                | Signature::Missing => {}
            }
        }
        proofs
    }

    fn of_call(&self, at: usize) -> Option<&'a str> {
        let found = self
            .calls
            .iter()
            .find(|(number, _)| usize::try_from(*number) == Ok(at));
        found.map(|(_, proof)| *proof)
    }
}

/// The parts of a message; none for an empty message, since empty
/// parts are refused. `with_proofs`: calls have to prove who made them.
fn parts<'a>(message: &'a Message, content: Cow<'a, str>, with_proofs: bool) -> Vec<Part<'a>> {
    let proofs = Proofs::of(message);
    let mut parts: Vec<Part<'a>> = message.images.iter().map(Part::image).collect();
    if !content.trim().is_empty() {
        parts.push(Part {
            thought_signature: proofs.text,
            ..Part::text(content)
        });
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        // Of parallel calls the first one alone has to prove anything.
        let substitute = (at == 0 && with_proofs).then_some(NO_PROOF);
        parts.push(Part {
            function_call: Some(Call {
                id: id(&call.id),
                name: &call.name,
                args: arguments(call),
            }),
            thought_signature: proofs.of_call(at).or(substitute),
            ..Part::default()
        });
    }
    parts
}

/// Our own ids are not sent.
fn id(id: &str) -> Option<&str> {
    (!id.is_empty() && !is_made_up(id)).then_some(id)
}

/// `nested`: whether images are inside the result or follow it.
fn result<'a>(
    message: &'a Message,
    calls: &'a [ToolCall],
    content: Cow<'a, str>,
    nested: bool,
) -> Vec<Part<'a>> {
    let mut images = message.images.iter().map(Part::image);
    let answer = match calls.iter().find(|call| call.id == message.tool_call_id) {
        // No call, no name: it can only be told.
        None => Part::text(format!("[a tool answered: {content}]")),
        Some(call) => Part {
            function_response: Some(Answer {
                id: id(&call.id),
                name: &call.name,
                response: if message.is_error {
                    Response::Error(content)
                } else {
                    Response::Output(content)
                },
                parts: if nested {
                    images.by_ref().collect()
                } else {
                    Vec::new()
                },
            }),
            ..Part::default()
        },
    };
    std::iter::once(answer).chain(images).collect()
}
