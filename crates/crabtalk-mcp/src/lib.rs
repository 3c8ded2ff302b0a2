//! Servers of the Model Context Protocol, as tools of agents (COMP-1 to COMP-3).
//!
//! A server is a component that a port file announces, a program that is started
//! on first use, or an address. One task owns one server: it connects, asks for
//! the tools, pings, notices the end and connects again. Whoever calls a tool
//! only looks at what that task has found out.
//!
//! Invariants: a server's trouble is its own, it costs no other server and no run
//! more than its own calls; nothing that could be a secret is sent before it is
//! known whose program listens; without a server there is no task, no connection
//! and no buffer; a program ends with this process, however that ends.
//!
//! Absent on purpose: permission and scope, which the gate has; where the
//! configuration lies; what a port file's folder looks like.

mod answers;
mod beside;
mod bounds;
mod call;
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
mod provider;
mod said;
mod seen;
mod server;
mod servers;
mod settings;
mod streamable;
mod test;
mod values;
mod words;

pub use http::{Http, HttpError, HttpRequest, HttpResponse};
pub use names::{MAX_SERVER_NAME, check_server_name};
pub use oauth::{LoggedOut, OAuthClient, Secret};
pub use output::Outputs;
pub use owner::{Behind, Listener};
pub use program::Programs;
pub use server::{Pace, Phase, ServerStatus};
pub use servers::{Found, Parts, Servers};
pub use settings::{Settings, Source, Transport, Trust};
pub use test::{Tested, TestedTool};
