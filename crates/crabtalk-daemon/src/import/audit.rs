//! Imports `state/audit.log`, its predecessors `audit.NUMBER.log`, and `audit.anchor`.

use super::{MAX_BYTES, put_aside};
use anyhow::Context;
use crabtalk_config::read_limited;
use crabtalk_store::Records;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct Line {
    n: i64,
}

#[derive(Deserialize)]
struct Anchor {
    n: i64,
    hash: String,
}

pub(super) async fn import(state: &Path, records: &Records) -> anyhow::Result<()> {
    if !state.join("audit.log").exists() && !state.join("audit.anchor").exists() {
        return Ok(());
    }
    let names = names(state)?;
    let (mut lines, mut unread) = (Vec::new(), 0_u64);
    for name in names.iter().filter(|name| name.ends_with(".log")) {
        let text = read_limited(&state.join(name), MAX_BYTES)?.unwrap_or_default();
        for text in text.lines() {
            match serde_json::from_str::<Line>(text) {
                Ok(line) => lines.push((line.n, text.to_owned())),
                Err(_) => unread += 1,
            }
        }
    }
    let anchor = read_limited(&state.join("audit.anchor"), MAX_BYTES)?;
    let anchor: Option<Anchor> = anchor.and_then(|text| serde_json::from_str(&text).ok());
    // A crash may leave the anchor one entry behind; an anchor ahead means removed lines.
    let end = lines.last().map_or(0, |(n, _)| *n);
    let last = anchor.filter(|anchor| anchor.n >= end);
    let (entries, last) = (lines.len(), last.map(|anchor| (anchor.n, anchor.hash)));
    if records.import_audit(lines, last).await? {
        tracing::info!(entries, unread, "the former audit was imported");
    }
    for name in &names {
        put_aside(state, name)?;
    }
    Ok(())
}

/// Names of the audit's files, oldest entries first.
fn names(state: &Path) -> anyhow::Result<Vec<String>> {
    let cannot = || format!("cannot list {}", state.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(state).with_context(cannot)? {
        let name = entry.with_context(cannot)?.file_name();
        names.extend(
            name.into_string()
                .ok()
                .filter(|name| name.starts_with("audit.")),
        );
    }
    // Numbers have twelve digits, and digits sort before letters.
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::records::{AuditEntry, AuditLog};
    use std::fs;

    #[tokio::test]
    async fn old_chain_is_continued_and_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let old = Records::in_state(&state.join("elsewhere"));
        for n in 0..3 {
            let entry = AuditEntry::new(String::new(), &format!("thing-{n}"), "local");
            old.append(entry).await.unwrap();
        }
        let lines = old.latest(None, 10).await.unwrap().lines;
        fs::write(
            state.join("audit.000000000001.log"),
            format!("{}\n", lines[0]),
        )
        .unwrap();
        let torn = format!("{}\n{}\n{{\"n\":", lines[1], lines[2]);
        fs::write(state.join("audit.log"), torn).unwrap();
        fs::write(state.join("audit.anchor"), "{\"n\":2,\"hash\":\"\"}").unwrap();
        let records = Records::in_state(state);
        for _ in 0..2 {
            import(state, &records).await.unwrap();
        }
        let next = AuditEntry::new(String::new(), "next", "local");
        assert_eq!(records.append(next).await.unwrap(), 4);
        assert_eq!(records.verify().await.unwrap().problem, None);
        assert!(state.join("old/audit.log").exists() && !state.join("audit.anchor").exists());
    }
}
