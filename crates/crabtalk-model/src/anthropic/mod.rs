//! Anthropic's messages.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::body;

/// Marks a signature that is a redacted thinking block's data, which goes back
/// in a block of another type.
const REDACTED: &str = "redacted_thinking:";

#[cfg(test)]
mod tests;
