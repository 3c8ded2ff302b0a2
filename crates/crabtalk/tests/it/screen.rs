//! The chat on a terminal (OPS-1).

mod asked;
mod attention;
mod complete;
mod day;
mod gone;
mod ground;
mod keys;
mod members;
mod others;
mod shared;
mod stream;

use crate::rig::{
    CHAT, CHOICES, Daemon, IDLE, ModelServer, OVER, Relay, TestEnv, Tmux, eventually, has_tools,
};
use crabtalk_proto::{Client, ListAsksMsg, StreamMsg, stream_event};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use futures_util::StreamExt;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const TABLE: &[&str] = &[
    "# Res",
    "ults\n\nSome **bo",
    "ld** words that go on for longer than the narrowest of terminals is wide.\n\n",
    "| name | cr",
    "ates |\n|---|---:|\n| alpha | 12 |\n",
    "| beta | 7 |\n\n```rust\nfn ma",
    "in() {}\n```\n\nThe end.",
];
