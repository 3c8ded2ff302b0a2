use super::*;
use crate::agent::Agent;
use crate::config::Team;
use crate::name::Name;

fn patch(turns: u64) -> Patch {
    let mut agent = Agent::new(7);
    agent.meters.turns = turns;
    Patch::from([("agent/NEXUS".into(), Some(json(&agent)))])
}

fn entry(n: u64) -> Entry {
    Entry {
        n,
        why: "test".into(),
        ..Entry::default()
    }
}

fn open(folder: &Path) -> Journal {
    Journal::open(folder, &mut World::new(Team::default())).unwrap()
}

/// The number of turns in the state that a restart reads.
fn restored(folder: &Path) -> u64 {
    let mut world = World::new(Team::default());
    Journal::open(folder, &mut world).unwrap();
    world.agents()[&Name::nexus()].meters.turns
}

fn numbers(folder: &Path) -> Vec<u64> {
    let mut all = Vec::new();
    entries(folder, |entry| {
        all.push(entry.n);
        true
    })
    .unwrap();
    all
}

#[test]
fn entries_and_changes_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    assert!(numbers(folder.path()).is_empty(), "no log yet");
    let mut journal = open(folder.path());
    journal.append(&[entry(1), entry(2)], &patch(2)).unwrap();
    journal.append(&[entry(3)], &patch(3)).unwrap();
    assert_eq!(numbers(folder.path()), [3, 2, 1], "while it is open");
    let second = Journal::open(folder.path(), &mut World::new(Team::default()));
    assert!(matches!(second, Err(Error::Taken(_))));
    drop(journal);
    assert_eq!(restored(folder.path()), 3);
}

#[test]
fn old_entries_are_pruned_and_the_state_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    for n in 1..=200 {
        journal.append(&[entry(n)], &patch(n)).unwrap();
    }
    journal.prune(2000).unwrap();
    drop(journal);
    let read = numbers(folder.path());
    assert!(read.len() < 150, "{read:?}");
    assert_eq!(read[0], 200);
    assert_eq!(restored(folder.path()), 200);
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
    assert_eq!(restored(folder.path()), 1);
}

#[test]
fn damaged_log_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(DATABASE), "no database".repeat(100)).unwrap();
    let refused = Journal::open(folder.path(), &mut World::new(Team::default())).unwrap_err();
    assert!(refused.to_string().contains(DATABASE), "{refused}");
}
