//! The memory of CrabTalk: entries as files, a text index, recall.
//!
//! [`Memory`] implements ports of the daemon: a [`Hook`](crabtalk_domain::Hook) that
//! injects recalled texts into a run, and a
//! [`ToolProvider`](crabtalk_domain::tool::ToolProvider) with `remember`, `forget`,
//! `recall` and `memory` (MEM-1). It consists of the text analysis, the index and two
//! indexed sources: entry files and archives.
//!
//! The crate deliberately uses no database, model or network. Indexes are derived: the
//! first recall builds the entry index in memory; the archive index is behind
//! [`Passages`](crabtalk_domain::records::Passages).

mod archives;
mod entries;
mod error;
mod hook;
mod import;
mod index;
mod memory;
mod project;
mod render;
mod text;
mod tools;
mod view;

#[cfg(test)]
mod tests;

pub use archives::ArchiveIndex;
pub use entries::{Entry, MAX_CONTENT_BYTES, MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
pub use error::{Error, Warning};
pub use import::ImportReport;
pub use memory::{FoundIn, Hit, MAX_HITS, Memory, NewEntry, Parts, Recalled, Settings};
pub use project::{Instruction, Project, Trusts};
pub use view::{Owners, Viewer};

/// Days since 1970-01-01.
fn days(date: jiff::civil::Date) -> i32 {
    date.since(jiff::civil::date(1970, 1, 1))
        .map_or(0, |span| span.get_days())
}
