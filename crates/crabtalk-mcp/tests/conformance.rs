//! The scenarios for clients of the protocol's conformance suite.

use crabtalk_testkit::tools::installed;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Those that apply; `docs/spec/comp.md` says why the others do not.
const SCENARIOS: [&str; 22] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/client-credentials-basic",
];

/// The example of the crate, which Cargo builds with its tests.
fn client() -> PathBuf {
    let tests = std::env::current_exe().expect("known");
    let built = tests
        .parent()
        .and_then(Path::parent)
        .expect("deps lie in the profile's folder");
    built.join("examples/conformance_client")
}

#[test]
fn the_suites_scenarios_for_clients_pass() {
    let test = "the_suites_scenarios_for_clients_pass";
    let found = installed(test, "CRABTALK_NODE").zip(installed(test, "CRABTALK_MCP_CONFORMANCE"));
    let Some((node, suite)) = found else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for scenario in SCENARIOS {
        let ran = Command::new(&node)
            .arg(&suite)
            .args(["client", "--scenario", scenario, "--command"])
            .arg(client())
            .current_dir(folder.path())
            .output()
            .expect("node runs");
        let said = String::from_utf8_lossy(&ran.stdout);
        let complained = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{scenario}:\n{said}\n{complained}");
    }
}
