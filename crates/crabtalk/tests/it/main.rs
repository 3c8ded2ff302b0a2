//! End-to-end tests: the real binary, its daemon, its command line, and a
//! scripted model server in a process of its own.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

mod rig;

mod attach;
mod backup;
mod bad_input;
mod broken;
mod budgets;
mod bus;
mod changes_survive;
mod cli;
mod client;
mod components;
mod context;
mod cron;
mod crowd;
mod daemon;
mod disk;
mod first_run;
mod guests;
mod images;
mod llama_cpp;
mod mcp;
mod models;
mod nexus;
mod numbers;
mod output;
mod processes;
mod projects;
mod queue;
mod remote;
mod rights;
mod screen;
mod scripts;
mod secrets;
mod senders;
mod settled;
mod shelf;
mod switch;
mod team;
mod telemetry;
mod terminal;
mod undo;
mod upgrade;
mod why;
