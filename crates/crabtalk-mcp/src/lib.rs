//! Servers of the Model Context Protocol, as tools of agents (COMP-1 to COMP-3).
//!
//! A server is a component that a port file announces, a program that is started
//! on first use, or an address. One task owns one server: it connects, lists the
//! tools, pings, detects the end and reconnects. Calls read the state that the task
//! publishes.
//!
//! Invariants: the failure of a server affects only its own calls; nothing is sent to
//! a port of the loopback before its owner is known; a program ends with this process,
//! even if that is killed.
//!
//! This crate decides no permission or scope, which belong to the gate, and does not know the
//! paths of the configuration and of port files.

mod answers;
mod call;
mod declarations;
mod elicit;
mod handler;
mod http;
mod link;
mod list;
mod listed;
mod loopback;
mod names;
mod oauth;
mod output;
mod owner;
mod pipes;
mod program;
mod program_output;
mod provider;
mod said;
mod server;
mod servers;
mod settings;
mod streamable;
mod test;

pub use http::{Http, HttpError, HttpRequest, HttpResponse};
pub use names::{MAX_SERVER_NAME, check_server_name};
pub use oauth::{OAuthClient, Secret};
pub use output::Outputs;
pub use owner::{Behind, Listener};
pub use program::Programs;
pub use server::{Pace, Phase, ServerStatus};
pub use servers::{FoundPort, Parts, Servers};
pub use settings::{Settings, Source, Transport, Trust};
pub use test::{Tested, TestedTool};
