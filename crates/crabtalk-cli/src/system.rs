//! What one kind of system has of its own.
//!
//! Invariant: nothing outside of these modules names what only one kind of
//! system has.

/// What a disk has for us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) read_only: bool,
    pub(crate) free: u64,
}

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
