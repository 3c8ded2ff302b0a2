//! The token counts of every answer of the scripted server, in all formats.

/// Tokens of the prompt.
pub const PROMPT_TOKENS: u64 = 13;
/// Tokens of the prompt that came from the cache.
pub const CACHED_TOKENS: u64 = 4;
/// Tokens of the answer.
pub const ANSWER_TOKENS: u64 = 5;
