//! Fetches a page over HTTP(S) as text that a model or a person can read.
//!
//! ```text
//! settings  config/fetch.toml: limits, and which networks are allowed
//! address   which addresses are somebody's own network
//! connect   resolves a name once, judges what came, connects to that
//! get       the request, redirects and limits
//! charset   bytes to characters
//! html      a page to Markdown
//! server    the tool of agents
//! ```
//!
//! Invariants: no byte goes to an address that was not judged, whatever named it: the
//! person's text, a redirect, or a name that resolves to another address the next
//! time. Size, time and the number of redirects are bounded, and what was cut says so.
//!
//! Absent on purpose: cookies, credentials, scripts, a cache, a proxy. A proxy would
//! resolve names by itself, so that nothing here could judge them.

mod address;
mod charset;
mod connect;
mod error;
mod get;
mod html;
mod server;
mod settings;

pub use address::{Kind, judge};
pub use connect::{Resolve, Resolved, System};
pub use error::Error;
pub use get::{Fetcher, Page};
pub use server::Server;
pub use settings::{Settings, SettingsError};
