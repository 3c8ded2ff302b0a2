//! The messages, generated from `proto/crabtalk.proto`, which documents them.

#![allow(
    missing_docs,
    clippy::all,
    reason = "generated code; the schema carries the comments"
)]

include!(concat!(env!("OUT_DIR"), "/crabtalk.protocol.rs"));
