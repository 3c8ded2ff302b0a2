//! Writes requests.
//! Invariants: every proof goes back in the part in which it came; a result
//! names the tool that gave it, because here results have no other address.

use super::{nests_images, thinks, wants_proofs};
use crate::body::{Body, Writer};
use crate::format::{GOOGLE, NESTED_IMAGES, WITH_GUESTS, WITH_PROOFS, arguments, push_json};
use crate::head::Heads;
use crate::random;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::{self, Words, separate};
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Message, Role, ToolCall};

const WORDS: Words = Words {
    assistant: "model",
    pieces: "parts",
};

/// What stands for the proof of a call that another model made.
const NO_PROOF: &str = "skip_thought_signature_validator";

/// The whole request body. The model is part of the address.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>, heads: &Heads) -> Body {
    let mut writer = Writer::new();
    let out = &mut writer.out;
    out.push(b'{');
    if request.thinking && thinks(model_id) {
        out.extend_from_slice(
            b"\"generationConfig\":{\"thinkingConfig\":{\"includeThoughts\":true}},",
        );
    }
    heads.push(&mut writer, request, 0, |out| {
        push_tools(out, request);
        if !request.system.trim().is_empty() {
            out.extend_from_slice(b"\"systemInstruction\":{\"parts\":[{\"text\":");
            push_json(out, &*request.system);
            out.extend_from_slice(b"}]},");
        }
        out.extend_from_slice(b"\"contents\":");
    });
    let mut format = GOOGLE;
    format |= if request.has_guests { WITH_GUESTS } else { 0 };
    format |= if wants_proofs(model_id) {
        WITH_PROOFS
    } else {
        0
    };
    format |= if nests_images(model_id) {
        NESTED_IMAGES
    } else {
        0
    };
    let encode = |message: &Message, calls: &[ToolCall]| encode(message, calls, format);
    // Caching needs no marks here, only the same bytes.
    let mark = |out: &mut Vec<u8>, parts: &[u8]| out.extend_from_slice(parts);
    turns::push(&mut writer, request, sight, &WORDS, format, encode, mark);
    writer.out.push(b'}');
    writer.finish()
}

fn push_tools(out: &mut Vec<u8>, request: &Request) {
    if request.tools.is_empty() {
        return;
    }
    for (at, tool) in request.tools.iter().enumerate() {
        out.extend_from_slice(if at == 0 {
            b"\"tools\":[{\"functionDeclarations\":["
        } else {
            b","
        });
        out.extend_from_slice(b"{\"name\":");
        push_json(out, &tool.name);
        out.extend_from_slice(b",\"description\":");
        push_json(out, &tool.description);
        // `parameters` would refuse most of what JSON schemas may say.
        out.extend_from_slice(b",\"parametersJsonSchema\":");
        push_json(out, &tool.parameters);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}],");
    let mode: &[u8] = match &request.tool_choice {
        ToolChoice::Auto => return,
        ToolChoice::None => b"NONE\"",
        ToolChoice::Required | ToolChoice::Named(_) => b"ANY\"",
    };
    out.extend_from_slice(b"\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"");
    out.extend_from_slice(mode);
    if let ToolChoice::Named(name) = &request.tool_choice {
        out.extend_from_slice(b",\"allowedFunctionNames\":[");
        push_json(out, name);
        out.push(b']');
    }
    out.extend_from_slice(b"}},");
}

/// Proofs of one message, by what they belong to.
struct Proofs<'a> {
    text: Option<&'a str>,
    calls: Vec<(u32, &'a str)>,
}

impl<'a> Proofs<'a> {
    fn of(message: &'a Message) -> Self {
        let mut proofs = Self {
            text: None,
            calls: Vec::new(),
        };
        // What a guest thought is nothing that the speaker could prove.
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

/// The parts of a message, joined by commas; nothing for an empty message,
/// since empty parts are refused.
fn encode(message: &Message, calls: &[ToolCall], format: u32) -> Vec<u8> {
    let content = message.rendered(format & WITH_GUESTS != 0);
    let mut out = Vec::with_capacity(content.len() + 64);
    if message.role == Role::Tool {
        push_result(
            &mut out,
            message,
            calls,
            &content,
            format & NESTED_IMAGES != 0,
        );
        return out;
    }
    let proofs = Proofs::of(message);
    if !content.trim().is_empty() {
        out.extend_from_slice(b"{\"text\":");
        push_json(&mut out, &*content);
        push_proof(&mut out, proofs.text);
        out.push(b'}');
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        separate(&mut out);
        out.extend_from_slice(b"{\"functionCall\":{");
        push_id(&mut out, &call.id);
        out.extend_from_slice(b"\"name\":");
        push_json(&mut out, &call.name);
        out.extend_from_slice(b",\"args\":");
        out.extend_from_slice(arguments(call).as_bytes());
        out.push(b'}');
        // Of parallel calls the first one alone has to prove anything.
        let substitute = (at == 0 && format & WITH_PROOFS != 0).then_some(NO_PROOF);
        push_proof(&mut out, proofs.of_call(at).or(substitute));
        out.push(b'}');
    }
    out
}

fn push_proof(out: &mut Vec<u8>, proof: Option<&str>) {
    if let Some(proof) = proof {
        out.extend_from_slice(b",\"thoughtSignature\":");
        push_json(out, proof);
    }
}

/// Ids that were made up here mean nothing there.
fn push_id(out: &mut Vec<u8>, id: &str) {
    if !id.is_empty() && !random::is_made_up(id) {
        out.extend_from_slice(b"\"id\":");
        push_json(out, id);
        out.push(b',');
    }
}

/// `nested`: whether images stand in the result, else they follow it.
fn push_result(
    out: &mut Vec<u8>,
    message: &Message,
    calls: &[ToolCall],
    content: &str,
    nested: bool,
) {
    let Some(call) = calls.iter().find(|call| call.id == message.tool_call_id) else {
        // No call, no name: it can only be told.
        out.extend_from_slice(b"{\"text\":");
        push_json(out, &format!("[a tool answered: {content}]"));
        out.push(b'}');
        return push_images(out, message);
    };
    out.extend_from_slice(b"{\"functionResponse\":{");
    push_id(out, &call.id);
    out.extend_from_slice(b"\"name\":");
    push_json(out, &call.name);
    out.extend_from_slice(if message.is_error {
        b",\"response\":{\"error\":"
    } else {
        b",\"response\":{\"output\":"
    });
    push_json(out, content);
    out.push(b'}');
    if nested && !message.images.is_empty() {
        let mut parts = Vec::new();
        push_images(&mut parts, message);
        out.extend_from_slice(b",\"parts\":[");
        out.append(&mut parts);
        out.push(b']');
    }
    out.extend_from_slice(b"}}");
    if !nested {
        push_images(out, message);
    }
}

fn push_images(out: &mut Vec<u8>, message: &Message) {
    for image in &message.images {
        separate(out);
        out.extend_from_slice(b"{\"inlineData\":{\"mimeType\":\"");
        out.extend_from_slice(image.media_type().as_str().as_bytes());
        out.extend_from_slice(b"\",\"data\":\"");
        out.extend_from_slice(image.base64().as_bytes());
        out.extend_from_slice(b"\"}}");
    }
}
