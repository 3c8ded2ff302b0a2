//! Anthropic's Messages API.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::body;
