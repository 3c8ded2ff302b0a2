//! The command line of `crabtalk`, a client of the protocol.
//!
//! ```text
//! args      the command line
//! dispatch  runs a command, an external program or a question
//! programs  external programs: crabtalk-NAME next to this program and on PATH
//! project   the sender of a folder
//! context   home, options, sender and daemon of a command
//! commands  one module per command that makes requests and prints
//! ask chat  the commands that follow a run
//! completions  shell completions, with names from the daemon
//! follow    the events and questions of a run
//! prompt    prompts for questions and approvals
//! view      prints events of a run; history prints messages
//! shown     images attached to a message
//! fuzzy     ranks names and paths for a pattern
//! editor    text from an editor or a file
//! todo      todo lists of agents
//! screen    standard output and error; terminal: the controlling terminal
//! system    system calls
//! ```
//!
//! Invariants: text of models and tools has no control characters on a terminal;
//! answers go to standard output, everything else to standard error; each request uses
//! a separate connection, including replies and kills (WIRE-4); the daemon is not part of
//! this crate: the binary passes `daemon run` as a function.

mod args;
mod dispatch;
mod error;

mod context;

mod ask;
mod changes;
mod chat;
mod commands;
mod completions;
mod follow;

mod fuzzy;
mod history;
mod prompt;
mod remotes;
mod view;

mod editor;
mod json;
mod programs;
mod project;
mod screen;
mod shown;
mod stdin;
mod switch;
mod system;
mod table;
mod terminal;
mod text;
mod todo;
mod topic;

#[cfg(test)]
mod tests;

pub use dispatch::{DaemonOptions, Host, main};
