//! Files read within bounds, replaced whole, and known again.
//!
//! ```text
//! read         a regular file of a bounded size, opened without waiting
//! replace      a file that a crash leaves old or new, never half of one
//! fingerprint  whether files are as they were when something was made of them
//! way          a path, followed link by link
//! tables       lists of numbered tables in TOML, edited with comments kept
//! yaml         what stands at the head of files, with positions
//! zone         the time zone of this machine
//! system       what one kind of system has of its own
//! ```
//!
//! Invariants: whatever lies where a file should be, a pipe, a device, a
//! folder, opening it waits for nobody and reading it ends; of what a person or
//! a program put there no more than the caller's limit reaches memory.
//!
//! Absent: what a file means but for where its frontmatter ends, and anything asynchronous. A disk that does not
//! answer holds the thread that asks it: call from one that may wait. Only
//! [`Fingerprint::holds`] may be asked on any: fingerprints are given out for files
//! on local disks alone, where asking takes about a microsecond a file.

mod error;
mod fingerprint;
mod frontmatter;
mod read;
mod replace;
mod system;
mod way;
mod zone;

pub mod tables;
pub mod tree;
pub mod yaml;

pub use error::Error;
pub use fingerprint::{Fingerprint, Trace};
pub use frontmatter::Frontmatter;
pub use read::{if_there, open, open_to_append, read, read_open, read_text, regular};
pub use replace::{
    Existing, commit, create_folder, is_left_over, remove, stage, sweep, unfinished, write,
};
pub use way::{PathStep, Way};
pub use zone::local_zone;
