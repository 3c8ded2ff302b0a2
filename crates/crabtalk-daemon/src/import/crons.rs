//! Imports the newest file `state/cron/NUMBER.jsonl`, which begins with the content of
//! all earlier ones.

use super::{MAX_BYTES, put_aside};
use crabtalk_config::read_limited;
use crabtalk_domain::records::CronBooksChange;
use crabtalk_store::Records;
use crabtalk_triggers::cron::{Account, Ended, Fired, Line, Skipped};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The folder's name, also in `state/old`.
const NAME: &str = "cron";

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OldLine {
    Known {
        id: u64,
        print: String,
        at: Timestamp,
    },
    Paused {
        id: u64,
        paused: bool,
        at: Timestamp,
    },
    Removed {
        id: u64,
    },
    Fired(Fired),
    Ended(Ended),
    Skipped(Skipped),
    Account {
        id: u64,
        account: Box<Account>,
    },
    Numbers {
        last_id: u64,
        last_seq: u64,
    },
}

pub(super) async fn import(state: &Path, records: &Records) -> anyhow::Result<()> {
    let Some(newest) = newest(&state.join(NAME))? else {
        return Ok(());
    };
    let text = read_limited(&state.join(NAME).join(newest), MAX_BYTES)?.unwrap_or_default();
    let mut accounts: BTreeMap<u64, Option<Account>> = BTreeMap::new();
    let (mut lines, mut unread, mut last_id, mut last_seq) = (Vec::new(), 0_u64, 0, 0);
    for line in text.lines() {
        let line = match serde_json::from_str(line) {
            Ok(OldLine::Known { id, print, at }) => Line::Known { id, print, at },
            Ok(OldLine::Paused { id, paused, at }) => Line::Paused { id, paused, at },
            Ok(OldLine::Removed { id }) => {
                accounts.insert(id, None);
                continue;
            }
            Ok(OldLine::Fired(fired)) => Line::Fired(fired),
            Ok(OldLine::Ended(ended)) => Line::Ended(ended),
            Ok(OldLine::Skipped(skipped)) => Line::Skipped(skipped),
            Ok(OldLine::Account { id, account }) => {
                accounts.insert(id, Some(*account));
                continue;
            }
            Ok(OldLine::Numbers {
                last_id: id,
                last_seq: seq,
            }) => {
                (last_id, last_seq) = (id, seq);
                continue;
            }
            Err(_) => {
                unread += 1;
                continue;
            }
        };
        let account = accounts.entry(line.id()).or_default();
        account.get_or_insert_default().take(&line);
        lines.push(line);
    }
    let entries = accounts.len();
    let accounts = accounts.into_iter().map(|(id, account)| {
        let text = account
            .map(|account| serde_json::to_string(&account))
            .transpose();
        Ok((id, text?))
    });
    let change = CronBooksChange {
        accounts: accounts.collect::<anyhow::Result<_>>()?,
        facts: lines.iter().filter_map(Line::fact).collect(),
    };
    if records.import_crons(change, last_id, last_seq).await? {
        tracing::info!(entries, unread, "the former books of cron were imported");
    }
    put_aside(state, NAME)
}

/// The file with the highest number; the digits sort.
fn newest(folder: &Path) -> anyhow::Result<Option<String>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut newest = None;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name.ends_with(".jsonl") {
            newest = newest.max(Some(name));
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_triggers::cron::{Books, Outcome, Row};
    use std::fs;
    use std::sync::Arc;

    #[tokio::test]
    async fn accounts_and_rows_of_the_newest_file_are_taken_over_once() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        fs::create_dir(state.join(NAME)).unwrap();
        fs::write(state.join("cron/000001.jsonl"), "{\"numbers\":{}}\n").unwrap();
        let at = "2026-11-22T10:00:00Z";
        let text = [
            r#"{"numbers":{"last_id":7,"last_seq":5}}"#.to_owned(),
            format!(
                r#"{{"account":{{"id":1,"account":{{"print":"daily","mark":"{at}","fired":4}}}}}}"#
            ),
            format!(
                r#"{{"fired":{{"id":1,"seq":6,"due":"{at}","at":"{at}","agent":"crab","sender":"cron"}}}}"#
            ),
            format!(r#"{{"ended":{{"id":1,"seq":6,"at":"{at}","outcome":"ok"}}}}"#),
            r#"{"fired":{"id"#.to_owned(),
        ];
        fs::write(state.join("cron/000002.jsonl"), text.join("\n")).unwrap();
        let records = Records::in_state(state);
        for _ in 0..2 {
            import(state, &records).await.unwrap();
        }
        let books = Books::open(Arc::new(records.clone()), at.parse().unwrap()).await;
        let (_, loaded) = books.unwrap();
        assert_eq!((loaded.last_id, loaded.last_seq), (7, 6));
        assert_eq!(loaded.accounts[&1].fired, 5);
        let rows = Books::rows(&records, None, 9).await.unwrap();
        let [Row::Run(fired, Some(ended))] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!((fired.seq, ended.outcome), (6, Outcome::Ok));
        assert!(state.join("old/cron/000001.jsonl").exists());
    }
}
