//! Domain types of CrabTalk and the ports of the run loop.
//!
//! This crate has no I/O, no async runtime, no wire types and no configuration
//! files.

mod agent;
mod event;
mod history;
mod hook;
mod image;
mod image_budget;
mod ledger;
mod message;
mod mode;
mod names;
mod origin;
mod principal;
mod run_end;
mod time;
mod url;

pub mod model;
pub mod records;
pub mod storage;
pub mod tags;
pub mod tool;

pub use agent::{AgentConfig, Budget, Permission, PermissionRule, Scope, glob_matches};
pub use event::{
    AgentEvent, Ask, AskKind, AskOption, AskOutcome, AskQuestion, AskRule, ComponentNews, End,
    ToolCallInfo,
};
pub use history::History;
pub use hook::{Hook, People, Refusal, RunContext, ToolRegistry};
pub use image::{Image, ImageType, MAX_IMAGE_BYTES, MAX_IMAGES, MAX_IMAGES_BYTES};
pub use ledger::{CallTotal, Cost, Ledger, Reservation, Spent};
pub use message::{ContextUse, Message, Role, Thinking, ToolCall, Usage, estimate_tokens};
pub use mode::Mode;
pub use names::{
    AgentName, ConversationKey, NameError, Sender, approval_sender, check_name, is_owner,
};
pub use origin::Origin;
pub use principal::{Principal, TokenName};
pub use run_end::{RunEnded, RunEnds, RunOutcome};
pub use time::{Clock, SystemClock, stamp};
pub use url::{MASK, masked_url};

use std::future::Future;
use std::pin::Pin;

/// A boxed future, so that ports stay object-safe. Dropping it cancels it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed stream, so that ports stay object-safe. Dropping it cancels it.
pub type BoxStream<'a, T> = Pin<Box<dyn futures_core::Stream<Item = T> + Send + 'a>>;
