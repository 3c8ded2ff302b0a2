//! Writes requests for Google's Gemini API.
//! Invariants: every signature is sent back in the part in which it came; a result
//! names its tool, because Gemini identifies results by name.

use super::{nests_images, thinks, wants_proofs};
use crate::body::{self, arguments};
use crate::decode::is_made_up;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::{Names, turns};
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::Schema;
use crabtalk_domain::{Image, Message, Role, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

const NAMES: Names = Names {
    model: "model",
    parts: "parts",
};

/// The substitute for the signature of another model's call.
const NO_PROOF: &str = "skip_thought_signature_validator";

fn image(image: &Image) -> Value {
    json!({"inlineData": {
        "mimeType": image.media_type().as_str(),
        "data": image.base64(),
    }})
}

/// The request body. The model is part of the address.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let mut fields = json!({});
    if request.thinking && thinks(model_id) {
        fields["generationConfig"] = json!({"thinkingConfig": {"includeThoughts": true}});
    }
    if let Some(config) = calling_config(request) {
        fields["toolConfig"] = json!({"functionCallingConfig": config});
    }
    if !request.system.trim().is_empty() {
        fields["systemInstruction"] = json!({"parts": [{"text": *request.system}]});
    }
    let (proofs, nested) = (wants_proofs(model_id), nests_images(model_id));
    let parts = |message: &Message, calls: &[ToolCall]| {
        let content = message.rendered(request.has_guests);
        match message.role {
            Role::Tool => result(message, calls, &content, nested),
            Role::User | Role::Assistant => parts(message, &content, proofs),
        }
    };
    // Gemini caches identical prefixes without marks.
    let contents = turns(request, sight, &NAMES, parts, |_| {});
    let tools = (!request.tools.is_empty()).then(|| [declarations(request)]);
    body::json(&fields, tools, ("contents", contents))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    /// `parameters` would refuse most of what JSON schemas may say.
    parameters_json_schema: &'a Schema,
}

fn declarations(request: &Request) -> Declarations<'_> {
    let declarations = request.tools.iter().map(|tool| Declaration {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: &tool.parameters,
    });
    Declarations {
        function_declarations: declarations.collect(),
    }
}

fn calling_config(request: &Request) -> Option<Value> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Named(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    }
}

/// The signatures of one message, by part.
#[derive(Default)]
struct Proofs<'a> {
    text: Option<&'a str>,
    calls: Vec<(u32, &'a str)>,
}

impl<'a> Proofs<'a> {
    fn of(message: &'a Message) -> Self {
        let mut proofs = Self::default();
        // Only the guest could prove a guest's thinking.
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

/// The parts of a message; none for an empty message, since providers refuse empty
/// parts. With `with_proofs`, calls must have signatures.
fn parts(message: &Message, content: &str, with_proofs: bool) -> Vec<Value> {
    let proofs = Proofs::of(message);
    let mut parts: Vec<Value> = message.images.iter().map(image).collect();
    let proven = |mut part: Value, proof: Option<&str>| {
        if let Some(proof) = proof {
            part["thoughtSignature"] = proof.into();
        }
        part
    };
    if !content.trim().is_empty() {
        parts.push(proven(json!({"text": content}), proofs.text));
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        // Of parallel calls, only the first needs a signature.
        let substitute = (at == 0 && with_proofs).then_some(NO_PROOF);
        let made = with_id(
            &call.id,
            json!({"name": call.name, "args": arguments(call)}),
        );
        let proof = proofs.of_call(at).or(substitute);
        parts.push(proven(json!({"functionCall": made}), proof));
    }
    parts
}

/// Adds the call's id, unless CrabTalk made it up.
fn with_id(id: &str, mut part: Value) -> Value {
    if !id.is_empty() && !is_made_up(id) {
        part["id"] = id.into();
    }
    part
}

/// The parts of a result; `nested` puts images inside the result instead of behind it.
fn result(message: &Message, calls: &[ToolCall], content: &str, nested: bool) -> Vec<Value> {
    let mut images = message.images.iter().map(image);
    let answer = match calls.iter().find(|call| call.id == message.tool_call_id) {
        // Without its call the result has no name, so it is sent as text.
        None => json!({"text": format!("[a tool answered: {content}]")}),
        Some(call) => {
            let what = if message.is_error { "error" } else { "output" };
            let response = json!({"name": call.name, "response": {what: content}});
            let mut response = with_id(&call.id, response);
            if nested && !message.images.is_empty() {
                response["parts"] = images.by_ref().collect();
            }
            json!({"functionResponse": response})
        }
    };
    std::iter::once(answer).chain(images).collect()
}
