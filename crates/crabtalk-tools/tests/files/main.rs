//! The file tools: results, changes and refusals.
#![cfg(test)]

mod change;
mod paths;
mod preview;
mod read;
mod search;

#[path = "../support/mod.rs"]
mod support;

use crabtalk_domain::tool::{Preview, PreviewKind, Subject, ToolOutput, ToolProvider};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use support::{World, judged, run};

/// Runs one call in a new world that `prepare` furnishes, and expects a
/// result with these words in it.
async fn check(prepare: impl Fn(&World), name: &str, arguments: Value, error: bool, want: &str) {
    let world = World::new();
    prepare(&world);
    let output = world.run(&world.tools(), name, arguments.clone()).await;
    assert!(
        output.is_error == error && output.content.contains(want),
        "{name} {arguments}: wanted {want:?}, got {output:?}"
    );
}

fn file(content: &'static str) -> impl Fn(&World) {
    move |world| std::fs::write(world.cwd.join("f"), content).unwrap()
}
