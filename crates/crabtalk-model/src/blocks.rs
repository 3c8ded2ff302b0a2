//! Messages and answers as lists of blocks, as in Anthropic's and Bedrock's formats.
//! Invariants: an empty message has no blocks, since providers refuse empty ones;
//! calls are numbered densely in the order in which they begin, although the provider
//! numbers them among all blocks.

use crate::body::{call_in_words, result_in_words, says_something};
use crate::decode::{Broken, Chunks, new_call_id, text};
use crate::signature::Signature;
use crabtalk_domain::model::{Chunk, StopReason};
use crabtalk_domain::{Image, Message, Role, ToolCall, Usage};
use serde_json::Value;

/// How one of the formats writes the blocks of a message.
pub(crate) trait Blocks {
    fn text(text: &str) -> Value;
    /// A reasoning block; `None` if the signature is not valid for this format.
    fn thought(text: &str, signature: Signature<'_>) -> Option<Value>;
    fn image(image: &Image) -> Value;
    fn call(call: &ToolCall) -> Value;
    fn result(message: &Message, content: &str, images: Vec<Value>) -> Value;
}

/// The blocks of a message. With `as_text`, calls and results become text.
pub(crate) fn blocks<B: Blocks>(message: &Message, has_guests: bool, as_text: bool) -> Vec<Value> {
    if !says_something(message) {
        return Vec::new();
    }
    let content = message.rendered(has_guests);
    let images = message.images.iter().map(B::image);
    if message.role == Role::Tool {
        if as_text {
            let told = B::text(&result_in_words(message, &content));
            return std::iter::once(told).chain(images).collect();
        }
        return vec![B::result(message, &content, images.collect())];
    }
    // Only the guest could prove a guest's thinking.
    let own = message.agent.is_empty();
    let thoughts = message.thinking.iter().filter(|_| own);
    let mut blocks: Vec<Value> = thoughts
        .filter_map(|thought| B::thought(&thought.text, Signature::read(&thought.signature)))
        .collect();
    // Images precede the text about them, so that the cache mark is on the text.
    blocks.extend(images);
    if !content.trim().is_empty() {
        blocks.push(B::text(&content));
    }
    blocks.extend(message.tool_calls.iter().map(|call| {
        if as_text {
            B::text(&call_in_words(call))
        } else {
            B::call(call)
        }
    }));
    blocks
}

/// The calls of an answer, as received so far.
#[derive(Default)]
pub(crate) struct Calls(Vec<PartialCall>);

struct PartialCall {
    /// The provider's number of the block.
    block: u64,
    /// The whole input, unless it is streamed.
    given: String,
    streamed: bool,
}

impl Calls {
    /// Begins a call. `given` is its input, unless the input is streamed.
    pub(crate) fn begin(
        &mut self,
        block: u64,
        (id, name): (String, String),
        given: String,
        out: &mut Chunks,
    ) -> Result<(), Broken> {
        if name.is_empty() {
            return Err(Broken::Nonsense("a tool call without a name".into()));
        }
        let index =
            u32::try_from(self.0.len()).map_err(|_| Broken::Nonsense("too many calls".into()))?;
        let id = if id.is_empty() { new_call_id() } else { id };
        self.0.push(PartialCall {
            block,
            given,
            streamed: false,
        });
        out.push(Chunk::ToolCallStart { index, id, name });
        Ok(())
    }

    /// Appends a fragment of a call's input.
    pub(crate) fn input(
        &mut self,
        block: u64,
        fragment: String,
        out: &mut Chunks,
    ) -> Result<(), Broken> {
        if fragment.is_empty() {
            return Ok(());
        }
        let Some((index, call)) = self.find(block) else {
            let message = format!("arguments for block {block}, which is not a tool call");
            return Err(Broken::Nonsense(message));
        };
        call.streamed = true;
        out.push(Chunk::ToolCallArguments { index, fragment });
        Ok(())
    }

    /// Ends a block: an input that was not streamed is the input given at its
    /// beginning.
    pub(crate) fn end(&mut self, block: u64, out: &mut Chunks) {
        if let Some((index, call)) = self.find(block)
            && !std::mem::replace(&mut call.streamed, true)
        {
            let fragment = std::mem::take(&mut call.given);
            out.push(Chunk::ToolCallArguments { index, fragment });
        }
    }

    fn find(&mut self, block: u64) -> Option<(u32, &mut PartialCall)> {
        let mut all = (0..).zip(&mut self.0);
        all.find(|(_, call)| call.block == block)
    }

    /// The stop reason of an answer with these calls.
    pub(crate) fn stop(&self, reason: Option<StopReason>) -> Option<StopReason> {
        match reason {
            Some(StopReason::Done) if !self.0.is_empty() => Some(StopReason::ToolCalls),
            reason => reason,
        }
    }
}

/// Pushes a text if it is present and not empty.
pub(crate) fn say(chunk: fn(String) -> Chunk, said: &Value, out: &mut Chunks) {
    let said = text(said);
    if !said.is_empty() {
        out.push(chunk(said));
    }
}

/// The usage of an answer. `input` excludes tokens read from or written to the cache.
pub(crate) fn usage(input: u64, output: u64, read: Option<u64>, written: Option<u64>) -> Usage {
    let missed = input.saturating_add(written.unwrap_or(0));
    let cached = read.or(written.map(|_| 0));
    Usage {
        prompt_tokens: missed.saturating_add(read.unwrap_or(0)),
        completion_tokens: output,
        cache_hit_tokens: cached,
        cache_miss_tokens: cached.map(|_| missed),
        reasoning_tokens: None,
    }
}
