//! The wire protocol of CrabTalk: messages, codec, limits, codes, and the
//! [`Client`] and [`Server`] traits.
//!
//! The schema `proto/crabtalk.proto` documents the protocol. This crate has no sockets, no
//! domain types, and does not define what an operation does.

mod client;
mod convert;
mod error;
mod json;
mod message;
mod operation;
mod role;
mod server;
mod status;
mod visible;

pub mod codec;

pub use bytes::Bytes;
pub use client::Client;
pub use codec::{FrameError, MAX_FRAME, TooLarge};
pub use convert::Request;
pub use error::ClientError;
pub use message::*;
pub use role::{OPERATIONS, Operation, Role};
pub use server::{Reply, Server};
pub use status::{Status, code};
pub use visible::{visible, visible_prose};

/// The version that Hello and Welcome carry.
pub const PROTOCOL_VERSION: u32 = 1;
