//! The wire protocol of CrabTalk: messages, codec, limits, Client and Server.

pub mod message;

pub use message::*;
