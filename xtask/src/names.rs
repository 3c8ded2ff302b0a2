//! One name means one thing: which public types share theirs with another crate's.
//!
//! Only crates that meet are compared: one imports the other, or a third one
//! imports both. Programs that never see each other may use the same words.
//! Invariant: a name that two such crates define is in [`SHARED`] with a
//! reason, or fails the check; so does a row that is no longer needed.

use crate::layers::{Member, members};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names that more than one crate may define, and why.
const SHARED: &[(&str, &str)] = &[
    ("Error", OF_EACH),
    ("Bounds", OF_EACH),
    ("Limits", OF_EACH),
    ("Options", OF_EACH),
    ("Parts", OF_EACH),
    ("Settings", OF_EACH),
    ("Warning", OF_EACH),
    ("Finding", OF_EACH),
    ("ImportReport", OF_EACH),
    ("Invalid", OF_EACH),
    ("Kind", OF_EACH),
    ("Read", OF_EACH),
    ("Memory", SECTION),
    ("Mcp", SECTION),
    ("Model", SECTION),
    ("Notify", SECTION),
    ("Price", SECTION),
    ("Secret", SECTION),
    ("Storage", SECTION),
    ("Client", ENDS),
    ("Connection", ENDS),
    (
        "Request",
        "what a model is asked, and what the daemon is: both are the field's word",
    ),
    (
        "Home",
        "a component finds the home without the daemon's crates",
    ),
    (
        "Role",
        "who speaks in a message, and what a connection may ask: both are the field's word",
    ),
    ("Source", "of a server, and of a connection"),
    ("Position", "in a log, and in a text"),
    (
        "Fingerprint",
        "of a file, and of a certificate, whose word it is",
    ),
    ("Missed", "events, and due times"),
    (
        "Subscription",
        "to events of sources, and to those of a run",
    ),
    ("Refusal", "of a run, and of a peer"),
    (
        "Command",
        "a process below a guardian, and what ADMIN says to NEXUS",
    ),
    ("Run", "a run that is followed, and what a guardian starts"),
    ("Trust", "in a server, and in skills"),
    (
        "Composer",
        "where a person types, and where it is on others' screens",
    ),
    (
        "Usage",
        "of tokens, in a call and in what an entry of cron has used",
    ),
    (
        "Compress",
        "the same setting, as it is written and as it is used",
    ),
];

/// A crate's own, which is said with the crate's name: `store::Error`.
const OF_EACH: &str = "each crate has its own, and it is said with the crate's name";

/// The configuration's section is named like what it configures.
const SECTION: &str = "as the configuration has it, and as it is used";

/// What both ends of a protocol have.
const ENDS: &str = "the protocol's, and that of whoever speaks it";

/// Everything that breaks the rule, one line each.
pub(crate) fn problems() -> anyhow::Result<Vec<String>> {
    let members = members()?;
    let mut defined: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for member in &members {
        let folder = member.manifest.with_file_name("src");
        for name in types(&folder)? {
            defined.entry(name).or_default().insert(&member.name);
        }
    }
    Ok(judged(&members, &defined, SHARED))
}

fn judged(
    members: &[Member],
    defined: &BTreeMap<String, BTreeSet<&str>>,
    shared: &[(&str, &str)],
) -> Vec<String> {
    let meeting = defined.iter().filter_map(|(name, crates)| {
        let met: Vec<&str> = crates
            .iter()
            .filter(|one| crates.iter().any(|other| meet(members, one, other)))
            .copied()
            .collect();
        (!met.is_empty()).then_some((name.as_str(), met))
    });
    let meeting: BTreeMap<&str, Vec<&str>> = meeting.collect();
    let known = |name: &str| shared.iter().any(|(row, _)| *row == name);
    let clashes = meeting.iter().filter(|(name, _)| !known(name));
    let clashes = clashes.map(|(name, crates)| {
        let crates = crates.join(" and ");
        format!("{name}: {crates} define it; rename one, or say in xtask/src/names.rs why not")
    });
    let idle = shared.iter().filter(|(row, _)| !meeting.contains_key(row));
    let idle = idle.map(|(row, _)| format!("{row}: no two crates that meet define it any more"));
    clashes.chain(idle).collect()
}

/// Whether somebody may have types of both before them.
fn meet(members: &[Member], one: &str, other: &str) -> bool {
    let imports = |member: &Member, name: &str| {
        let mut imports = member.imports.iter();
        member.name == name || imports.any(|(import, of_tests)| import == name && !of_tests)
    };
    let mut members = members.iter();
    one != other && members.any(|member| imports(member, one) && imports(member, other))
}

/// The public types of a folder of sources, tests left out.
fn types(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for item in std::fs::read_dir(folder)? {
        let path = item?.path();
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            found.append(&mut types(&path)?);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.extend(types_of(&std::fs::read_to_string(&path)?));
        }
    }
    Ok(found)
}

fn types_of(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.trim_start().strip_prefix("pub ")?.split(' ');
        let is_type = matches!(words.next()?, "struct" | "enum" | "trait" | "type");
        let name = words.next().filter(|_| is_type)?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some(name[..end.unwrap_or(name.len())].to_owned())
    });
    lines.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests;
