//! Files read within bounds and replaced whole.
//!
//! ```text
//! read         a regular file of a bounded size, opened without waiting
//! replace      a file that a crash leaves old or new, never half of one
//! way          a path, followed link by link
//! tables       lists of numbered tables in TOML, edited with comments kept
//! yaml         the frontmatter of files, with positions
//! zone         the time zone of this machine
//! system       calls of the operating system
//! ```
//!
//! Invariants: opening does not wait and reading ends, also for a pipe, a device
//! or a folder in place of a file; no more than the caller's limit reaches memory.
//!
//! Absent: what a file means but for where its frontmatter ends, and anything asynchronous. A disk that does not
//! answer holds the thread that asks it: call from one that may wait.

mod error;
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
pub use frontmatter::Frontmatter;
pub use read::{if_there, open, open_to_append, read, read_open, read_text, regular};
pub use replace::{
    Existing, commit, create_folder, is_left_over, remove, stage, sweep, unfinished, write,
};
pub use way::{PathStep, Way};
pub use zone::local_zone;
