//! Conversations, runs and steps, and the one gate that every tool call
//! passes.
//!
//! In reading order: a [`Runtime`] keeps a registry of conversations; one task
//! owns each conversation while it has work; a run executes an agent on it,
//! step by step, and publishes what happens to a [`RunLog`] that any number of
//! clients read.
//!
//! Absent on purpose: wire types, files, processes, configuration formats,
//! skills, memory, MCP. They come in through the ports of `crabtalk-domain`.

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
