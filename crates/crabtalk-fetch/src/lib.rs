//! Fetches a page over HTTP(S) as readable text.
//!
//! ```text
//! settings  config/fetch.toml: limits and allowed networks
//! address   judges which addresses are public
//! connect   resolves a name, judges its addresses, connects
//! get       requests, redirects and limits
//! charset   decodes text
//! html      converts HTML to Markdown
//! server    the tool for agents
//! ```
//!
//! Invariants: every address is judged before a byte is sent to it, including targets of
//! redirects and later lookups of a name; size, time and the number of redirects are
//! bounded, and a shortened page says so.
//!
//! Not supported: cookies, credentials, scripts, a cache, a proxy. A proxy would resolve
//! names itself, so that their addresses could not be judged.

mod address;
mod charset;
mod connect;
mod error;
mod get;
mod html;
mod server;
mod settings;

pub use connect::{Resolve, Resolved, System};
pub use error::Error;
pub use get::{Fetcher, Page};
pub use server::Server;
pub use settings::{Settings, SettingsError};
