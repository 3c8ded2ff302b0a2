//! What an agent writes down of its session, read as it grows.
//!
//! ```text
//! form   one line of each program's form, as records that all have in common
//! tail   a file that grows, line by line, within bounds
//! place  which file it is
//! turns  records put together to turns
//! ```
//!
//! Invariants: nothing that a program writes is trusted to be well formed; a line
//! that is not understood is passed over, a torn one is read when it is whole; no
//! step reads more than [`tail::STEP_BYTES`].

mod form;
pub(crate) mod place;
pub(crate) mod tail;
pub(crate) mod turns;

pub use form::Form;
pub(crate) use form::{Reader, Record};
