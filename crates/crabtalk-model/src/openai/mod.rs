//! OpenAI's chat completions and the many servers that speak them almost so.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::body;

#[cfg(test)]
mod tests;
