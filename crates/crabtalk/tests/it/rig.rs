//! Support code of the end-to-end tests.

mod client;
mod command;
mod env;
mod llama_cpp;
mod model;
mod picture;
mod relay;
mod tmux;
mod wait;

pub(crate) use client::{asked, chunks, end_of, entries, kinds, stream_to_end};
pub(crate) use command::{CRABTALK, run as run_to_end};
pub(crate) use crabtalk_testkit::tools::{has_tools, installed, skip, skipped};
pub(crate) use env::{ALLOW_CORES, Daemon, TestEnv, WITHOUT_RIGHTS, gone};
pub(crate) use llama_cpp::LlamaCpp;
pub(crate) use model::ModelServer;
pub(crate) use relay::Relay;
pub(crate) use tmux::{CHAT, CHOICES, IDLE, OVER, Tmux};
pub(crate) use wait::{eventually, within};
