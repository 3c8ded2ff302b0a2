//! Conversations, runs and steps, and the gate that every tool call passes.
//!
//! In reading order: a [`Runtime`] keeps a registry of conversations; one task owns each
//! conversation while it has work; a run executes an agent on it, step by step, and
//! publishes events to a [`RunLog`] that any number of clients read.
//!
//! This crate contains no wire types, files, processes, configuration formats, skills,
//! memory or MCP. The ports of `crabtalk-domain` provide them.

mod asks;
mod catalog;
mod command;
mod compaction;
mod conversation;
mod delegates;
mod ends;
mod error;
mod events;
mod facts;
mod framing;
mod grants;
mod history;
mod inner;
mod listen;
mod open;
mod publisher;
mod registry;
mod request;
mod router;
mod run;
mod runtime;
mod spending;
mod toolbox;
mod turns;

pub use asks::{Answer, PendingAsk};
pub use catalog::{Catalog, Limits};
pub use conversation::Rewound;
pub use crabtalk_gate::approvals::ApprovalBook;
pub use delegates::DelegateNumbers;
pub use error::Error;
pub use events::{
    COMPACTION, HubEvent, HubSubscription, Missed, RunAnswer, RunLog, Sequenced, Subscription,
    Waits,
};
pub use registry::LiveInfo;
pub use request::RunRequest;
pub use runtime::{Parts, Runtime};
