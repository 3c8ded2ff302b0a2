//! The sandbox, verified by trying to get out of it, and by working in it.
#![cfg(test)]
#![cfg(target_os = "linux")]

mod access;
mod attacks;
mod bait;
mod generated;
mod ordinary;
mod repository;
mod shells;
mod swaps;
mod table;

#[path = "../support/mod.rs"]
mod support;

use crabtalk_domain::tool::{Access, ShellCommand, Subject, ToolOutput, ToolProvider};
use crabtalk_guardian::SandboxConfig;
use crabtalk_testkit::tools::skip;
use crabtalk_tools::OsTools;
use serde_json::json;
use support::World;

/// Runs a command with what the gate is taken to have granted.
async fn granted(world: &World, tools: &OsTools, command: &str, access: Access) -> ToolOutput {
    let call = world.call("bash", json!({ "command": command }));
    let text = command.to_owned();
    let subject = Subject::Command(ShellCommand { text, access });
    tools.call(&call, &subject).await
}

/// Tools whose walls are complete, and tools of the fallback; what this
/// machine does not have is skipped by name.
async fn everywhere(test: &str, world: &World) -> Vec<(bool, OsTools)> {
    let mut all = Vec::new();
    for namespaces in [false, true] {
        let mut config = world.config();
        config.sandbox = SandboxConfig {
            namespaces,
            ..SandboxConfig::default()
        };
        let tools = OsTools::new(config);
        let walls = tools.walls().await;
        if walls.landlock.is_some() && walls.namespaces == namespaces {
            all.push((namespaces, tools));
        } else {
            skip(test, &format!("namespaces {namespaces}: {:?}", walls.why));
        }
    }
    all
}

/// Tools whose walls are complete.
async fn complete(test: &str, world: &World) -> Option<OsTools> {
    let found = everywhere(test, world).await;
    let mut complete = found.into_iter().filter(|(namespaces, _)| *namespaces);
    complete.next().map(|(_, tools)| tools)
}
