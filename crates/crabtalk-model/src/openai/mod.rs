//! OpenAI's Chat Completions API and servers with minor deviations from it.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::body;

#[cfg(test)]
mod tests;
