use super::*;
use crate::agent::Agent;
use crate::name::Name;

/// Small enough for some entries.
const SHORT: Bounds = Bounds {
    page_bytes: 2_000,
    pages: 2,
};

fn patch(turns: u64) -> Patch {
    let mut agent = Agent::new(7);
    agent.meters.turns = turns;
    let mut patch = Patch::default();
    patch.agents.insert(Name::nexus(), agent);
    patch
}

fn entry(n: u64) -> Entry {
    Entry {
        n,
        why: "test".into(),
        ..Entry::default()
    }
}

fn open(folder: &Path) -> Journal {
    Journal::open(folder, SHORT, |_, _| {}).unwrap()
}

/// The patches that a restart reads: the entry's number and the turns in it.
fn restored(folder: &Path) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    Journal::open(folder, SHORT, |n, patch| {
        found.push((n, patch.agents[&Name::nexus()].meters.turns));
    })
    .unwrap();
    found
}

fn numbers(folder: &Path) -> Vec<u64> {
    let mut all = Vec::new();
    entries(folder, |entry| all.push(entry.n)).unwrap();
    all
}

#[test]
fn entries_and_changes_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    assert!(numbers(folder.path()).is_empty(), "no log yet");
    let mut journal = open(folder.path());
    journal.append(&[entry(1), entry(2)], &patch(2)).unwrap();
    journal.append(&[entry(3)], &patch(3)).unwrap();
    assert_eq!(numbers(folder.path()), [1, 2, 3], "while it is open");
    let second = Journal::open(folder.path(), SHORT, |_, _| {});
    assert!(matches!(second, Err(Error::Taken(_))));
    drop(journal);
    assert_eq!(restored(folder.path()), [(2, 2), (3, 3)]);
}

#[test]
fn long_log_stays_bounded_and_restarts_from_its_last_state() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    for n in 1..=200 {
        journal.append(&[entry(n)], &patch(n)).unwrap();
        if journal.is_full() {
            journal.compact(n, 7, &patch(n)).unwrap();
        }
    }
    drop(journal);
    let read = numbers(folder.path());
    let first = read[0];
    assert!(first > 1 && read.len() < 150, "{read:?}");
    assert_eq!(read, (first..=200).collect::<Vec<_>>());
    let restored = restored(folder.path());
    assert_eq!(restored.last(), Some(&(200, 200)));
    assert!(restored.len() < 10, "{restored:?}");
}

#[test]
fn failed_append_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.append(&[entry(1)], &patch(1)).unwrap();
    fill_disk(&journal);
    let long = Entry {
        why: "x".repeat(100_000),
        ..entry(3)
    };
    let error = journal.append(&[entry(2), long], &patch(3)).unwrap_err();
    assert!(error.to_string().contains("nexus.db"), "{error}");
    drop(journal);
    assert_eq!(numbers(folder.path()), [1]);
    assert_eq!(restored(folder.path()), [(1, 1)]);
}

#[test]
fn log_of_an_earlier_version_is_imported_once() {
    let folder = tempfile::tempdir().unwrap();
    let line = |n: u64, patch: Option<Patch>| {
        let mut value = serde_json::to_value(entry(n)).unwrap();
        if let Some(patch) = patch {
            value["set"] = serde_json::to_value(patch).unwrap();
        }
        format!("{value}\n")
    };
    let text = [
        line(4, Some(patch(4))),
        line(5, None),
        line(6, Some(patch(6))),
        r#"{"n":7,"wh"#.into(),
    ];
    std::fs::write(folder.path().join(EARLIER), text.concat()).unwrap();
    for _ in 0..2 {
        assert_eq!(restored(folder.path()), [(4, 4), (6, 6)]);
    }
    assert_eq!(numbers(folder.path()), [4, 5, 6]);
    assert!(folder.path().join("events.imported").exists());
}

#[test]
fn damaged_log_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(DATABASE), "no database".repeat(100)).unwrap();
    let refused = Journal::open(folder.path(), SHORT, |_, _| {}).unwrap_err();
    assert!(refused.to_string().contains(DATABASE), "{refused}");
}
