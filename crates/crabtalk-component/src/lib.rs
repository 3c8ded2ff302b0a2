//! What a program needs to be a component of CrabTalk.
//!
//! A component is a program of its own. It installs itself as a service of the
//! system, writes the port that it listens on to the home's `run/` folder, and
//! offers tools there by the Model Context Protocol. The daemon finds it by that
//! file, and neither is the other's parent: a component that crashes costs its own
//! tools and nothing else (COMP-1).
//!
//! ```no_run
//! use crabtalk_component::{Component, Mcp, rmcp};
//! use rmcp::{handler::server::wrapper::Parameters, schemars, tool, tool_router};
//!
//! #[derive(Clone)]
//! struct Dice;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Roll {
//!     /// How many sides the die has.
//!     sides: u32,
//! }
//!
//! #[tool_router(server_handler)]
//! impl Dice {
//!     /// Rolls a die.
//!     #[tool]
//!     fn roll(&self, Parameters(Roll { sides }): Parameters<Roll>) -> String {
//!         fastrand::u32(1..=sides.max(1)).to_string()
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let component = Component::new("dice", "Rolls dice");
//!     crabtalk_component::run(Mcp::new(component, || Dice))
//! }
//! ```
//!
//! Invariants: a port file is written whole and only after the listener answers; it
//! is removed by whoever wrote it and by nobody else; what is not this machine's
//! loopback is never listened on.

mod cli;
mod component;
mod gate;
mod home;
mod mcp;
mod peer;
mod port;
mod seen;
mod serve;
mod service;
#[cfg(target_os = "linux")]
pub mod sockets;
mod system;

pub use cli::{Action, DryRun, run, run_action};
pub use component::{Component, InvalidName};
pub use gate::serve_http;
pub use home::Home;
pub use mcp::Mcp;
pub use port::{Announced, InvalidPort, MAX_PORT_FILE_BYTES, PortFile};
pub use seen::Seen;
pub use serve::{McpService, Service, run_mcp, stop_signal};
pub use service::{Definition, Manager, Plan};

pub use {axum, rmcp};
