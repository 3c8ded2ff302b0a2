//! End-to-end tests: the real binary, its daemon and command line, and a scripted model
//! server in a separate process.
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
mod bus;
mod changes_survive;
mod cli;
mod client;
mod components;
mod context;
mod cron;
mod daemon;
mod disk;
mod first_run;
mod guests;
mod images;
mod llama_cpp;
mod mcp;
mod models;
mod nexus;
mod output;
mod processes;
mod projects;
mod queue;
mod remote;
mod returns;
mod rights;
mod screen;
mod scripts;
mod secrets;
mod shelf;
mod switch;
mod team;
mod telemetry;
mod terminal;
mod undo;
mod upgrade;
mod why;
