//! The port between NEXUS and one agent: what the agent tells, and what NEXUS
//! may ask of it.
//!
//! ```text
//! backend   the port: calls in, and the stream of events out
//! event     what an agent tells, each with its evidence
//! prompt    a tool prompt that waits for an answer
//! answer    what calls answer, and why they fail
//! ```
//!
//! Two kinds of agent stand behind it, conversations of the daemon and programs
//! in terminals, and one state machine drives both. It is a crate so that the
//! terminals need not know the supervisor, nor the supervisor's states them.
//!
//! Absent on purpose: states, mail, rules of approval, time. An agent tells
//! what it saw; what that means is decided by who asked.

mod answer;
mod backend;
mod event;
mod prompt;

pub use answer::{
    Answered, Compressed, Compression, Failure, Launch, Look, Mark, Probe, Submission, Submitted,
};
pub use backend::{Backend, Call, Events};
pub use event::{Event, Evidence, Exit, Source, Turn, What};
pub use prompt::Prompt;
