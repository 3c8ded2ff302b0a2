//! The messages, generated from `proto/crabtalk.proto`, which documents them.

#![allow(clippy::all, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/crabtalk.protocol.rs"));
