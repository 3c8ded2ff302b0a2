//! A client of the daemon: finds or starts it, calls it, and follows runs and events
//! over lost connections.
//!
//! ```no_run
//! use crabtalk_client::{Client, Endpoint, RunNews, StreamMsg, stream_event::Event};
//! use futures_util::StreamExt;
//!
//! # async fn example() -> Result<(), crabtalk_client::Error> {
//! let client = Client::new(Endpoint::of_home("/home/me/.crabtalk"), "example/1");
//! let mut run = client.stream(StreamMsg { content: "hello".into(), ..Default::default() });
//! while let Some(news) = run.next().await {
//!     if let RunNews::Event(event) = news?
//!         && let Some(Event::Chunk(chunk)) = event.event
//!     {
//!         print!("{}", chunk.content);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! client    the handle: connect, call one operation
//! remote    a daemon on another machine: address, token, pinned certificate
//! endpoint  the daemon's address, a connection, and the handshake
//! start     starts the daemon on demand
//! run       one run, followed to its end
//! watch     the events of all runs
//! follow    the reconnect loop of both
//! error     errors and their codes
//! advice    remedies for errors
//! ```
//!
//! Invariants: dropping a future or a stream has no effect on the daemon: a run continues without its
//! reader (CONV-4); this crate spawns no task; memory does not grow with the number of events.

mod advice;
mod client;
mod endpoint;
mod error;
mod follow;
mod remote;
mod run;
mod start;
mod watch;

#[cfg(test)]
mod tests;

pub use client::{Client, Replied};
pub use crabtalk_proto::*;
pub use crabtalk_transport::Fingerprint;
pub use endpoint::{Connection, Endpoint};
pub use error::Error;
pub use follow::News;
pub use remote::{Address, Remote, fingerprint};
pub use run::{Run, RunNews, new_request_id};
pub use start::Starter;
pub use watch::{Watch, WatchNews};

/// The version of this crate, which equals the daemon's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
