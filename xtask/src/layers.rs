//! Which crate may import which (ARCHITECTURE.md).
//!
//! Invariant: a crate that is not in the table fails the check, so that nobody
//! adds one without deciding where it stands.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What normal and build dependencies may name, and what those of tests may
/// name besides [`FOR_TESTS`].
const MAY_IMPORT: &[(&str, &[&str])] = &[
    (
        "crabtalk",
        // The guardian's entry point comes before all else.
        &["crabtalk-cli", "crabtalk-daemon", "crabtalk-guardian"],
    ),
    (
        "crabtalk-cli",
        &[
            "crabtalk-proto",
            "crabtalk-client",
            "crabtalk-config",
            "crabtalk-files",
            "crabtalk-render",
            "crabtalk-skills",
            "crabtalk-component",
        ],
    ),
    ("crabtalk-client", &["crabtalk-proto", "crabtalk-transport"]),
    (
        "crabtalk-nexus",
        &[
            "crabtalk-proto",
            "crabtalk-client",
            "crabtalk-files",
            "crabtalk-guardian",
            "crabtalk-render",
        ],
    ),
    ("crabtalk-transport", &["crabtalk-proto"]),
    (
        "crabtalk-daemon",
        &[
            "crabtalk-proto",
            "crabtalk-transport",
            "crabtalk-config",
            "crabtalk-domain",
            "crabtalk-files",
            "crabtalk-guardian",
            "crabtalk-runtime",
            "crabtalk-model",
            "crabtalk-store",
            "crabtalk-memory",
            "crabtalk-skills",
            "crabtalk-tools",
            "crabtalk-mcp",
            "crabtalk-gate",
            "crabtalk-triggers",
            "crabtalk-component",
        ],
    ),
    ("crabtalk-triggers", &["crabtalk-domain", "crabtalk-files"]),
    ("crabtalk-gate", &["crabtalk-domain"]),
    ("crabtalk-runtime", &["crabtalk-domain", "crabtalk-gate"]),
    ("crabtalk-model", &["crabtalk-domain"]),
    ("crabtalk-store", &["crabtalk-domain", "crabtalk-files"]),
    ("crabtalk-memory", &["crabtalk-domain", "crabtalk-files"]),
    (
        "crabtalk-tools",
        &["crabtalk-domain", "crabtalk-files", "crabtalk-guardian"],
    ),
    // What a port file says is defined once, where it is written.
    (
        "crabtalk-mcp",
        &[
            "crabtalk-component",
            "crabtalk-domain",
            "crabtalk-files",
            "crabtalk-guardian",
        ],
    ),
    ("crabtalk-testkit", &["crabtalk-domain"]),
    ("crabtalk-proto", &[]),
    ("crabtalk-domain", &[]),
    ("crabtalk-files", &[]),
    ("crabtalk-guardian", &[]),
    ("crabtalk-render", &[]),
    ("crabtalk-config", &["crabtalk-domain", "crabtalk-files"]),
    ("crabtalk-skills", &["crabtalk-domain", "crabtalk-files"]),
    // Its listeners refuse agents' commands as the daemon's socket does.
    ("crabtalk-component", &["crabtalk-guardian"]),
    // Components are programs of their own: nothing of the daemon is in them.
    ("crabtalk-fetch", &["crabtalk-component"]),
    ("crabtalk-search", &["crabtalk-component"]),
    // What it starts ends with it.
    (
        "crabtalk-mcpd",
        &["crabtalk-component", "crabtalk-guardian"],
    ),
    (
        "crabtalk-webhook",
        &["crabtalk-component", "crabtalk-client"],
    ),
    (
        "crabtalk-telemetry",
        &["crabtalk-component", "crabtalk-client"],
    ),
    // A client, to measure the daemon from outside.
    ("xtask", &["crabtalk-proto"]),
];

/// What any crate's tests may name.
const FOR_TESTS: &[&str] = &[
    "crabtalk-testkit",
    "crabtalk-proto",
    "crabtalk-transport",
    "crabtalk-client",
];

/// What tests of some crates may name besides. The end-to-end tests of the binary
/// put real parts and doubles together; recall is measured on the real index.
const FOR_TESTS_OF: &[(&str, &[&str])] = &[
    ("crabtalk", &["crabtalk-nexus"]),
    ("crabtalk-memory", &["crabtalk-store"]),
];

/// What the names of programs begin with that `crabtalk NAME` runs and
/// `crabtalk components` lists.
const COMMAND: &str = "crabtalk-";

/// Packages whose programs are commands without being components.
const COMMANDS: &[&str] = &["crabtalk-nexus"];

/// A crate of the workspace.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    /// What it names: the dependency, and whether only its tests do.
    pub(crate) imports: Vec<(String, bool)>,
    pub(crate) programs: Vec<String>,
}

/// Everything in the workspace that breaks a rule, one line each.
pub(crate) fn problems() -> anyhow::Result<Vec<String>> {
    let members = members()?;
    let mut found = forbidden_imports(&members);
    found.extend(members.iter().flat_map(misnamed_programs));
    for member in &members {
        let text = std::fs::read_to_string(&member.manifest)
            .with_context(|| format!("cannot read {}", member.manifest.display()))?;
        if !has_workspace_lints(&text)? {
            found.push(format!(
                "{}: {} lacks `[lints] workspace = true`",
                member.name,
                member.manifest.display()
            ));
        }
    }
    Ok(found)
}

fn forbidden_imports(members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for member in members {
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == member.name) else {
            found.push(format!(
                "{}: not in the table of xtask/src/layers.rs; decide what it may import",
                member.name
            ));
            continue;
        };
        for (import, only_tests) in &member.imports {
            let import = import.as_str();
            // Only what belongs to the workspace is ours to order.
            if !members.iter().any(|other| other.name == import)
                || allowed.contains(&import)
                || (*only_tests && may_in_tests(&member.name, import))
            {
                continue;
            }
            let place = if *only_tests { " in its tests" } else { "" };
            let allowed = if allowed.is_empty() {
                "nothing of ours".to_owned()
            } else {
                allowed.join(", ")
            };
            found.push(format!(
                "{}: may not import {import}{place}; it may import {allowed}",
                member.name
            ));
        }
    }
    found
}

/// Programs that whoever builds from source would be offered as components.
fn misnamed_programs(member: &Member) -> Vec<String> {
    let mut imports = member.imports.iter();
    let is_component = imports.any(|(name, tests)| name == "crabtalk-component" && !tests);
    if is_component || COMMANDS.contains(&member.name.as_str()) {
        return Vec::new();
    }
    let programs = member.programs.iter();
    let misnamed = programs.filter(|program| program.starts_with(COMMAND));
    let said = misnamed.map(|program| {
        format!(
            "{}: its program {program} is no component; another beginning than `{COMMAND}` keeps it out of `crabtalk components`",
            member.name
        )
    });
    said.collect()
}

fn may_in_tests(member: &str, import: &str) -> bool {
    let mut besides = FOR_TESTS_OF.iter();
    FOR_TESTS.contains(&import)
        || besides.any(|(of, besides)| *of == member && besides.contains(&import))
}

fn has_workspace_lints(manifest: &str) -> anyhow::Result<bool> {
    let manifest: toml::Table = manifest.parse()?;
    let inherited = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"));
    Ok(inherited.and_then(toml::Value::as_bool) == Some(true))
}

pub(crate) fn members() -> anyhow::Result<Vec<Member>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask lies in the workspace")?;
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    packages.iter().map(member).collect()
}

fn member(package: &Value) -> anyhow::Result<Member> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let dependencies = package["dependencies"].as_array();
    let imports = dependencies
        .into_iter()
        .flatten()
        .filter_map(|dependency| Some((text(&dependency["name"])?, dependency["kind"] == "dev")));
    let targets = package["targets"].as_array().into_iter().flatten();
    let is_program = |target: &&Value| {
        let mut kinds = target["kind"].as_array().into_iter().flatten();
        kinds.any(|kind| kind == "bin")
    };
    Ok(Member {
        programs: targets
            .filter(is_program)
            .filter_map(|target| text(&target["name"]))
            .collect(),
        name: text(&package["name"]).context("a package without a name")?,
        manifest: text(&package["manifest_path"])
            .context("a package without a manifest")?
            .into(),
        imports: imports.collect(),
    })
}

#[cfg(test)]
mod tests;
