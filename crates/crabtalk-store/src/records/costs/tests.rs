use super::*;
use jiff::ToSpan;

fn call(day: Date) -> CostRow {
    CostRow {
        day,
        speaker: "crab".to_owned(),
        total: CallTotal {
            calls: 1,
            usage: Usage {
                prompt_tokens: 10,
                ..Usage::default()
            },
            cost: Cost::default(),
        },
        ..CostRow::default()
    }
}

async fn tokens(records: &Records, day: Date, life: i64) -> Vec<u64> {
    let rows = records.of_day(day, life).await.expect("read");
    rows.iter()
        .map(|(_, total)| total.usage.total_tokens())
        .collect()
}

#[tokio::test]
async fn latest_days_with_calls_are_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let records = Records::in_state(home.path());
    let first: Date = "2024-01-01".parse().expect("a date");
    for days in 0..450_i64 {
        let day = first.checked_add(days.days()).expect("a date");
        drop(records.add(call(day), None));
    }
    assert_eq!(tokens(&records, first, 1).await, [0_u64; 0]);
    let to = first.checked_add(1000.days()).expect("a date");
    let report = records.report(first, to, 1, 100).await.expect("read");
    assert_eq!(report.days.len(), 400);
    assert_eq!(report.days[399].0.to_string(), "2024-02-20");
}

#[tokio::test]
async fn day_is_imported_once() {
    let home = tempfile::tempdir().expect("a folder");
    let records = Records::in_state(home.path());
    let day: Date = "2026-11-21".parse().expect("a date");
    for is_first in [true, false] {
        let rows = vec![call(day), call(day)];
        assert_eq!(records.import_costs(day, rows).await, Ok(is_first));
    }
    assert_eq!(tokens(&records, day, 1).await, [20]);
}
