//! A client of the daemon: find or start it, call it, follow runs and events
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
//! client    the handle: connect, call one operation, follow
//! remote    a daemon elsewhere: its address, a token, the pinned certificate
//! endpoint  where the daemon is; a connection to it, and the handshake
//! start     the daemon, started on demand
//! run       one run, followed to its end
//! watch     what happens in all runs
//! news      both as streams
//! again     pauses between attempts
//! system    what one kind of system has of its own
//! error     what went wrong, and its code
//! advice    what a person can do about it
//! ```
//!
//! Invariants: nothing panics; dropping a future or a stream cancels what it
//! does on this side, and only there: a run goes on without its reader
//! (CONV-4); no task is spawned and no queue grows with what a daemon sends;
//! an event is given once.
//!
//! Absent on purpose: the terminal, configuration, what an answer looks like.

mod advice;
mod again;
mod client;
mod endpoint;
mod error;
mod news;
mod remote;
mod run;
mod start;
mod system;
mod watch;

#[cfg(test)]
mod tests;

pub use client::{Client, Replied};
pub use crabtalk_proto::*;
pub use crabtalk_transport::Fingerprint;
pub use endpoint::{Connection, Endpoint};
pub use error::Error;
pub use news::News;
pub use remote::{Address, Remote, fingerprint};
pub use run::{Run, RunNews, new_request_id};
pub use start::Starter;
pub use watch::{Watch, WatchNews};

/// The version of this crate, which is that of the daemon it belongs to.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
