//! Language models behind the domain's `Model` port: providers, registry,
//! retry, fallback and the offline demonstration (MODEL-1 to MODEL-6).
//!
//! All formats share one HTTP layer. A provider library was rejected: it adds 114 crates, and hides the
//! status and `Retry-After` of streams. The tests run every statement of `docs/providers.md`.
//!
//! Invariants: configuration and environment are passed as values; connection tasks belong
//! to the registry and end with it and its last answer.

mod config;

mod base_url;
mod blocks;
mod body;
mod registry;

pub mod detect;

mod provider;
mod retry;

mod decode;
mod http;
mod sse;
mod stream;

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
