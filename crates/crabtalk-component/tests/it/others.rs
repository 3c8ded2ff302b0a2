//! Programs of others beside this crate: the protocol's own conformance suite, and a
//! component in another language. Both are installed by `.ci/run`, which names them in
//! variables; without one a test is skipped by name.

use crate::rig::{INITIALIZE, example, port_file, post, start, until};
use crabtalk_testkit::tools::installed;
use std::path::Path;
use std::process::Command;

/// An example that serves.
fn serving(name: &str) -> Command {
    let mut command = example(name);
    command.arg("serve");
    command
}

#[test]
fn the_conformance_suite_passes() {
    let test = "the_conformance_suite_passes";
    let (Some(node), Some(suite)) = (
        installed(test, "CRABTALK_NODE"),
        installed(test, "CRABTALK_MCP_CONFORMANCE"),
    ) else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let (_server, port) = start(serving("conformance"), home.path(), "conformance");
    let output = Command::new(node)
        .arg(suite)
        .args(["server", "--suite", "all", "--url"])
        .arg(format!("http://127.0.0.1:{port}/mcp"))
        .current_dir(home.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.contains("0 failed") && said.contains("dns-rebinding-protection"),
        "{said}"
    );
}

/// A block of the guide that begins with this line.
fn block(page: &str, begin: &str) -> String {
    let at = page
        .find(begin)
        .unwrap_or_else(|| panic!("no block begins with {begin}"));
    let end = page[at..].find("\n```").expect("a block ends");
    format!("{}\n", &page[at..at + end])
}

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/writing-components.md");
    std::fs::read_to_string(path).expect("there")
}

#[test]
fn the_guide_shows_the_example_word_for_word() {
    let example = include_str!("../../examples/dice.rs");
    let shown = block(&guide(), "//! A component with one tool");
    assert_eq!(shown, example);
    let lines = example
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count();
    assert!(lines < 40, "{lines}");
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"roll","arguments":{"sides":1}}}"#;

/// Rolls a die of one side.
fn rolls(port: u16) {
    let told = post(port, "", INITIALIZE);
    assert!(told.contains("\"serverInfo\""), "{told}");
    let session = told.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then(|| value.trim().to_owned())
    });
    let session = session
        .map(|id| format!("Mcp-Session-Id: {id}\r\n"))
        .unwrap_or_default();
    post(port, &session, INITIALIZED);
    let rolled = post(port, &session, CALL);
    assert!(rolled.contains("\"text\":\"1\""), "{rolled}");
}

#[test]
fn the_example_rolls() {
    let home = tempfile::tempdir().expect("a folder");
    let (_dice, port) = start(serving("dice"), home.path(), "dice");
    rolls(port);
}

#[test]
fn the_same_in_python_needs_no_crate() {
    let Some(python) = installed("the_same_in_python_needs_no_crate", "CRABTALK_MCP_PYTHON") else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let script = home.path().join("dice.py");
    let shown = block(&guide(), "\"\"\"A component with one tool");
    std::fs::write(&script, shown).expect("written");
    let mut command = Command::new(python);
    command.arg(&script);
    let (mut dice, port) = start(command, home.path(), "dice");
    rolls(port);
    let asked = Command::new("kill").arg(dice.0.id().to_string()).status();
    assert!(asked.is_ok_and(|status| status.success()));
    until("the end", || dice.0.try_wait().expect("waited for"));
    assert!(
        !port_file(home.path(), "dice").exists(),
        "it takes its port along"
    );
}
