//! Reads the answers of OpenAI's Chat Completions API, event by event.
//! Invariants: calls are numbered densely in the order in which they begin; no text is emitted twice.

use crate::decode::{Broken, Chunks, Decode, arguments, new_call_id, parse};
use crabtalk_domain::Usage;
use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::Value;

/// A call of the answer so far.
struct PartialCall {
    /// The server's number, if it sends one.
    index: Option<u64>,
    id: String,
    /// Our number, once its name is known.
    number: Option<u32>,
    /// Arguments received before the name.
    early: String,
}

#[derive(Default)]
pub(crate) struct Decoder {
    calls: Vec<PartialCall>,
    started: u32,
    finish: Option<StopReason>,
    done: bool,
    /// Whether a delta was read; a whole message after it is a repetition.
    streamed: bool,
}

impl Decode for Decoder {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let event = parse(data)?;
        if !event["error"].is_null() {
            return Err(Broken::reported(&event["error"]));
        }
        // The request asked for one choice.
        let choice = &event["choices"][0];
        self.choice(choice, out)?;
        // Some servers put the usage into the choice.
        for figures in [&event["usage"], &choice["usage"]] {
            if !figures.is_null() {
                out.push(Chunk::Usage(usage(figures)));
                break;
            }
        }
        Ok(())
    }

    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        self.event(b"", data, out)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    /// The stop reason. Some servers omit the terminator, others the reason.
    fn stop(&self) -> Result<Option<StopReason>, Broken> {
        let Some(stop) = self
            .finish
            .or_else(|| self.done.then_some(StopReason::Done))
        else {
            return Ok(None);
        };
        if self.calls.iter().any(|call| call.number.is_none()) {
            return Err(Broken::Nonsense("a tool call without a name".into()));
        }
        let called = stop == StopReason::Done && !self.calls.is_empty();
        Ok(Some(if called { StopReason::ToolCalls } else { stop }))
    }
}

impl Decoder {
    fn choice(&mut self, choice: &Value, out: &mut Chunks) -> Result<(), Broken> {
        if choice["delta"].is_object() {
            self.streamed = true;
            self.delta(&choice["delta"], out);
        } else if !self.streamed {
            // The form of answers that are not streamed.
            self.delta(&choice["message"], out);
        }
        let reason = text(&choice["finish_reason"]);
        if !reason.is_empty() {
            self.finish = Some(match reason.as_str() {
                "length" | "max_tokens" | "model_length" => StopReason::Length,
                "content_filter" | "safety" | "refusal" => StopReason::ContentFilter,
                "tool_calls" | "function_call" | "tool_use" => StopReason::ToolCalls,
                "error" => {
                    let message = "the answer ended with finish_reason \"error\"";
                    return Err(Broken::Reported(message.into()));
                }
                // "stop" and other names of a regular end.
                _ => StopReason::Done,
            });
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, out: &mut Chunks) {
        // Some servers send the same text under both names.
        let mut reasoning = text(&delta["reasoning_content"]);
        if reasoning.is_empty() {
            reasoning = text(&delta["reasoning"]);
        }
        if !reasoning.is_empty() {
            out.push(Chunk::Thinking(reasoning));
        }
        for said in ["content", "refusal"].map(|name| text(&delta[name])) {
            if !said.is_empty() {
                out.push(Chunk::Text(said));
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call, out);
        }
    }

    fn call(&mut self, call: &Value, out: &mut Chunks) {
        let (index, id) = (call["index"].as_u64(), text(&call["id"]));
        let name = text(&call["function"]["name"]);
        let at = match self.place_of(index, &id, !name.is_empty()) {
            Some(at) => at,
            None => {
                let id = if id.is_empty() { new_call_id() } else { id };
                let (number, early) = (None, String::new());
                self.calls.push(PartialCall {
                    index,
                    id,
                    number,
                    early,
                });
                self.calls.len() - 1
            }
        };
        // Usually a string; some servers send an object.
        let given = &call["function"]["arguments"];
        let fragment = match given.as_str() {
            Some(given) => given.to_owned(),
            None => arguments(given, ""),
        };
        let begun = &mut self.calls[at];
        if let Some(index) = begun.number {
            if !fragment.is_empty() {
                out.push(Chunk::ToolCallArguments { index, fragment });
            }
            return;
        }
        begun.early.push_str(&fragment);
        if !name.is_empty() {
            let index = self.started;
            self.started += 1;
            begun.number = Some(index);
            let id = begun.id.clone();
            out.push(Chunk::ToolCallStart { index, id, name });
            if !begun.early.is_empty() {
                let fragment = std::mem::take(&mut begun.early);
                out.push(Chunk::ToolCallArguments { index, fragment });
            }
        }
    }

    /// The call that a fragment continues. A new id with a name begins a call
    /// even if its index is in use: some servers send 0 for every call.
    fn place_of(&self, index: Option<u64>, id: &str, named: bool) -> Option<usize> {
        let known = self
            .calls
            .iter()
            .position(|call| call.id == id && call.index == index);
        if known.is_some() || named && !id.is_empty() {
            return known;
        }
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if named => None,
            None => self.calls.len().checked_sub(1),
        }
    }
}

/// Reads a text from a string, a number, a list of parts, or null.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(parts) => parts.iter().map(text).collect(),
        Value::Object(_) => text(&value["text"]),
        Value::Null | Value::Bool(_) => String::new(),
    }
}

fn usage(figures: &Value) -> Usage {
    let count = |value: &Value| {
        // Some servers write a float.
        let float = || value.as_f64().filter(|count| *count >= 0.0);
        value.as_u64().or_else(|| float().map(|count| count as u64))
    };
    let prompt_tokens = count(&figures["prompt_tokens"]).unwrap_or(0);
    let hit = count(&figures["prompt_tokens_details"]["cached_tokens"])
        .or_else(|| count(&figures["prompt_cache_hit_tokens"]));
    let miss = count(&figures["prompt_cache_miss_tokens"])
        .or_else(|| hit.map(|hit| prompt_tokens.saturating_sub(hit)));
    Usage {
        prompt_tokens,
        completion_tokens: count(&figures["completion_tokens"]).unwrap_or(0),
        cache_hit_tokens: hit,
        cache_miss_tokens: miss,
        reasoning_tokens: count(&figures["completion_tokens_details"]["reasoning_tokens"]),
    }
}
