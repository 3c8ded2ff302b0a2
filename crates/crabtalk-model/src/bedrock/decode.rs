//! Reads answers.
//! Invariant: calls are numbered densely in the order they begin, though the
//! provider numbers them among all blocks.

use crate::signature::Signature;
use crate::stream::{Broken, Chunks};
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
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
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
    #[serde(default)]
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

/// A call of the answer so far.
struct Begun {
    /// The provider's number of its block.
    block: u32,
    streamed: bool,
}

/// Reads one answer.
#[derive(Default)]
pub(crate) struct Decoder {
    calls: Vec<Begun>,
    finish: Option<StopReason>,
    done: bool,
}

impl Decoder {
    /// Takes in an event of this type.
    pub(crate) fn event(
        &mut self,
        name: &[u8],
        data: &[u8],
        out: &mut Chunks,
    ) -> Result<(), Broken> {
        let event: Event = serde_json::from_slice(data).map_err(Broken::json)?;
        match name {
            b"contentBlockStart" => {
                // Text and reasoning begin with their first delta.
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    self.begin(event.content_block_index, call, out)?;
                }
            }
            b"contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.delta(event.content_block_index, delta, out)?;
                }
            }
            b"contentBlockStop" => self.end(event.content_block_index, out),
            b"messageStop" => self.finish(event.stop_reason)?,
            b"metadata" => {
                if let Some(tokens) = event.usage {
                    out.push(Chunk::Usage(figures(&tokens)));
                }
                // Nothing comes after the figures.
                self.done = self.finish.is_some();
            }
            // The role, and whatever will be added.
            _ => {}
        }
        Ok(())
    }

    /// Takes in an answer that was not streamed.
    pub(crate) fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let whole: Whole<'_> = serde_json::from_slice(data).map_err(Broken::json)?;
        for (number, block) in (0..).zip(whole.output.message.content) {
            let delta = Delta {
                text: block.text,
                tool_use: None,
                reasoning_content: block.reasoning_content,
            };
            self.delta(number, delta, out)?;
            if let Some(call) = block.tool_use {
                let input = call.input.map_or("{}", RawValue::get).to_owned();
                let start = CallStart {
                    tool_use_id: call.tool_use_id,
                    name: call.name,
                };
                self.begin(number, start, out)?;
                self.input(number, input, out)?;
            }
        }
        if let Some(tokens) = whole.usage {
            out.push(Chunk::Usage(figures(&tokens)));
        }
        self.finish(whole.stop_reason.or_else(|| Some("end_turn".into())))?;
        self.done = true;
        Ok(())
    }

    /// Whether the terminator was seen.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// How it stopped; `None` while it may go on, and when it was cut.
    pub(crate) fn stop(&self) -> Option<StopReason> {
        let called = self.finish == Some(StopReason::Done) && !self.calls.is_empty();
        if called {
            Some(StopReason::ToolCalls)
        } else {
            self.finish
        }
    }

    fn begin(&mut self, block: u32, call: CallStart, out: &mut Chunks) -> Result<(), Broken> {
        if call.name.is_empty() {
            return Err(Broken::Nonsense("a tool call without a name".into()));
        }
        let index = u32::try_from(self.calls.len())
            .map_err(|_| Broken::Nonsense("too many calls".into()))?;
        let id = if call.tool_use_id.is_empty() {
            out.new_call_id()
        } else {
            call.tool_use_id
        };
        self.calls.push(Begun {
            block,
            streamed: false,
        });
        let name = call.name;
        out.push(Chunk::ToolCallStart { index, id, name });
        Ok(())
    }

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
            Some(call) => self.input(block, call.input, out),
            None => Ok(()),
        }
    }

    fn input(&mut self, block: u32, fragment: String, out: &mut Chunks) -> Result<(), Broken> {
        if fragment.is_empty() {
            return Ok(());
        }
        let Some((index, call)) = self.call(block) else {
            let message = format!("input for block {block}, which is no tool call");
            return Err(Broken::Nonsense(message));
        };
        call.streamed = true;
        out.push(Chunk::ToolCallArguments { index, fragment });
        Ok(())
    }

    /// A block is complete: a call without input has no arguments.
    fn end(&mut self, block: u32, out: &mut Chunks) {
        if let Some((index, call)) = self.call(block)
            && !std::mem::replace(&mut call.streamed, true)
        {
            let fragment = "{}".to_owned();
            out.push(Chunk::ToolCallArguments { index, fragment });
        }
    }

    fn call(&mut self, block: u32) -> Option<(u32, &mut Begun)> {
        (0..)
            .zip(&mut self.calls)
            .find(|(_, call)| call.block == block)
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
            // "end_turn", "stop_sequence" and whatever will be added.
            _ => StopReason::Done,
        });
        Ok(())
    }
}

fn say(chunk: fn(String) -> Chunk, text: String, out: &mut Chunks) {
    if !text.is_empty() {
        out.push(chunk(text));
    }
}

fn figures(tokens: &Tokens) -> Usage {
    let read = tokens.cache_read_input_tokens;
    let written = tokens.cache_write_input_tokens;
    // Here `inputTokens` leaves out what the cache read or wrote.
    let missed = tokens.input_tokens.saturating_add(written.unwrap_or(0));
    let cached = read.or(written.map(|_| 0));
    Usage {
        prompt_tokens: missed.saturating_add(read.unwrap_or(0)),
        completion_tokens: tokens.output_tokens,
        cache_hit_tokens: cached,
        cache_miss_tokens: cached.map(|_| missed),
        reasoning_tokens: None,
    }
}
