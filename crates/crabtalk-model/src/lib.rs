//! Language models behind the domain's `Model` port: providers, registry,
//! retry, fallback and the offline demonstration (MODEL-1 to MODEL-6).
//!
//! Every format is read and written here, on one layer for HTTP. A provider
//! library for Google and Bedrock was measured and left out: 114 crates on top
//! of the binary's 190, and 194 CPU-seconds of debug build where this crate
//! takes 103 with everything it needs and its tests; it tries nothing again,
//! hides status and `Retry-After` of streams, and tells a cut by an event that
//! is missing. Our own costs one small crate for checksums; the hashes that
//! sign come with TLS. What `docs/providers.md` says of each provider is run by
//! the tests.
//!
//! Absent on purpose: configuration files and environment variables (values
//! come in), conversations and tools (the run loop's), the wire protocol,
//! ledgers and budgets (the daemon's; [`cost`] says what a call costs), profiles and instance roles of Amazon's (a
//! key is given). The tasks that move connections are the library's; they belong
//! to the registry and end with it and its last answer.

mod config;

mod base_url;
mod blocks;
mod body;
mod registry;
mod text;

pub mod detect;

mod provider;
mod retry;

mod decode;
mod http;
mod sse;
mod stream;
mod template;

mod anthropic;
mod bedrock;
mod google;
mod openai;

mod claude;
mod sight;
mod signature;
mod turns;
mod web;
mod webhook;

mod offline;

mod failure;
mod known;
mod price;
mod random;

pub use base_url::Error as BaseUrlError;
pub use config::{Kind, ModelConfig, ProviderConfig, Secret};
pub use http::Proxies;
pub use price::{Price, cost};
pub use provider::ConfigError;
pub use registry::{Error, ModelInfo, Registry};
pub use web::{Web, WebBody, WebError};
pub use webhook::post_json;

#[cfg(test)]
mod tests;
