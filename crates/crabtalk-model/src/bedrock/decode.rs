//! Reads the answers of Bedrock's Converse API, event by event.

use crate::blocks::{Calls, say, usage};
use crate::decode::{Broken, Chunks, Decode};
use crate::signature::Signature;
use crabtalk_domain::Usage;
use crabtalk_domain::model::{Chunk, StopReason};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What any event may hold; its type says what it does.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Event {
    content_block_index: u32,
    start: Option<Start>,
    delta: Option<Delta>,
    stop_reason: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Start {
    tool_use: Option<CallStart>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CallStart {
    tool_use_id: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Delta {
    text: String,
    tool_use: Option<Input>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    input: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Reasoning {
    text: String,
    signature: String,
    redacted_content: String,
    /// As whole answers have it.
    reasoning_text: Option<ReasoningText>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReasoningText {
    text: String,
    signature: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

/// An answer that was not streamed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    #[serde(borrow)]
    output: Output<'a>,
    stop_reason: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(default)]
    text: String,
    #[serde(default, borrow)]
    tool_use: Option<WholeCall<'a>>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeCall<'a> {
    #[serde(default)]
    tool_use_id: String,
    #[serde(default)]
    name: String,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Default)]
pub(crate) struct Decoder {
    calls: Calls,
    finish: Option<StopReason>,
    done: bool,
}

impl Decode for Decoder {
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let event: Event = serde_json::from_slice(data).map_err(Broken::json)?;
        match name {
            b"contentBlockStart" => {
                // Text and reasoning begin with their first delta.
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    let named = (call.tool_use_id, call.name);
                    let block = event.content_block_index;
                    // A call without input has no arguments.
                    self.calls.begin(block, named, "{}", out)?;
                }
            }
            b"contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.delta(event.content_block_index, delta, out)?;
                }
            }
            b"contentBlockStop" => self.calls.end(event.content_block_index, out),
            b"messageStop" => self.finish(event.stop_reason)?,
            b"metadata" => {
                if let Some(tokens) = event.usage {
                    out.push(Chunk::Usage(tokens.usage()));
                }
                // Nothing comes after the figures.
                self.done = self.finish.is_some();
            }
            // The role and later additions.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let whole: Whole<'_> = serde_json::from_slice(data).map_err(Broken::json)?;
        for (number, block) in (0..).zip(whole.output.message.content) {
            let delta = Delta {
                text: block.text,
                tool_use: None,
                reasoning_content: block.reasoning_content,
            };
            self.delta(number, delta, out)?;
            if let Some(call) = block.tool_use {
                let given = call.input.map_or("{}", RawValue::get);
                let named = (call.tool_use_id, call.name);
                self.calls.begin(number, named, given, out)?;
                self.calls.end(number, out);
            }
        }
        if let Some(tokens) = whole.usage {
            out.push(Chunk::Usage(tokens.usage()));
        }
        self.finish(whole.stop_reason.or_else(|| Some("end_turn".into())))?;
        self.done = true;
        Ok(())
    }

    fn is_framed(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn stop(&self) -> Result<Option<StopReason>, Broken> {
        Ok(self.calls.stop(self.finish))
    }
}

impl Decoder {
    fn delta(&mut self, block: u32, delta: Delta, out: &mut Chunks) -> Result<(), Broken> {
        if let Some(reasoning) = delta.reasoning_content {
            let whole = reasoning.reasoning_text.unwrap_or_default();
            for (text, signature) in [
                (reasoning.text, reasoning.signature),
                (whole.text, whole.signature),
            ] {
                say(Chunk::Thinking, text, out);
                say(Chunk::ThinkingSignature, signature, out);
            }
            if !reasoning.redacted_content.is_empty() {
                let signature = Signature::BedrockRedacted(&reasoning.redacted_content);
                out.push(Chunk::ThinkingSignature(signature.write()));
            }
        }
        say(Chunk::Text, delta.text, out);
        match delta.tool_use {
            Some(call) => self.calls.input(block, call.input, out),
            None => Ok(()),
        }
    }

    fn finish(&mut self, reason: Option<String>) -> Result<(), Broken> {
        let reason = reason.unwrap_or_default();
        self.finish = Some(match reason.as_str() {
            "tool_use" => StopReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
            // The model wrote what cannot be read; it may do better.
            "malformed_model_output" | "malformed_tool_use" => {
                let message = format!("the answer ended with {reason}");
                return Err(Broken::Reported(serde_json::Value::String(message)));
            }
            // "end_turn", "stop_sequence" and later additions.
            _ => StopReason::Done,
        });
        Ok(())
    }
}

impl Tokens {
    fn usage(&self) -> Usage {
        usage(
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_write_input_tokens,
        )
    }
}
