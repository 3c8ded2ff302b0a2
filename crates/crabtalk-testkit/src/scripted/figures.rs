//! What every answer of the scripted server says that it used.

/// What the figures of every answer say, whatever they are called.
pub const PROMPT_TOKENS: u64 = 13;
/// Of those, what came from the cache.
pub const CACHED_TOKENS: u64 = 4;
/// Tokens of the answer.
pub const ANSWER_TOKENS: u64 = 5;
