//! Reads the answers of Bedrock's Converse API, event by event.

use crate::blocks::{Calls, say, usage};
use crate::decode::{Broken, Chunks, Decode, arguments, parse, text};
use crate::signature::Signature;
use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::Value;

#[derive(Default)]
pub(crate) struct Decoder {
    calls: Calls,
    finish: Option<StopReason>,
    done: bool,
}

impl Decode for Decoder {
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let event = parse(data)?;
        let block = event["contentBlockIndex"].as_u64().unwrap_or(0);
        match name {
            b"contentBlockStart" => {
                // Text and reasoning begin with their first delta.
                let call = &event["start"]["toolUse"];
                if !call.is_null() {
                    self.begin(block, call, out)?;
                }
            }
            b"contentBlockDelta" => {
                let delta = &event["delta"];
                say_all(delta, out);
                let input = text(&delta["toolUse"]["input"]);
                self.calls.input(block, input, out)?;
            }
            b"contentBlockStop" => self.calls.end(block, out),
            b"messageStop" => self.finish(event["stopReason"].as_str().unwrap_or_default())?,
            b"metadata" => {
                count(&event["usage"], out);
                // The usage event is the last one.
                self.done = self.finish.is_some();
            }
            // The role, and events of later versions.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken> {
        let whole = parse(data)?;
        let Some(blocks) = whole["output"]["message"]["content"].as_array() else {
            return Err(Broken::Nonsense("an answer without a message".into()));
        };
        for (number, block) in (0..).zip(blocks) {
            say_all(block, out);
            let call = &block["toolUse"];
            if !call.is_null() {
                self.begin(number, call, out)?;
                self.calls.end(number, out);
            }
        }
        count(&whole["usage"], out);
        self.finish(whole["stopReason"].as_str().unwrap_or("end_turn"))?;
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
    fn begin(&mut self, block: u64, call: &Value, out: &mut Chunks) -> Result<(), Broken> {
        let named = (text(&call["toolUseId"]), text(&call["name"]));
        // A call without input has no arguments.
        let given = arguments(&call["input"], "{}");
        self.calls.begin(block, named, given, out)
    }

    fn finish(&mut self, reason: &str) -> Result<(), Broken> {
        self.finish = Some(match reason {
            "tool_use" => StopReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
            // The model wrote invalid output; a retry may succeed.
            "malformed_model_output" | "malformed_tool_use" => {
                let message = format!("the answer ended with {reason}");
                return Err(Broken::Reported(message.into()));
            }
            // "end_turn", "stop_sequence" and later additions.
            _ => StopReason::Done,
        });
        Ok(())
    }
}

/// Reads the text and reasoning of a delta or of a whole block.
fn say_all(said: &Value, out: &mut Chunks) {
    let reasoning = &said["reasoningContent"];
    // Whole answers nest it one level deeper.
    for part in [reasoning, &reasoning["reasoningText"]] {
        say(Chunk::Thinking, &part["text"], out);
        say(Chunk::ThinkingSignature, &part["signature"], out);
    }
    if let Some(redacted) = reasoning["redactedContent"].as_str() {
        let signature = Signature::BedrockRedacted(redacted);
        out.push(Chunk::ThinkingSignature(signature.write()));
    }
    say(Chunk::Text, &said["text"], out);
}

fn count(tokens: &Value, out: &mut Chunks) {
    if !tokens.is_null() {
        let count = |name: &str| tokens[name].as_u64();
        out.push(Chunk::Usage(usage(
            count("inputTokens").unwrap_or(0),
            count("outputTokens").unwrap_or(0),
            count("cacheReadInputTokens"),
            count("cacheWriteInputTokens"),
        )));
    }
}
