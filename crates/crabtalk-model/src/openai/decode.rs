//! Reads the answers of OpenAI's Chat Completions API, event by event.
//! Invariants: calls are numbered densely in the order in which they begin; no text is repeated.

use super::fields::{Call, Choice, Delta, Event};
use crate::decode::{Broken, Chunks, Decode, new_call_id};
use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::Value;
use serde_json::value::RawValue;

/// A call of the answer so far.
struct Begun {
    /// The server's number, if it sends one.
    index: Option<u32>,
    id: String,
    /// Our number, once its name is known.
    number: Option<u32>,
    /// Arguments before the name.
    early: String,
}

#[derive(Default)]
pub(crate) struct Decoder {
    calls: Vec<Begun>,
    started: u32,
    finish: Option<StopReason>,
    done: bool,
    /// A delta was seen, so that a whole message after it is a repetition.
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
        let text = str::from_utf8(data).map_err(Broken::utf8)?;
        let event: Event<'_> = serde_json::from_str(text).map_err(Broken::json)?;
        if let Some(error) = event.error {
            let error: Value = serde_json::from_str(error.get()).map_err(Broken::json)?;
            return Err(Broken::Reported(error));
        }
        let mut usage = event.usage;
        if let Some(mut choice) = event.choices.0 {
            usage = usage.or(choice.usage.take());
            self.choice(choice, out)?;
        }
        if let Some(usage) = usage {
            out.push(Chunk::Usage(usage.into_domain()));
        }
        Ok(())
    }

    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        self.event(b"", data, out)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    /// Some servers omit the terminator, others the reason.
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
    fn choice(&mut self, choice: Choice<'_>, out: &mut Chunks) -> Result<(), Broken> {
        if let Some(delta) = choice.delta {
            self.streamed = true;
            self.delta(delta, out)?;
        } else if let Some(message) = choice.message.filter(|_| !self.streamed) {
            self.delta(message, out)?;
        }
        let reason = choice.finish_reason.0;
        if !reason.is_empty() {
            self.finish = Some(match reason.as_str() {
                "length" | "max_tokens" | "model_length" => StopReason::Length,
                "content_filter" | "safety" | "refusal" => StopReason::ContentFilter,
                "tool_calls" | "function_call" | "tool_use" => StopReason::ToolCalls,
                "error" => {
                    let message = "the answer ended with finish_reason \"error\"";
                    return Err(Broken::Reported(Value::String(message.into())));
                }
                // "stop" and other names of a regular end.
                _ => StopReason::Done,
            });
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Chunks) -> Result<(), Broken> {
        // Some servers send the same text under both names.
        let reasoning = if delta.reasoning_content.0.is_empty() {
            delta.reasoning.0
        } else {
            delta.reasoning_content.0
        };
        if !reasoning.is_empty() {
            out.push(Chunk::Thinking(reasoning));
        }
        for text in [delta.content.0, delta.refusal.0] {
            if !text.is_empty() {
                out.push(Chunk::Text(text));
            }
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn call(&mut self, call: Call<'_>, out: &mut Chunks) -> Result<(), Broken> {
        let named = call.function.as_ref().is_some_and(|f| !f.name.0.is_empty());
        let at = self.place_of(call.index, &call.id.0, named);
        let at = match at {
            Some(at) => at,
            None => {
                let id = if call.id.0.is_empty() {
                    new_call_id()
                } else {
                    call.id.0
                };
                let (number, early) = (None, String::new());
                self.calls.push(Begun {
                    index: call.index,
                    id,
                    number,
                    early,
                });
                self.calls.len() - 1
            }
        };
        let Some(function) = call.function else {
            return Ok(());
        };
        let fragment = function
            .arguments
            .map_or(Ok(String::new()), argument_text)?;
        let begun = &mut self.calls[at];
        if let Some(index) = begun.number {
            if !fragment.is_empty() {
                out.push(Chunk::ToolCallArguments { index, fragment });
            }
            return Ok(());
        }
        begun.early.push_str(&fragment);
        if !function.name.0.is_empty() {
            let index = self.started;
            self.started += 1;
            begun.number = Some(index);
            let (id, name) = (begun.id.clone(), function.name.0);
            out.push(Chunk::ToolCallStart { index, id, name });
            if !begun.early.is_empty() {
                let fragment = std::mem::take(&mut begun.early);
                out.push(Chunk::ToolCallArguments { index, fragment });
            }
        }
        Ok(())
    }

    /// The call that a fragment continues. A new id with a name begins a call
    /// even under a used number: some servers number every call 0.
    fn place_of(&self, index: Option<u32>, id: &str, named: bool) -> Option<usize> {
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

/// Argument text, as a string or an object.
fn argument_text(raw: &RawValue) -> Result<String, Broken> {
    match raw.get() {
        "null" => Ok(String::new()),
        string if string.starts_with('"') => serde_json::from_str(string).map_err(Broken::json),
        object => Ok(object.to_owned()),
    }
}
