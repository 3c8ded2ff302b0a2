//! Imports `state/ledger`: a file for each day, a line for each call.

use super::{MAX_BYTES, put_aside};
use anyhow::Context;
use crabtalk_config::read_limited;
use crabtalk_domain::records::{CostOf, CostRow};
use crabtalk_domain::{CallTotal, Cost, Usage};
use crabtalk_store::Records;
use jiff::civil::Date;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    at: String,
    speaker: String,
    agent: String,
    sender: String,
    provider: String,
    model: String,
    run: u64,
    /// Whether the line is the total of a run.
    ended: bool,
    code: u32,
    /// The number of a reservation, which counts unless another line settles it.
    reserves: u64,
    settles: u64,
    calls: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    cache_hit_tokens: u64,
    money: f64,
    unpriced_tokens: u64,
}

pub(super) async fn import(state: &Path, records: &Records) -> anyhow::Result<()> {
    let folder = state.join("ledger");
    if !folder.is_dir() {
        return Ok(());
    }
    let (mut days, mut unread) = (0_u64, 0);
    for entry in std::fs::read_dir(&folder).context("cannot list state/ledger")? {
        let path = entry?.path();
        let day = path.file_stem().and_then(|day| day.to_str()?.parse().ok());
        let Some(day) = day else { continue };
        let text = read_limited(&path, MAX_BYTES)?.unwrap_or_default();
        let (rows, broken) = rows(day, &text);
        if records.import_costs(day, rows).await? {
            days += 1;
            unread += broken;
        }
    }
    tracing::info!(days, unread, "the former ledger was imported");
    put_aside(state, "ledger")
}

/// The rows of a day, and the number of unreadable lines.
fn rows(day: Date, text: &str) -> (Vec<CostRow>, u64) {
    let (mut rows, mut reserved, mut broken) = (Vec::new(), BTreeMap::new(), 0);
    for text in text.lines().filter(|text| !text.trim().is_empty()) {
        match serde_json::from_str::<Line>(text) {
            Ok(line) if line.reserves != 0 => drop(reserved.insert(line.reserves, line)),
            Ok(line) => {
                reserved.remove(&line.settles);
                if line.settles == 0 || line.calls > 0 {
                    rows.push(line.row(day));
                }
            }
            Err(_) => broken += 1,
        }
    }
    // The use of calls that a crash interrupted is unknown: keep the estimates.
    rows.extend(reserved.into_values().map(|line| line.row(day)));
    (rows, broken)
}

impl Line {
    fn row(self, day: Date) -> CostRow {
        let usage = Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            cache_hit_tokens: Some(self.cache_hit_tokens),
            ..Usage::default()
        };
        let cost = Cost {
            money: Some(self.money),
            unpriced_tokens: self.unpriced_tokens,
        };
        CostRow {
            day,
            at: self.at,
            of: match self.ended {
                true => CostOf::Run(self.code),
                false => CostOf::Call,
            },
            speaker: self.speaker,
            agent: self.agent,
            sender: self.sender,
            provider: self.provider,
            model: self.model,
            run: self.run,
            total: CallTotal {
                calls: self.calls,
                usage,
                cost,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::records::Costs;
    use std::fs;

    #[tokio::test]
    async fn old_days_count_once_and_are_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        fs::create_dir(state.join("ledger")).unwrap();
        let lines = [
            r#"{"at":"","speaker":"crab","agent":"crab","calls":1,"prompt_tokens":7,"money":0.5}"#,
            r#"{"speaker":"crab","reserves":1,"calls":1,"prompt_tokens":100}"#,
            r#"{"speaker":"crab","settles":1}"#,
            r#"{"speaker":"crab","reserves":2,"calls":1,"prompt_tokens":20}"#,
            r#"{"agent":"crab","sender":"user","run":3,"ended":true,"code":499,"calls":1}"#,
            r#"{"speaker":"cr"#,
        ];
        fs::write(state.join("ledger/2026-11-21.jsonl"), lines.join("\n")).unwrap();
        let records = Records::in_state(state);
        for _ in 0..2 {
            import(state, &records).await.unwrap();
        }
        let day: Date = "2026-11-21".parse().unwrap();
        let report = records.report(day, day, 0, 100).await.unwrap();
        let total = report.days[0].1;
        assert_eq!((total.calls, total.usage.prompt_tokens), (2, 27));
        assert_eq!(total.cost.money, Some(0.5));
        let [run] = &report.runs[..] else {
            panic!("{report:?}")
        };
        assert_eq!((run.run, run.of), (3, CostOf::Run(499)));
        assert!(state.join("old/ledger/2026-11-21.jsonl").exists());
    }
}
