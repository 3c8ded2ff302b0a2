//! `crabtalk restore`: replaces a home by a backup.
//!
//! Invariants: no daemon runs during a restore; the former home remains beside the new
//! one; tokens and approvals that were revoked since the backup stay revoked; missed
//! events and due times do not fire.

use crate::import;
use anyhow::{Context, bail, ensure};
use crabtalk_config::{Home, read_limited, write_atomic};
use crabtalk_gate::approvals;
use crabtalk_store::Records;
use crabtalk_store::lock::HomeLock;
use crabtalk_triggers::cron::{Books, Line, Skipped, Why};
use jiff::Timestamp;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tar::Archive;
use toml_edit::{DocumentMut, Item};

/// Largest file of the configuration.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Replaces a home by a backup, and returns a report for people.
///
/// # Errors
/// A running daemon, a file that is not a backup, or an unwritable disk; then the home is
/// unchanged.
pub fn restore(home: &Home, file: &Path) -> anyhow::Result<String> {
    let root = home.root();
    let unreadable = || format!("cannot read {}", file.display());
    let archive = File::open(file).with_context(unreadable)?;
    let beside = root
        .parent()
        .context("the home is the root of the file system")?;
    std::fs::create_dir_all(beside)?;
    let lock = match root.exists() {
        true => Some(HomeLock::acquire(root).context("a restore needs a stopped daemon")?),
        false => None,
    };
    let new = tempfile::Builder::new()
        .prefix(".crabtalk-restore-")
        .tempdir_in(beside)
        .with_context(|| format!("cannot write beside {}", root.display()))?;
    Archive::new(archive)
        .unpack(new.path())
        .with_context(unreadable)?;
    ensure!(
        new.path().join("config").is_dir() || new.path().join("sessions").is_dir(),
        "{} is not a backup of a home: it has neither `config` nor `sessions`",
        file.display()
    );
    let mut said = Vec::new();
    if lock.is_some() {
        said.extend(keep_token_revocations(home, new.path())?);
        said.extend(keep_approval_revocations(home, new.path())?);
    }
    let missed = Home::at(new.path(), None)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let settled = runtime.block_on(skip_missed(&missed));
    settled.context("cannot skip missed events and due times")?;
    let kept = swap(root, new.path(), lock.is_some())?;
    // The content has become the home.
    let _ = new.keep();
    said.insert(
        0,
        format!("{} was restored from {}", root.display(), file.display()),
    );
    said.extend(kept.map(|kept| format!("the former home is kept in {}", kept.display())));
    Ok(said.join("; "))
}

/// Drops events that waited at the time of the backup, and skips due times since then.
async fn skip_missed(home: &Home) -> anyhow::Result<()> {
    let (now, records) = (Timestamp::now(), Records::in_state(&home.state_dir()));
    import::old_files(home, &records).await;
    records.drop_events().await?;
    let (mut books, mut loaded) = Books::open(Arc::new(records), now).await?;
    let skipped = loaded.accounts.iter_mut().map(|(id, account)| {
        let line = Line::Skipped(Skipped {
            id: *id,
            due: account.mark.min(now),
            last: now,
            count: 0,
            why: Why::Missed,
            at: now,
        });
        account.take(&line);
        line
    });
    let skipped: Vec<Line> = skipped.collect();
    let account = |id| loaded.accounts.get(&id);
    Ok(books.append(&skipped, account).await?)
}

/// Moves the new folder to the home's path. Returns the path of the former home.
fn swap(root: &Path, new: &Path, exists: bool) -> anyhow::Result<Option<PathBuf>> {
    let mut kept = None;
    if exists {
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let beside = |n: u32| root.with_file_name(format!("{name}.before-restore-{n}"));
        let free = (1..).map(beside).find(|path| !path.exists());
        let free = free.context("no free name for the former home")?;
        std::fs::rename(root, &free)
            .with_context(|| format!("cannot move {} aside", root.display()))?;
        kept = Some(free);
    }
    if let Err(error) = std::fs::rename(new, root) {
        if let Some(kept) = &kept {
            std::fs::rename(kept, root)
                .with_context(|| format!("the former home is in {}", kept.display()))?;
        }
        bail!(
            "cannot move the restored home to {}: {error}",
            root.display()
        );
    }
    Ok(kept)
}

/// Removes tokens of the backup that the present configuration does not have.
fn keep_token_revocations(home: &Home, new: &Path) -> anyhow::Result<Option<String>> {
    let file = new.join("config/config.toml");
    let (Some(now), Some(then)) = (document(&home.config_file())?, document(&file)?) else {
        return Ok(None);
    };
    let hashes: Vec<&str> = tokens(&now).filter_map(|(_, token)| hash(token)).collect();
    let revoked: Vec<String> = tokens(&then)
        .filter(|(_, token)| hash(token).is_none_or(|hash| !hashes.contains(&hash)))
        .map(|(name, _)| name.to_owned())
        .collect();
    if revoked.is_empty() {
        return Ok(None);
    }
    let mut then = then.clone();
    if let Some(table) = then.get_mut("token").and_then(Item::as_table_like_mut) {
        for name in &revoked {
            table.remove(name);
        }
    }
    write_atomic(&file, &then.to_string()).map_err(|e| anyhow::anyhow!(e.with_causes()))?;
    Ok(Some(format!(
        "tokens that were removed since stay removed: {}",
        revoked.join(", ")
    )))
}

fn tokens(config: &DocumentMut) -> impl Iterator<Item = (&str, &Item)> {
    let table = config.get("token").and_then(Item::as_table_like);
    table.into_iter().flat_map(|table| table.iter())
}

fn hash(token: &Item) -> Option<&str> {
    token.get("hash")?.as_str()
}

fn document(file: &Path) -> anyhow::Result<Option<DocumentMut>> {
    let text = read_limited(file, MAX_BYTES).map_err(|e| anyhow::anyhow!(e.with_causes()))?;
    let parsed = text.map(|text| text.parse::<DocumentMut>()).transpose();
    parsed.with_context(|| format!("cannot read {}; mend it or move it away", file.display()))
}

/// Removes approvals of the backup that the present home does not have.
fn keep_approval_revocations(home: &Home, new: &Path) -> anyhow::Result<Option<String>> {
    let file = new.join("config/approvals.toml");
    let read = |file: &Path| crate::approvals::read(file).map_err(anyhow::Error::msg);
    let (now, mut then) = (read(&home.approvals_file())?, read(&file)?);
    let before = then.len();
    then.retain(|approval| now.iter().any(|known| known.is_same(approval)));
    let removed = before - then.len();
    if removed == 0 {
        return Ok(None);
    }
    let text = approvals::render(&then)?;
    write_atomic(&file, &text).map_err(|e| anyhow::anyhow!(e.with_causes()))?;
    Ok(Some(format!(
        "{removed} approvals that were removed since stay removed"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::records::{Event, Events};
    use crabtalk_triggers::cron::Account;

    #[tokio::test]
    async fn waiting_events_and_due_times_are_settled() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path(), None).expect("a home");
        let state = home.state_dir();
        std::fs::create_dir_all(&state).expect("made");
        let waits = r#"{"event":{"id":1,"source":"ci","payload":"","depth":1,"fires":[1]}}"#;
        std::fs::write(state.join("events.jsonl"), waits).expect("written");
        let records = Arc::new(Records::in_state(&state));
        records.publish(Event::default(), 1).await.expect("written");
        let before: Timestamp = "2026-01-01T00:00:00Z".parse().expect("an instant");
        let known = Line::Known {
            id: 7,
            print: "daily".into(),
            at: before,
        };
        let mut account = Account::default();
        account.take(&known);
        let (mut books, _) = Books::open(records.clone(), before).await.expect("opens");
        let written = books.append(&[known], |_| Some(&account)).await;
        written.expect("written");

        skip_missed(&home).await.expect("settled");
        assert_eq!(records.waiting().await.expect("read"), []);
        let (_, loaded) = Books::open(records, before).await.expect("opens");
        assert!(loaded.accounts[&7].mark > before);
        assert_eq!(loaded.accounts[&7].skipped, 0);
    }
}
