//! Expressions, times and files with anything in them.

use crate::cron::file::Surroundings;
use crate::cron::{CRONS, Expression, parse_at, pause, read_crons, zone};
use jiff::tz::TimeZone;

const EXPRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cron/corpus/expressions");
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cron/corpus/files");

/// Valid expressions fire, and searching back from a time finds it.
#[test]
fn fuzz_expressions() {
    let berlin = zone("Europe/Berlin").unwrap();
    let now = "2026-03-28T12:00:00Z".parse().unwrap();
    crabtalk_testkit::fuzz(EXPRESSIONS, move |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(expression) = Expression::parse(&text) {
            let next = expression.next_after(now, &berlin).expect("it fires");
            assert_eq!(expression.last_until(next, &berlin), Some(next));
            let again = Expression::parse(&expression.to_string());
            assert_eq!(again.as_ref(), Ok(&expression));
        }
        let _ = parse_at(&text, now, &berlin);
        let _ = zone(&text);
    });
}

/// A file is entries and findings, or an error with a line that is in it.
#[test]
fn fuzz_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crons.toml");
    let around = Surroundings {
        default_agent: "crab",
        local: &TimeZone::UTC,
        now: "2026-03-28T12:00:00Z".parse().unwrap(),
        limit: 100,
    };
    crabtalk_testkit::fuzz(FILES, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let Ok(read) = read_crons(&path, around) else {
            return;
        };
        let Some(id) = read.entries.first().map(|entry| entry.id) else {
            return;
        };
        // A change of one entry leaves the others.
        let mut file = CRONS.edit(&path, read.text.as_deref()).unwrap();
        assert!(pause(&mut file, id, true));
        file.save().unwrap();
        let after = read_crons(&path, around).unwrap();
        assert_eq!(after.entries.len(), read.entries.len());
        assert_eq!(after.findings.len(), read.findings.len());
        assert!(after.entries.iter().any(|e| e.id == id && e.draft.paused));
    });
}
