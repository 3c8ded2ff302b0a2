//! Bounded reads and atomic replacement of files.
//!
//! ```text
//! read         a regular file of a bounded size, opened without blocking
//! replace      a file that has its old or its new content after a crash
//! path_walk    a path, resolved link by link
//! tables       lists of numbered tables in TOML, edited with comments kept
//! yaml         the frontmatter of files, with positions
//! zone         the time zone of this machine
//! system       calls of the operating system
//! ```
//!
//! Invariants: opening does not block and reading ends, also for a pipe, a device or a folder
//! in place of a file; at most the caller's limit is read into memory.
//!
//! This crate does not interpret files beyond their frontmatter, and is not asynchronous: a
//! disk that does not answer blocks the calling thread.

mod error;
mod frontmatter;
mod path_walk;
mod read;
mod replace;
mod system;
mod zone;

pub mod tables;
pub mod tree;
pub mod yaml;

pub use error::Error;
pub use frontmatter::Frontmatter;
pub use path_walk::{PathStep, PathWalk};
pub use read::{if_there, open, open_to_append, read, read_open, read_text, regular};
pub use replace::{
    Existing, commit, create_folder, is_left_over, remove, stage, sweep, unfinished, write,
};
pub use zone::local_zone;
