//! A library for components of CrabTalk.
//!
//! A component is a separate program. It installs itself as a service of the system, offers tools by
//! the Model Context Protocol on a loopback port, and writes the port to the home's `run/` folder, where
//! the daemon finds it. Neither process is the other's parent: a crash of a component affects only
//! its own tools (COMP-1).
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
//! Invariants: a port file is written atomically, after the listener is ready, and
//! removed only by the process that wrote it; components with tools listen only on
//! loopback; listeners refuse agents' commands.

mod cli;
mod component;
mod home;
mod listener;
mod mcp;
mod port;
mod public;
mod request_ids;
mod serve;
mod service;
mod system;

pub use cli::{Action, DryRun, run, run_action};
pub use component::{Component, InvalidName};
pub use home::Home;
pub use listener::Listener;
pub use mcp::Mcp;
pub use port::{Announced, InvalidPort, MAX_PORT_FILE_BYTES, PortFile};
pub use public::serve_http;
pub use request_ids::RequestIds;
pub use serve::{McpService, Service, run_mcp, stop_signal};
pub use service::{Definition, Manager, Plan};

pub use {axum, rmcp};
