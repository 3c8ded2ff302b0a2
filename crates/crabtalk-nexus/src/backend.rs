//! The port between NEXUS and one agent: events from it, and calls to it.
//!
//! ```text
//! port      the port: calls in, and the stream of events out
//! event     events of an agent, each with its evidence
//! prompt    a tool prompt that waits for an answer
//! answer    results and failures of calls
//! ```
//!
//! Conversations of the daemon and programs in terminals implement the port, and one state
//! machine drives both.
//!
//! The port has no states, mail, approval rules or timers. An agent
//! reports observations, and the state machine interprets them.

mod answer;
mod event;
mod port;
mod prompt;

pub use answer::{Answered, Compressed, Failure, Launch, Look, Mark, Probe, Submission, Submitted};
pub use event::{Event, Evidence, Exit, Source, Turn, What};
pub use port::{Backend, Call, Events};
pub use prompt::{Prompt, Reply};
