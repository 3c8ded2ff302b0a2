//! Reads the answers of Anthropic's Messages API, event by event.

use crate::blocks::{Calls, say, usage};
use crate::decode::{Broken, Chunks, Decode};
use crate::signature::Signature;
use crabtalk_domain::model::{Chunk, StopReason};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One event.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    index: u32,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    content_block: Option<Block<'a>>,
    message: Option<Message>,
    usage: Option<Tokens>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: &'a str,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    partial_json: String,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    data: String,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Tokens>,
}

/// An answer that was not streamed.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(default, borrow)]
    content: Vec<Block<'a>>,
    stop_reason: Option<String>,
    usage: Option<Tokens>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

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
        let text = str::from_utf8(data).map_err(Broken::utf8)?;
        let event: Event<'_> = serde_json::from_str(text).map_err(Broken::json)?;
        match event.kind {
            "content_block_delta" => self.delta(event.index, event.delta, out),
            "content_block_start" => match event.content_block {
                Some(block) => self.begin(event.index, block, out),
                None => Ok(()),
            },
            "content_block_stop" => {
                self.calls.end(event.index, out);
                Ok(())
            }
            "message_start" => {
                if let Some(usage) = event.message.and_then(|message| message.usage) {
                    self.count(&usage, out);
                }
                Ok(())
            }
            "message_delta" => {
                if let Some(usage) = event.usage {
                    self.count(&usage, out);
                }
                self.finish(event.delta.and_then(|delta| delta.stop_reason));
                Ok(())
            }
            "message_stop" => {
                self.done = true;
                Ok(())
            }
            "error" => Err(reported(event.error)),
            // Pings and later additions.
            _ => Ok(()),
        }
    }

    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let whole: Whole<'_> = serde_json::from_slice(data).map_err(Broken::json)?;
        if whole.error.is_some() {
            return Err(reported(whole.error));
        }
        for (index, block) in (0..).zip(whole.content) {
            self.begin(index, block, out)?;
            self.calls.end(index, out);
        }
        if let Some(usage) = whole.usage {
            self.count(&usage, out);
        }
        self.finish(whole.stop_reason);
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
    fn delta(
        &mut self,
        block: u32,
        delta: Option<Delta<'_>>,
        out: &mut Chunks,
    ) -> Result<(), Broken> {
        let Some(delta) = delta else { return Ok(()) };
        match delta.kind {
            "text_delta" => say(Chunk::Text, delta.text, out),
            "thinking_delta" => say(Chunk::Thinking, delta.thinking, out),
            "signature_delta" => say(Chunk::ThinkingSignature, delta.signature, out),
            "input_json_delta" => {
                return self.calls.input(block, delta.partial_json, out);
            }
            // Citations and later additions.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, number: u32, block: Block<'_>, out: &mut Chunks) -> Result<(), Broken> {
        match block.kind {
            "text" => say(Chunk::Text, block.text, out),
            "thinking" => {
                say(Chunk::Thinking, block.thinking, out);
                say(Chunk::ThinkingSignature, block.signature, out);
            }
            "redacted_thinking" => {
                let signature = Signature::Redacted(&block.data).write();
                out.push(Chunk::ThinkingSignature(signature));
            }
            "tool_use" => {
                let given = block.input.map_or("", RawValue::get);
                let named = (block.id, block.name);
                return self.calls.begin(number, named, given, out);
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, tokens: &Tokens, out: &mut Chunks) {
        self.input = tokens.input_tokens.unwrap_or(self.input);
        self.output = tokens.output_tokens.unwrap_or(self.output);
        self.cache_read = tokens.cache_read_input_tokens.or(self.cache_read);
        self.cache_written = tokens.cache_creation_input_tokens.or(self.cache_written);
        out.push(Chunk::Usage(usage(
            self.input,
            self.output,
            self.cache_read,
            self.cache_written,
        )));
    }

    fn finish(&mut self, reason: Option<String>) {
        let Some(reason) = reason else { return };
        self.finish = Some(match reason.as_str() {
            "tool_use" => StopReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::ContentFilter,
            _ => StopReason::Done,
        });
    }
}

fn reported(error: Option<&RawValue>) -> Broken {
    let error = error.and_then(|raw| serde_json::from_str(raw.get()).ok());
    Broken::Reported(error.unwrap_or(Value::String("it gave no reason".into())))
}
