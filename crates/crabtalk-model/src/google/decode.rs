//! Reads the answers of Google's Gemini API, event by event.
//! Invariants: a call comes whole and is numbered by its place; figures are
//! told once the answer stops, because every event repeats them.

use crate::decode::{Broken, Chunks, Decode, new_call_id};
use crate::signature::Signature;
use crabtalk_domain::Usage;
use crabtalk_domain::model::{Chunk, StopReason};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One event, or the whole of an answer that was not streamed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default, borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    usage_metadata: Option<Tokens>,
    prompt_feedback: Option<Feedback>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    #[serde(default, borrow)]
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Decoder {
    calls: u32,
    finish: Option<StopReason>,
}

impl Decode for Decoder {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let text = str::from_utf8(data).map_err(Broken::utf8)?;
        let event: Event<'_> = serde_json::from_str(text).map_err(Broken::json)?;
        self.take_in(event, out)
    }

    /// One document, or a list of what would have been events.
    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let text = str::from_utf8(data).map_err(Broken::utf8)?;
        if text.trim_start().starts_with('[') {
            let events: Vec<Event<'_>> = serde_json::from_str(text).map_err(Broken::json)?;
            for event in events {
                self.take_in(event, out)?;
            }
            return Ok(());
        }
        self.event(b"", data, out)
    }

    fn stop(&self) -> Result<Option<StopReason>, Broken> {
        let called = self.finish == Some(StopReason::Done) && self.calls > 0;
        Ok(if called {
            Some(StopReason::ToolCalls)
        } else {
            self.finish
        })
    }
}

impl Decoder {
    fn take_in(&mut self, event: Event<'_>, out: &mut Chunks) -> Result<(), Broken> {
        if let Some(error) = event.error {
            let error: Value = serde_json::from_str(error.get()).map_err(Broken::json)?;
            return Err(Broken::Reported(error));
        }
        let blocked = event.prompt_feedback.and_then(|f| f.block_reason);
        if let Some(reason) = blocked.filter(|_| event.candidates.is_none()) {
            return Err(Broken::Reported(serde_json::json!({
                "code": "content_filter",
                "message": format!("it blocked the request ({reason})"),
            })));
        }
        if let Some(candidate) = event.candidates.and_then(|all| all.into_iter().next()) {
            let parts = candidate.content.and_then(|content| content.parts);
            for part in parts.into_iter().flatten() {
                self.part(part, out)?;
            }
            if let Some(reason) = candidate.finish_reason {
                self.finish(&reason, candidate.finish_message)?;
            }
        }
        if let Some(tokens) = event.usage_metadata.filter(|_| self.finish.is_some()) {
            out.push(Chunk::Usage(figures(&tokens)));
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>, out: &mut Chunks) -> Result<(), Broken> {
        let proof = part.thought_signature.unwrap_or_default();
        if let Some(call) = part.function_call {
            let index = self.calls;
            self.calls += 1;
            if !proof.is_empty() {
                let proof = Signature::GoogleCall(index, &proof).write();
                out.push(Chunk::ThinkingSignature(proof));
            }
            return begin(index, call, out);
        }
        if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            out.push(if part.thought == Some(true) {
                Chunk::Thinking(text)
            } else {
                Chunk::Text(text)
            });
        }
        if !proof.is_empty() {
            out.push(Chunk::ThinkingSignature(
                Signature::GoogleText(&proof).write(),
            ));
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, message: Option<String>) -> Result<(), Broken> {
        self.finish = Some(match reason {
            "MAX_TOKENS" => StopReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" | "LANGUAGE" => StopReason::ContentFilter,
            // The model wrote a call that cannot be read; it may do better.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                let message = message.unwrap_or_else(|| format!("the answer ended with {reason}"));
                return Err(Broken::Reported(Value::String(message)));
            }
            // "STOP" and later additions.
            _ => StopReason::Done,
        });
        Ok(())
    }
}

fn begin(index: u32, call: Call<'_>, out: &mut Chunks) -> Result<(), Broken> {
    let name = call.name.unwrap_or_default();
    if name.is_empty() {
        return Err(Broken::Nonsense("a tool call without a name".into()));
    }
    let id = call.id.filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(new_call_id);
    let fragment = call.args.map_or("{}", RawValue::get).to_owned();
    out.push(Chunk::ToolCallStart { index, id, name });
    out.push(Chunk::ToolCallArguments { index, fragment });
    Ok(())
}

fn figures(tokens: &Tokens) -> Usage {
    let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
    let prompt = sum(
        tokens.prompt_token_count,
        tokens.tool_use_prompt_token_count,
    );
    let cached = tokens.cached_content_token_count;
    Usage {
        prompt_tokens: prompt,
        // Here what was thought is counted apart from what was said.
        completion_tokens: sum(tokens.candidates_token_count, tokens.thoughts_token_count),
        cache_hit_tokens: cached,
        cache_miss_tokens: cached.map(|cached| prompt.saturating_sub(cached)),
        reasoning_tokens: tokens.thoughts_token_count,
    }
}
