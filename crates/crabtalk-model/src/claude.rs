//! Reasoning settings of Claude, for all providers that offer it.

use crate::body::says_something;
use crate::known;
use crate::signature::Signature;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Message, Role};
use serde_json::{Value, json};

/// Reasoning tokens if thinking is on; they count towards the output limit.
const THINKING_BUDGET: u64 = 8_000;

/// The `thinking` object, if thinking is on and allowed.
pub(crate) fn thinking(model_id: &str, request: &Request, output: u64) -> Option<Value> {
    if !request.thinking || !may_think(request) {
        return None;
    }
    Some(if thinks_adaptively(model_id) {
        json!({"type": "adaptive"})
    } else {
        json!({"type": "enabled", "budget_tokens": THINKING_BUDGET.min(output / 2)})
    })
}

/// Whether a model decides itself how much it thinks.
fn thinks_adaptively(model_id: &str) -> bool {
    let Some(rest) = known::bare(model_id).strip_prefix("claude-") else {
        return false;
    };
    let mut parts = rest
        .split(['-', '.'])
        .skip_while(|part| part.parse::<u32>().is_err());
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
    let major = number().unwrap_or(0);
    // A date follows the version in full names.
    let minor = number().filter(|minor| *minor < 100).unwrap_or(0);
    major > 4 || (major == 4 && minor >= 6)
}

/// Whether the request may turn thinking on. A forced call excludes it, and so does
/// an unfinished group of calls that began without it: the group must begin with a signed
/// block.
fn may_think(request: &Request) -> bool {
    if !matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::None) {
        return false;
    }
    let is_sent = |message: &&Message| !message.auto_injected && says_something(message);
    let messages: Vec<&Message> = request.messages().filter(is_sent).collect();
    // Text beside results, such as a steer, does not end the group.
    let begins = |at: &usize| {
        messages[*at].role == Role::User && (*at == 0 || messages[at - 1].role != Role::Tool)
    };
    let turn = (0..messages.len()).rev().find(begins);
    messages[turn.map_or(0, |at| at + 1)..]
        .iter()
        .filter(|message| !message.tool_calls.is_empty())
        .all(|message| {
            message
                .thinking
                .iter()
                .any(|block| is_claudes(&block.signature))
        })
}

fn is_claudes(signature: &str) -> bool {
    match Signature::read(signature) {
        Signature::Claude(_) | Signature::Redacted(_) | Signature::BedrockRedacted(_) => true,
        Signature::GoogleCall(..) | Signature::GoogleText(_) | Signature::Missing => false,
    }
}
