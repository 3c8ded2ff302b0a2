//! Amazon Bedrock's `ConverseStream` API.

mod decode;
mod encode;
mod frames;
mod sign;

pub(crate) use decode::Decoder;
pub(crate) use encode::body;
pub(crate) use frames::Frames;
pub(crate) use sign::{Credentials, escape};

#[cfg(test)]
mod tests;
