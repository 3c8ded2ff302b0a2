//! Ports for records outside the conversations, and for indexes derived from
//! conversations.
//!
//! Invariants: an operation that returned `Ok` survives SIGKILL and a power loss
//! unless its page says otherwise; a failed operation changes nothing. No operation
//! assumes a file, a single process or a synchronous answer.

mod audit;
mod changes;
mod costs;
mod crons;
mod events;
mod passages;

pub use audit::{AuditCheck, AuditEntry, AuditLog, AuditPage};
pub use changes::ChangeJournal;
pub use costs::{COST_DAYS, CostOf, CostReport, CostRow, Costs, ReservedCost};
pub use crons::{CronBooks, CronBooksChange, CronBooksContent, CronFact, CronRow};
pub use events::{Event, Events};
pub use passages::{Candidate, Candidates, IndexedArchive, Passage, PassageQuery, Passages};

/// A failed operation on records; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The disk is full or read-only.
    #[error("cannot write {store}: {reason}; make room or make it writable, then try again")]
    Unwritable {
        /// The database.
        store: String,
        /// The error of the operating system.
        reason: String,
    },
    /// A newer program wrote the database.
    #[error(
        "{store} has format {found}, and this program knows formats up to {known}: update the \
         program, or move the file away to begin without records"
    )]
    Newer {
        /// The database.
        store: String,
        /// The format of the database.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// The content cannot be read.
    #[error(
        "{store} is damaged ({reason}): restore a backup, or move the file away to begin without \
         records"
    )]
    Damaged {
        /// The database.
        store: String,
        /// Description of the fault.
        reason: String,
    },
    /// Entries of the audit were changed or removed; holds the fault.
    #[error(
        "the chain of the audit is broken: {0}; `crabtalk audit verify` names the first wrong \
         entry, `crabtalk audit new-chain` keeps all entries and begins a new chain"
    )]
    BrokenChain(String),
    /// Any other failure.
    #[error("cannot use {store}: {reason}")]
    Failed {
        /// The database.
        store: String,
        /// The error of the operating system.
        reason: String,
    },
}
