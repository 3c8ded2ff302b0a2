//! Reads the answers of Anthropic's Messages API, event by event.

use crate::blocks::{Calls, say, usage};
use crate::decode::{Broken, Chunks, Decode, arguments, parse, text};
use crate::signature::Signature;
use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::Value;

#[derive(Default)]
pub(crate) struct Decoder {
    calls: Calls,
    input: u64,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    output: u64,
    finish: Option<StopReason>,
    done: bool,
}

impl Decode for Decoder {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let event = parse(data)?;
        let Some(kind) = event["type"].as_str() else {
            return Err(Broken::Nonsense("an event without a type".into()));
        };
        let block = event["index"].as_u64().unwrap_or(0);
        match kind {
            "content_block_delta" => self.delta(block, &event["delta"], out)?,
            "content_block_start" => self.begin(block, &event["content_block"], out)?,
            "content_block_stop" => self.calls.end(block, out),
            "message_start" => self.count(&event["message"]["usage"], out),
            "message_delta" => {
                self.count(&event["usage"], out);
                self.finish(&event["delta"]["stop_reason"]);
            }
            "message_stop" => self.done = true,
            "error" => return Err(Broken::reported(&event["error"])),
            // Pings and later additions.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let whole = parse(data)?;
        if !whole["error"].is_null() {
            return Err(Broken::reported(&whole["error"]));
        }
        for (number, block) in (0..).zip(whole["content"].as_array().into_iter().flatten()) {
            self.begin(number, block, out)?;
            self.calls.end(number, out);
        }
        self.count(&whole["usage"], out);
        self.finish(&whole["stop_reason"]);
        self.done = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn stop(&self) -> Result<Option<StopReason>, Broken> {
        let stop = self
            .finish
            .or_else(|| self.done.then_some(StopReason::Done));
        Ok(self.calls.stop(stop))
    }
}

impl Decoder {
    fn delta(&mut self, block: u64, delta: &Value, out: &mut Chunks) -> Result<(), Broken> {
        match delta["type"].as_str() {
            Some("text_delta") => say(Chunk::Text, &delta["text"], out),
            Some("thinking_delta") => say(Chunk::Thinking, &delta["thinking"], out),
            Some("signature_delta") => say(Chunk::ThinkingSignature, &delta["signature"], out),
            Some("input_json_delta") => {
                return self.calls.input(block, text(&delta["partial_json"]), out);
            }
            // Citations and later additions.
            Some(_) | None => {}
        }
        Ok(())
    }

    fn begin(&mut self, number: u64, block: &Value, out: &mut Chunks) -> Result<(), Broken> {
        match block["type"].as_str() {
            Some("text") => say(Chunk::Text, &block["text"], out),
            Some("thinking") => {
                say(Chunk::Thinking, &block["thinking"], out);
                say(Chunk::ThinkingSignature, &block["signature"], out);
            }
            Some("redacted_thinking") => {
                let data = block["data"].as_str().unwrap_or_default();
                let signature = Signature::Redacted(data).write();
                out.push(Chunk::ThinkingSignature(signature));
            }
            Some("tool_use") => {
                let given = arguments(&block["input"], "");
                let named = (text(&block["id"]), text(&block["name"]));
                return self.calls.begin(number, named, given, out);
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    fn count(&mut self, tokens: &Value, out: &mut Chunks) {
        if tokens.is_null() {
            return;
        }
        let count = |name: &str| tokens[name].as_u64();
        self.input = count("input_tokens").unwrap_or(self.input);
        self.output = count("output_tokens").unwrap_or(self.output);
        self.cache_read = count("cache_read_input_tokens").or(self.cache_read);
        self.cache_written = count("cache_creation_input_tokens").or(self.cache_written);
        out.push(Chunk::Usage(usage(
            self.input,
            self.output,
            self.cache_read,
            self.cache_written,
        )));
    }

    fn finish(&mut self, reason: &Value) {
        let Some(reason) = reason.as_str() else {
            return;
        };
        self.finish = Some(match reason {
            "tool_use" => StopReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::ContentFilter,
            _ => StopReason::Done,
        });
    }
}
