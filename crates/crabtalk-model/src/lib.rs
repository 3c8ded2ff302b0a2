//! Language models behind the domain's `Model` port: providers, registry,
//! retry, fallback and the offline demonstration (MODEL-1 to MODEL-6).
//!
//! Absent on purpose: configuration files and environment variables (values
//! come in), conversations and tools (the run loop's), the wire protocol, and
//! tasks: whoever polls an answer drives its connection.

mod config;

mod base_url;
mod registry;

pub mod detect;

mod provider;
mod retry;

mod http;
mod sse;
mod stream;
mod template;

mod anthropic;
mod bedrock;
mod google;
mod openai;

mod claude;
mod format;
mod signature;
mod turns;

mod offline;

mod failure;
mod known;
mod price;
mod random;

pub use base_url::Error as BaseUrlError;
pub use config::{Kind, ModelConfig, ProviderConfig, Secret};
pub use price::{Price, cost};
pub use provider::ConfigError;
pub use registry::{Error, ModelInfo, Registry};
