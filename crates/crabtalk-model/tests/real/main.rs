//! Real servers instead of scripted ones: other implementations read our
//! requests and writes the answers.
//!
//! A test whose server is not installed is skipped by name, unless
//! `CRABTALK_REQUIRE_TOOLS=1` forbids that.

mod litellm;
mod program;
#[path = "../support/mod.rs"]
mod support;
