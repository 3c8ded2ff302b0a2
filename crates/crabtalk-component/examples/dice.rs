//! A component with one tool: `cargo run --example dice -- serve`.

use crabtalk_component::{Component, Mcp};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use std::process::ExitCode;

#[derive(Clone)]
struct Dice;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Roll {
    /// How many sides the die has.
    sides: u32,
}

#[tool_router(server_handler)]
impl Dice {
    /// Rolls a die.
    #[tool]
    fn roll(&self, Parameters(Roll { sides }): Parameters<Roll>) -> String {
        fastrand::u32(1..=sides.max(1)).to_string()
    }
}

fn main() -> ExitCode {
    let component = Component::new("dice", "Rolls dice");
    crabtalk_component::run(Mcp::new(component, || Dice))
}
