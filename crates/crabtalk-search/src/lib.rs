//! Full-text search over folders that a person names: documents, notes, code.
//!
//! ```text
//! settings  config/search.toml: folders and exclusions
//! open      opens files and folders without following links
//! walk      lists the files of a folder, with its ignore files
//! rules     excludes secrets and binary files
//! words     splits text and queries into words
//! index     the index in state/search/index.db
//! update    updates the index
//! find      hits with their lines
//! server    the tools for agents
//! ```
//!
//! Invariants: nothing outside the named folders is opened, not even through links; excluded
//! files are never shown; the index can be deleted at any time.
//!
//! Not supported: office documents, PDFs, and semantic search.

mod find;
mod index;
mod open;
mod rules;
mod server;
mod settings;
mod update;
mod walk;
mod words;

pub use find::{Hit, Lines};
pub use index::{Error, Index};
pub use server::{Search, Server};
pub use settings::{Settings, SettingsError};
pub use update::Updated;
