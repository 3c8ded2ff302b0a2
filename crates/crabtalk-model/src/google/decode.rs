//! Reads the answers of Google's Gemini API, event by event.
//! Invariants: a call arrives whole and is numbered by its position; usage is
//! reported once, when the answer stops, because every event repeats it.

use crate::decode::{Broken, Chunks, Decode, arguments, new_call_id, parse, text};
use crate::signature::Signature;
use crabtalk_domain::Usage;
use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::{Value, json};

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
        self.take_in(&parse(data)?, out)
    }

    /// The body is one document, or a list of the events.
    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let whole = parse(data)?;
        match whole.as_array() {
            Some(events) => events.iter().try_for_each(|event| self.take_in(event, out)),
            None => self.take_in(&whole, out),
        }
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
    fn take_in(&mut self, event: &Value, out: &mut Chunks) -> Result<(), Broken> {
        if !event["error"].is_null() {
            return Err(Broken::reported(&event["error"]));
        }
        if let Some(reason) = event["promptFeedback"]["blockReason"].as_str()
            && event["candidates"].is_null()
        {
            return Err(Broken::Reported(json!({
                "code": "content_filter",
                "message": format!("the provider blocked the request ({reason})"),
            })));
        }
        let candidate = &event["candidates"][0];
        let parts = candidate["content"]["parts"].as_array();
        for part in parts.into_iter().flatten() {
            self.part(part, out)?;
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.finish(reason, candidate["finishMessage"].as_str())?;
        }
        let tokens = &event["usageMetadata"];
        if self.finish.is_some() && !tokens.is_null() {
            out.push(Chunk::Usage(figures(tokens)));
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Chunks) -> Result<(), Broken> {
        let proof = part["thoughtSignature"].as_str().unwrap_or_default();
        let call = &part["functionCall"];
        if !call.is_null() {
            let index = self.calls;
            self.calls += 1;
            if !proof.is_empty() {
                let proof = Signature::GoogleCall(index, proof).write();
                out.push(Chunk::ThinkingSignature(proof));
            }
            return begin(index, call, out);
        }
        let said = text(&part["text"]);
        if !said.is_empty() {
            out.push(if part["thought"] == true {
                Chunk::Thinking(said)
            } else {
                Chunk::Text(said)
            });
        }
        if !proof.is_empty() {
            let proof = Signature::GoogleText(proof).write();
            out.push(Chunk::ThinkingSignature(proof));
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, message: Option<&str>) -> Result<(), Broken> {
        self.finish = Some(match reason {
            "MAX_TOKENS" => StopReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" | "LANGUAGE" => StopReason::ContentFilter,
            // The model wrote an invalid call; a retry may succeed.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                let ended = || format!("the answer ended with {reason}");
                let message = message.map_or_else(ended, str::to_owned);
                return Err(Broken::Reported(message.into()));
            }
            // "STOP" and later additions.
            _ => StopReason::Done,
        });
        Ok(())
    }
}

fn begin(index: u32, call: &Value, out: &mut Chunks) -> Result<(), Broken> {
    let (mut id, name) = (text(&call["id"]), text(&call["name"]));
    if name.is_empty() {
        return Err(Broken::Nonsense("a tool call without a name".into()));
    }
    if id.is_empty() {
        id = new_call_id();
    }
    let fragment = arguments(&call["args"], "{}");
    out.push(Chunk::ToolCallStart { index, id, name });
    out.push(Chunk::ToolCallArguments { index, fragment });
    Ok(())
}

fn figures(tokens: &Value) -> Usage {
    let count = |name: &str| tokens[name].as_u64();
    let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
    let prompt = sum(count("promptTokenCount"), count("toolUsePromptTokenCount"));
    let cached = count("cachedContentTokenCount");
    let thoughts = count("thoughtsTokenCount");
    Usage {
        prompt_tokens: prompt,
        // Gemini counts thoughts separately from the text.
        completion_tokens: sum(count("candidatesTokenCount"), thoughts),
        cache_hit_tokens: cached,
        cache_miss_tokens: cached.map(|cached| prompt.saturating_sub(cached)),
        reasoning_tokens: thoughts,
    }
}
