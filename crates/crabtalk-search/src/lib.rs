//! Full-text search over folders that a person names: documents, notes, code.
//!
//! ```text
//! settings  config/search.toml: the folders, and what is left out
//! open      files and folders without following a link
//! walk      the files of a folder that its ignore files leave
//! rules     what looks like a secret
//! words     text as the index takes it, and what is asked of it
//! index     the index in state/search/index.db
//! update    brings it up to date with the folders
//! find      hits, with the lines that fit
//! server    the tools of agents
//! ```
//!
//! Invariants: nothing outside the named folders is ever opened, whatever links lie in
//! them; what was left out of the index is not shown either; the index can be thrown
//! away at any time and holds nothing that the files do not say.
//!
//! Absent on purpose: what files of office programs and PDFs say, and meaning: words
//! are found, not what they are about.

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
