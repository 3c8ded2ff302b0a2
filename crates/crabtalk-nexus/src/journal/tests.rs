use super::*;
use crate::agent::Agent;
use crate::name::Name;
use std::sync::atomic::Ordering;

/// Pages of some entries.
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

fn open_in(folder: &Path, bounds: Bounds) -> Journal {
    Journal::open(folder, bounds, |_, _, _| {}).unwrap()
}

fn turns(folder: &Path) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    Journal::open(folder, SHORT, |n, _, patch| {
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

fn pages(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|item| item.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains("events")).collect();
    names.sort();
    names
}

/// Writes entries up to `last`, and turns pages as a supervisor does.
fn write(journal: &mut Journal, numbers: std::ops::RangeInclusive<u64>) {
    for n in numbers {
        journal.append(&[entry(n)], &patch(n)).unwrap();
        if journal.is_full() {
            journal.turn("on", n, 7, &patch(n)).unwrap();
        }
    }
}

/// Cut anywhere, a log holds what was appended whole and nothing of the rest.
#[test]
fn a_log_that_is_cut_anywhere_holds_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(folder.path(), Bounds::default());
    let mut ends: Vec<u64> = vec![0];
    for n in 1..4 {
        let batch = [entry(2 * n), entry(2 * n + 1)];
        journal.append(&batch, &patch(n)).unwrap();
        ends.push(journal.length);
    }
    drop(journal);
    let path = folder.path().join(EVENTS);
    let bytes = fs::read(&path).unwrap();
    let near = |length: &usize| ends.iter().any(|end| (*length as u64).abs_diff(*end) < 2);
    // Every cut near an end, some within: each costs the disk a sync.
    for length in (0..=bytes.len())
        .rev()
        .filter(|at| at % 97 == 0 || near(at))
    {
        fs::write(&path, &bytes[..length]).unwrap();
        let whole = ends.iter().filter(|end| **end <= length as u64).count() as u64 - 1;
        let expected: Vec<_> = (1..=whole).map(|n| (2 * n + 1, n)).collect();
        assert_eq!(turns(folder.path()), expected, "{length}");
        let left = fs::metadata(&path).unwrap().len();
        assert_eq!(left, ends[usize::try_from(whole).unwrap()]);
    }
}

/// A log of any age takes so much room, is read without a gap, and a restart reads
/// its last page alone.
#[test]
fn a_log_goes_on_in_pages_of_which_the_last_ones_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(folder.path(), SHORT);
    write(&mut journal, 1..=100);
    drop(journal);
    let names = pages(folder.path());
    assert_eq!(names.len(), 3, "{names:?}");
    for name in &names {
        let bytes = fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(bytes < 2 * SHORT.page_bytes + 2_000, "{name}: {bytes}");
    }
    let read = numbers(folder.path());
    let first = *read.first().unwrap();
    assert!(first > 1 && first < 100, "{read:?}");
    assert_eq!(read, (first..=100).collect::<Vec<_>>());
    let restored = turns(folder.path());
    assert_eq!(restored.last(), Some(&(100, 100)));
    assert!(restored.len() < 10, "{restored:?}");
}

/// A kill between any two steps from one page to the next, with what it may
/// have written of it by then, loses no entry and no state.
#[test]
fn a_kill_while_a_page_is_turned_loses_nothing() {
    for step in 0..4 {
        for part in [0, 1, 2] {
            let folder = tempfile::tempdir().unwrap();
            let mut journal = open_in(folder.path(), Bounds::default());
            write(&mut journal, 1..=5);
            let mut next = Vec::new();
            line(&mut next, &entry(5), Some(&patch(5)));
            let written = next.len() * part / 2;
            match step {
                0 => fs::write(folder.path().join("events.next"), &next[..written]).unwrap(),
                1 => journal.pages.write_next(&next).unwrap(),
                2 => {
                    journal.pages.write_next(&next).unwrap();
                    journal.pages.put_away(5).unwrap();
                }
                _ => journal.turn("on", 5, 7, &patch(5)).unwrap(),
            }
            assert_eq!(numbers(folder.path()).last(), Some(&5), "{step} {part}");
            drop(journal);
            assert_eq!(turns(folder.path()).last(), Some(&(5, 5)), "{step} {part}");
            let mut journal = open_in(folder.path(), Bounds::default());
            write(&mut journal, 6..=7);
            drop(journal);
            assert_eq!(numbers(folder.path()), [1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(turns(folder.path()).last(), Some(&(7, 7)));
            let left = folder.path().join("events.next");
            assert!(!left.exists(), "{step} {part}");
        }
    }
}

/// What could not be written whole leaves no trace, and may be tried again.
#[test]
fn an_append_that_failed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(folder.path(), Bounds::default());
    write(&mut journal, 1..=2);
    let is_full = journal.disk_is_full.clone();
    is_full.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let error = journal.append(&[entry(3)], &patch(3)).unwrap_err();
        assert!(error.may_pass(), "{error}");
    }
    is_full.store(false, Ordering::SeqCst);
    write(&mut journal, 3..=4);
    drop(journal);
    assert_eq!(numbers(folder.path()), [1, 2, 3, 4]);
    assert_eq!(turns(folder.path()).last(), Some(&(4, 4)));
}

/// Where there is no place for the next page this one goes on.
#[test]
fn a_page_that_cannot_be_turned_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(folder.path(), SHORT);
    fs::create_dir(folder.path().join("events.next")).unwrap();
    for n in 1..=10 {
        journal.append(&[entry(n)], &patch(n)).unwrap();
        if journal.is_full() {
            journal.turn("on", n, 7, &patch(n)).unwrap_err();
            assert!(!journal.is_between() && !journal.is_full());
        }
    }
    fs::remove_dir(folder.path().join("events.next")).unwrap();
    write(&mut journal, 11..=20);
    drop(journal);
    assert!(pages(folder.path()).len() > 1);
    assert_eq!(turns(folder.path()).last(), Some(&(20, 20)));
}

#[test]
fn numbers_go_on_where_somebody_took_the_page_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(folder.path(), SHORT);
    write(&mut journal, 1..=10);
    drop(journal);
    fs::remove_file(folder.path().join(EVENTS)).unwrap();
    let mut last = 0;
    Journal::open(folder.path(), SHORT, |n, _, _| last = n).unwrap();
    assert!(last > 1, "{last}");
}

/// Nobody waits for whoever writes into a pipe, and what lies there is told.
#[test]
fn what_is_no_file_in_a_files_place_is_told() {
    for name in [LOCK, EVENTS] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let refused = Journal::open(folder.path(), SHORT, |_, _, _| {}).unwrap_err();
        assert!(refused.to_string().contains("is a pipe"), "{refused}");
        if name == EVENTS {
            let refused = entries(folder.path(), |_| {}).unwrap_err();
            assert!(refused.to_string().contains("is a pipe"), "{refused}");
        }
    }
}

/// Somebody who removes the lock lets another NEXUS begin, beside which this one does
/// nothing more.
#[test]
fn whoever_lost_the_lock_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open_in(folder.path(), SHORT);
    assert!(journal.is_as_left().unwrap());
    fs::remove_file(folder.path().join(LOCK)).unwrap();
    let second = open_in(folder.path(), SHORT);
    let lost = journal.is_as_left().unwrap_err();
    assert!(
        matches!(&lost, Error::Unlocked(_)) && !lost.may_pass(),
        "{lost}"
    );
    assert!(second.is_as_left().unwrap());
}

#[test]
fn only_one_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let _journal = open_in(folder.path(), SHORT);
    let second = Journal::open(folder.path(), SHORT, |_, _, _| {});
    assert!(matches!(second, Err(Error::Taken(_))));
}

/// Whatever is longer than what is read is neither written nor, where it stands, cut off.
#[test]
fn a_line_beyond_all_measure_is_never_written_and_never_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(folder.path(), Bounds::default());
    write(&mut journal, 1..=2);
    let long = Entry {
        why: "x".repeat(usize::try_from(MAX_LINE).unwrap()),
        ..entry(3)
    };
    let refused = journal.append(&[long], &patch(3)).unwrap_err();
    assert!(!refused.may_pass(), "{refused}");
    write(&mut journal, 3..=3);
    let mut large = patch(3);
    large.agents.values_mut().for_each(|agent| {
        agent.note = "y".repeat(usize::try_from(MAX_LINE).unwrap());
    });
    journal.turn("on", 3, 7, &large).unwrap_err();
    write(&mut journal, 4..=4);
    drop(journal);
    assert_eq!(turns(folder.path()).last(), Some(&(4, 4)));

    let path = folder.path().join(EVENTS);
    let mut bytes = fs::read(&path).unwrap();
    bytes.resize(bytes.len() + usize::try_from(MAX_LINE).unwrap(), b'z');
    bytes.push(b'\n');
    fs::write(&path, &bytes).unwrap();
    let broken = Journal::open(folder.path(), SHORT, |_, _, _| {}).unwrap_err();
    assert!(broken.to_string().contains("longer than"), "{broken}");
    assert_eq!(fs::read(&path).unwrap().len(), bytes.len());
}
