//! The imports that each crate may have (ARCHITECTURE.md).
//!
//! Invariant: a crate that is not in the table fails the check, so that each new
//! crate is entered.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Normal and build dependencies, without the prefix `crabtalk-`.
const MAY_IMPORT: &str = "
    crabtalk: cli daemon guardian
    cli: proto client config files render component
    client: proto transport
    nexus: proto client files guardian render
    transport: proto
    daemon: proto transport config domain files guardian runtime model store memory tools mcp gate triggers component
    triggers: domain files
    gate: domain
    runtime: domain gate
    model: domain
    store: domain files
    memory: domain files
    tools: domain files guardian
    mcp: component domain files guardian
    testkit: domain
    proto:
    domain:
    files:
    guardian:
    render:
    config: domain files
    component: guardian
    fetch: component
    search: component
    mcpd: component guardian
    webhook: component client
    telemetry: component client
    xtask: proto
";

/// Development dependencies of any crate.
const FOR_TESTS: &str = "testkit proto transport client";

/// Development dependencies of some crates: the end-to-end tests start all
/// programs; recall is measured on the real index.
const FOR_TESTS_OF: &str = "
    crabtalk: nexus
    memory: store
";

/// A crate of the workspace.
struct Member {
    name: String,
    manifest: PathBuf,
    /// Its dependencies, and whether only its tests have them.
    imports: Vec<(String, bool)>,
}

/// Everything in the workspace that breaks a rule, one line each.
pub(crate) fn problems() -> anyhow::Result<Vec<String>> {
    let members = members()?;
    let mut found = forbidden_imports(&members);
    for Member { name, manifest, .. } in &members {
        let text = std::fs::read_to_string(manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        if !text.contains("[lints]\nworkspace = true") {
            found.push(format!(
                "{name}: its manifest lacks `[lints] workspace = true`"
            ));
        }
    }
    Ok(found)
}

/// The words of a crate's line in a table.
fn line<'t>(table: &'t str, name: &str) -> Option<Vec<&'t str>> {
    let mut lines = table.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, words) = lines.find(|(known, _)| *known == name)?;
    Some(words.split_whitespace().collect())
}

fn forbidden_imports(members: &[Member]) -> Vec<String> {
    let short = |name: &str| name.strip_prefix("crabtalk-").unwrap_or(name).to_owned();
    let mut found = Vec::new();
    for member in members {
        let name = short(&member.name);
        let Some(allowed) = line(MAY_IMPORT, &name) else {
            found.push(format!(
                "{name}: not in the table of xtask/src/layers.rs: enter its imports"
            ));
            continue;
        };
        let mut in_tests = line(FOR_TESTS_OF, &name).unwrap_or_default();
        in_tests.extend(FOR_TESTS.split_whitespace());
        for (import, only_tests) in &member.imports {
            let is_ours = members.iter().any(|other| other.name == *import);
            let import = short(import);
            let is_allowed = allowed.contains(&import.as_str())
                || *only_tests && in_tests.contains(&import.as_str());
            if is_ours && !is_allowed {
                let allowed = allowed.join(", ");
                found.push(format!("{name}: may not import {import}, only {allowed}"));
            }
        }
    }
    found
}

fn members() -> anyhow::Result<Vec<Member>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root.context("xtask is in the workspace")?)
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
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let imports = dependencies
        .filter_map(|dependency| Some((text(&dependency["name"])?, dependency["kind"] == "dev")));
    Ok(Member {
        imports: imports.collect(),
        name: text(&package["name"]).context("a package without a name")?,
        manifest: text(&package["manifest_path"])
            .context("a package without a manifest")?
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, imports: &[(&str, bool)]) -> Member {
        let imports = imports.iter().map(|(name, dev)| ((*name).into(), *dev));
        Member {
            name: name.into(),
            manifest: PathBuf::new(),
            imports: imports.collect(),
        }
    }

    #[test]
    fn crates_obey_the_layers_and_inherit_lints() {
        let problems = problems().unwrap();
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }

    #[test]
    fn forbidden_imports_are_named() {
        for (imports, found) in [
            (&[("crabtalk-domain", false)][..], ""),
            (&[("crabtalk-proto", true)][..], ""),
            (&[("serde", false)][..], ""),
            (
                &[("crabtalk-proto", false)][..],
                "runtime: may not import proto, only domain, gate",
            ),
            (
                &[("crabtalk-store", true)][..],
                "runtime: may not import store, only domain, gate",
            ),
        ] {
            let members = [
                member("crabtalk-runtime", imports),
                member("crabtalk-domain", &[]),
                member("crabtalk-store", &[("crabtalk-domain", false)]),
                member("crabtalk-proto", &[]),
            ];
            assert_eq!(forbidden_imports(&members).join("\n"), found);
        }
        let found = forbidden_imports(&[member("crabtalk-new", &[])]);
        assert!(found[0].starts_with("new: not in the table"), "{found:?}");
    }
}
