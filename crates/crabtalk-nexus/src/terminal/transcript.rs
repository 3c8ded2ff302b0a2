//! Transcripts of sessions, which agents write and NEXUS reads as they grow.
//!
//! ```text
//! form   converts one line of each program's form to common records
//! tail   reads a growing file line by line, within bounds
//! place  finds the file
//! turns  combines records to turns
//! ```
//!
//! Invariants: no line is trusted to be well-formed; a line
//! that cannot be parsed is skipped, an incomplete one is read when it is complete; no
//! step reads more than [`tail::STEP_BYTES`].

mod form;
pub(crate) mod place;
pub(crate) mod tail;
pub(crate) mod turns;

pub use form::Form;
pub(crate) use form::{Reader, Record};
