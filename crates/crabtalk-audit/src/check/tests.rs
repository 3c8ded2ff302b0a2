use super::*;
use crate::{AuditEntry, Log, begin_anew};
use std::fs;
use tempfile::TempDir;

fn entry(what: &str) -> AuditEntry {
    AuditEntry::new("2026-01-01T00:00:00Z".into(), what, "local").with("text", "some words")
}

fn written(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::new(folder.path()).with_files_of(1000);
    for i in 0..count {
        let n = log.append(entry(&format!("thing-{i}"))).unwrap();
        assert_eq!(n, i as u64 + 1);
    }
    folder
}

fn problem(folder: &TempDir) -> String {
    let checked = check(folder.path()).unwrap();
    let problem = checked.problem.expect("something does not fit");
    problem.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn a_log_fits_over_files_and_restarts() {
    let folder = written(20);
    assert!(files(folder.path()).unwrap().len() > 2);
    assert_eq!(
        check(folder.path()).unwrap(),
        Check {
            lines: 20,
            problem: None
        }
    );
    let mut again = Log::new(folder.path()).with_files_of(1000);
    assert_eq!(again.append(entry("more")).unwrap(), 21);
    assert_eq!(check(folder.path()).unwrap().problem, None);
    let page = latest(folder.path(), None, 2).unwrap();
    assert!(page.more && page.lines[1].contains("more"), "{page:?}");
    let page = latest(folder.path(), Some(3), 10).unwrap();
    assert_eq!((page.lines.len(), page.more), (2, false));
    assert_eq!(
        check(&folder.path().join("none")).unwrap(),
        Check::default()
    );
}

/// Any change of any byte, anywhere, is found.
#[test]
fn whatever_is_changed_is_found_and_named() {
    let folder = written(3);
    let all = files(folder.path()).unwrap();
    for path in &all {
        let bytes = fs::read(path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(path, &changed).unwrap();
            assert!(check(folder.path()).unwrap().problem.is_some(), "byte {at}");
        }
        fs::write(path, &bytes).unwrap();
    }
    assert_eq!(check(folder.path()).unwrap().problem, None);
}

#[test]
fn the_first_line_that_does_not_fit_is_named() {
    let folder = written(4);
    let path = folder.path().join("audit.log");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let put = |lines: &[&str]| fs::write(&path, lines.join("\n") + "\n").unwrap();
    // Changed with care: only the next one tells.
    let changed = lines[1].replace("some words", "other words");
    put(&[lines[0], &changed, lines[2], lines[3]]);
    assert_eq!(
        problem(&folder),
        "audit.log:3: it does not fit the one before: entry 2 or this one was changed"
    );
    put(&[lines[0], lines[2], lines[3]]);
    assert_eq!(
        problem(&folder),
        "audit.log:2: entry 3 stands where entry 2 belongs"
    );
    put(&[lines[0], lines[1], lines[2]]);
    assert_eq!(
        problem(&folder),
        "it ends with entry 3, and there were 4: lines were removed"
    );
    put(&lines[..2]);
    assert_eq!(
        problem(&folder),
        "it ends with entry 2, and there were 4: lines were removed"
    );
    // And nobody writes on behind it.
    let error = Log::new(folder.path()).append(entry("x")).unwrap_err();
    assert!(error.to_string().contains("lines were removed"), "{error}");
    put(&lines);
    fs::remove_file(folder.path().join("audit.anchor")).unwrap();
    assert_eq!(problem(&folder), "the anchor is gone");
}

#[test]
fn a_torn_line_of_a_crash_is_cut_off_and_the_chain_goes_on() {
    let folder = written(2);
    let path = folder.path().join("audit.log");
    let whole = fs::read(&path).unwrap();
    for torn in [1, 10, 50] {
        let mut bytes = whole.clone();
        bytes.extend_from_slice(&whole[..torn]);
        fs::write(&path, &bytes).unwrap();
        assert!(check(folder.path()).unwrap().problem.is_some());
        let n = Log::new(folder.path()).append(entry("next")).unwrap();
        assert_eq!(n, 3);
        assert_eq!(check(folder.path()).unwrap().problem, None);
        fs::write(&path, &whole).unwrap();
        fs::remove_file(folder.path().join("audit.anchor")).unwrap();
    }
}

#[test]
fn a_long_text_is_cut_with_its_hash_and_a_disk_that_takes_nothing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::new(folder.path());
    log.append(entry("long").with("text", "x".repeat(1_000_000)))
        .unwrap();
    assert_eq!(check(folder.path()).unwrap().problem, None);
    let page = latest(folder.path(), None, 1).unwrap();
    assert!(page.lines[0].len() < 70_000 && page.lines[0].contains("1000000 bytes in all"));
    let file = folder.path().join("a-file");
    fs::write(&file, "").unwrap();
    assert!(Log::new(file.join("below")).append(entry("x")).is_err());
}

/// The anchor as a crash leaves it between the last line and its own writing.
fn crashed(folder: &TempDir) {
    let page = latest(folder.path(), None, 1).unwrap();
    let last: Line = serde_json::from_str(&page.lines[0]).unwrap();
    let anchor = folder.path().join("audit.anchor");
    match last.n {
        1 => fs::remove_file(anchor).unwrap(),
        n => {
            let text = format!("{{\"n\":{},\"hash\":\"{}\"}}", n - 1, last.prev);
            fs::write(anchor, text).unwrap();
        }
    }
}

/// In each place of a file, its first line and its last one included.
#[test]
fn a_crash_between_file_and_anchor_is_no_change_however_often() {
    for count in 1..12 {
        let folder = written(count);
        for more in 1..=3 {
            crashed(&folder);
            assert_eq!(check(folder.path()).unwrap().problem, None, "{count}");
            let mut log = Log::new(folder.path()).with_files_of(1000);
            // Killed again before it writes, it has mended the anchor by then.
            log.look().unwrap();
            let anchor = read_anchor(folder.path()).unwrap().unwrap();
            assert_eq!(anchor.n, (count + more) as u64 - 1, "{count}");
            let n = log.append(entry("the last thing it did")).unwrap();
            assert_eq!(n, (count + more) as u64);
        }
    }
}

#[test]
fn a_crash_between_two_files_is_no_change() {
    let folder = written(2);
    let path = folder.path().join("audit.log");
    let whole = fs::read(&path).unwrap();
    let closed = folder.path().join("audit.000000000001.log");
    fs::rename(&path, &closed).unwrap();
    assert_eq!(check(folder.path()).unwrap().problem, None);
    assert_eq!(Log::new(folder.path()).append(entry("next")).unwrap(), 3);
    crashed(&folder);
    assert_eq!(check(folder.path()).unwrap().problem, None);
    assert_eq!(Log::new(folder.path()).append(entry("next")).unwrap(), 4);
    assert_eq!(check(folder.path()).unwrap().problem, None);
    assert_eq!(fs::read(&closed).unwrap(), whole);
}

/// What was refused since the anchor could not be written is not in the log either,
/// or the log would say that it was done.
#[test]
fn an_entry_whose_anchor_cannot_be_written_is_none() {
    let folder = written(2);
    let (path, anchor) = (
        folder.path().join("audit.log"),
        folder.path().join("audit.anchor"),
    );
    let whole = fs::read(&path).unwrap();
    let kept = fs::read(&anchor).unwrap();
    let mut log = Log::new(folder.path());
    assert_eq!(log.append(entry("done")).unwrap(), 3);
    let with_three = fs::read(&path).unwrap();
    // A folder in its place.
    fs::remove_file(&anchor).unwrap();
    fs::create_dir(&anchor).unwrap();
    for _ in 0..3 {
        assert!(log.append(entry("refused")).is_err());
        assert_eq!(fs::read(&path).unwrap(), with_three);
    }
    fs::remove_dir(&anchor).unwrap();
    assert_eq!(log.append(entry("done")).unwrap(), 4);
    assert_eq!(check(folder.path()).unwrap().problem, None);
    assert!(fs::read(&path).unwrap().starts_with(&whole));
    assert_ne!(fs::read(&anchor).unwrap(), kept);
}

/// Also where a log is open meanwhile, as the daemon's is.
#[test]
fn lost_or_cut_record_begins_anew() {
    for lost in [true, false] {
        let folder = written(3);
        let mut log = Log::new(folder.path());
        log.append(entry("open")).unwrap();
        let file = files(folder.path()).unwrap().pop().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        if lost {
            fs::remove_file(&file).unwrap();
        } else {
            fs::write(&file, &text[..text.find('\n').unwrap() + 1]).unwrap();
        }
        let refused = log.append(entry("refused")).unwrap_err().to_string();
        assert!(refused.contains("audit new-chain"), "{refused}");
        let aside = begin_anew(folder.path(), entry("new-chain")).unwrap();
        assert!(aside.join("audit.anchor").exists());
        assert_eq!(log.append(entry("next")).unwrap(), 2);
        let fits = Check {
            lines: 2,
            problem: None,
        };
        assert_eq!(check(folder.path()).unwrap(), fits);
    }
}
