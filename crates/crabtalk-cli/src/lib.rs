//! The command line of `crabtalk`, a client of the protocol.
//!
//! ```text
//! args      the command line
//! dispatch  from the command line to a command; external commands; questions
//! programs  crabtalk-NAME beside this program and on PATH
//! project   who a person is in the folder where they stand
//! context   what every command has at hand: home, options, person, daemon
//! commands  one module per command that asks once and prints
//! ask chat  the commands that follow a run
//! follow    a run's events as they come, questions answered meanwhile
//! prompt    a question or approval as people see and answer it
//! view      a run's events on the screen; history the messages of before
//! shown     images that a person shows with a message
//! editor    text that a person writes in an editor, or gives as a file
//! screen    standard output and error; terminal the controlling terminal
//! system    what one kind of system has of its own
//! ```
//!
//! Invariants: text of models and tools reaches a terminal without control characters;
//! answers go to standard output, everything else to standard error; each request uses
//! a connection of its own, also replies and kills (WIRE-4).
//!
//! Must not contain the daemon: the binary passes `daemon run` as a function.

mod args;
mod dispatch;
mod error;

mod context;

mod ask;
mod changes;
mod chat;
mod commands;
mod follow;

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

#[cfg(test)]
mod tests;

pub use dispatch::{DaemonOptions, Host, main};
