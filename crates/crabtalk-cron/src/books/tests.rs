use super::*;
use crate::account::Why;
use std::os::unix::fs::PermissionsExt;

fn now() -> Timestamp {
    "2026-11-22T10:00:00Z".parse().unwrap()
}

fn fired(id: u64, seq: u64) -> Line {
    Line::Fired(Fired {
        id,
        seq,
        due: Some(now()),
        at: now(),
        late: false,
        once: false,
        agent: "crab".into(),
        sender: "cron".into(),
        words: "look".into(),
    })
}

fn ended(id: u64, seq: u64, outcome: Outcome) -> Line {
    Line::Ended(Ended {
        id,
        seq,
        at: now(),
        outcome,
        code: 0,
        error: String::new(),
        ms: 12,
        usage: Usage {
            tokens: 5,
            money: Some(0.5),
        },
        run: Some(3),
        refused: vec!["bash: rm".into()],
        unstarted: false,
    })
}

#[test]
fn a_run_without_an_end_was_interrupted_and_never_ok() {
    let folder = tempfile::tempdir().unwrap();
    let (mut books, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!(loaded, Loaded::default());
    books
        .append(&[fired(1, 1), ended(1, 1, Outcome::Ok)])
        .unwrap();
    books.append(&[fired(1, 2)]).unwrap();
    drop(books);
    let (_, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!(loaded.interrupted.len(), 1);
    let account = &loaded.accounts[&1];
    assert_eq!(
        (account.fired, account.failures, account.open),
        (2, 1, None)
    );
    assert_eq!(account.usage.tokens, 5);
    assert_eq!((loaded.last_id, loaded.last_seq), (1, 2));
    let rows = Books::rows(folder.path(), Some(1), 10).unwrap();
    let outcomes: Vec<_> = rows
        .iter()
        .map(|row| match row {
            Row::Run(fired, ended) => (fired.seq, ended.as_ref().unwrap().outcome),
            Row::Skipped(skipped) => panic!("{skipped:?}"),
        })
        .collect();
    assert_eq!(outcomes, [(2, Outcome::Interrupted), (1, Outcome::Ok)]);
    // Said once.
    let (_, loaded) = Books::open(folder.path(), now()).unwrap();
    assert!(loaded.interrupted.is_empty());
}

#[test]
fn a_line_that_a_crash_tore_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (mut books, _) = Books::open(folder.path(), now()).unwrap();
    books
        .append(&[fired(1, 1), ended(1, 1, Outcome::Ok)])
        .unwrap();
    let path = folder.path().join("000001.jsonl");
    let mut text = std::fs::read(&path).unwrap();
    text.extend(b"{\"fired\":{\"id\":1,\"se");
    std::fs::write(&path, text).unwrap();
    let (mut books, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!((loaded.broken, loaded.accounts[&1].fired), (1, 1));
    books.append(&[fired(2, 2)]).unwrap();
    let (_, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!(loaded.accounts[&2].fired, 1);
}

#[test]
fn garbage_in_the_place_of_the_books_is_told_or_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("000001.jsonl"), b"\xff\n{}\nnull\n[[[").unwrap();
    std::fs::write(folder.path().join("notes.txt"), b"mine").unwrap();
    let (_, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!(loaded.broken, 4);
    let other = tempfile::tempdir().unwrap();
    std::fs::create_dir(other.path().join("000001.jsonl")).unwrap();
    let error = Books::open(other.path(), now()).unwrap_err();
    assert!(error.to_string().contains("folder"), "{error}");
}

#[test]
fn numbers_go_on_behind_a_newest_file_of_garbage() {
    let folder = tempfile::tempdir().unwrap();
    let (mut books, _) = Books::open(folder.path(), now()).unwrap();
    books
        .append(&[fired(4, 7), ended(4, 7, Outcome::Ok)])
        .unwrap();
    books
        .turn(&[Line::Numbers {
            last_id: 4,
            last_seq: 7,
        }])
        .unwrap();
    fs::write(books.path(books.number), [0; 100]).unwrap();
    drop(books);
    let (mut books, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!((loaded.last_id, loaded.last_seq), (4, 7));
    // What had fired is in the garbage, and is not made up for.
    assert_eq!(loaded.accounts.len(), 0);
    books.append(&[fired(5, 8)]).unwrap();
    let rows = Books::rows(folder.path(), None, 10).unwrap();
    let seqs = rows.iter().map(|row| match row {
        Row::Run(fired, _) => fired.seq,
        Row::Skipped(_) => 0,
    });
    assert_eq!(seqs.collect::<Vec<_>>(), [8, 7]);
}

#[test]
fn a_new_file_says_what_the_old_ones_said_and_the_oldest_go_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let (mut books, _) = Books::open(folder.path(), now()).unwrap();
    for turn in 1..=KEEP_FILES as u64 + 3 {
        books
            .append(&[fired(7, turn), ended(7, turn, Outcome::Ok)])
            .unwrap();
        let (_, loaded) = Books::open(folder.path(), now()).unwrap();
        let mut summary = vec![Line::Numbers {
            last_id: 99,
            last_seq: turn,
        }];
        summary.extend(
            loaded
                .accounts
                .into_iter()
                .map(|(id, account)| Line::Account {
                    id,
                    account: Box::new(account),
                }),
        );
        books.turn(&summary).unwrap();
    }
    let (_, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!((loaded.last_id, loaded.last_seq), (99, 11));
    assert_eq!(loaded.accounts[&7].fired, 11);
    assert_eq!(files(folder.path()).unwrap().len(), KEEP_FILES);
    // The rows of the files that are left.
    assert_eq!(
        Books::rows(folder.path(), None, 100).unwrap().len(),
        KEEP_FILES - 1
    );
    assert_eq!(Books::rows(folder.path(), None, 3).unwrap().len(), 3);
    let mode = std::fs::metadata(folder.path().join("000012.jsonl")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
}

/// `/dev/full` takes nothing, as a full disk does.
#[test]
fn a_full_disk_keeps_the_end_of_a_run_for_later() {
    let folder = tempfile::tempdir().unwrap();
    let (mut books, _) = Books::open(folder.path(), now()).unwrap();
    books.append(&[fired(1, 1)]).unwrap();
    books.file = Some(File::options().write(true).open("/dev/full").unwrap());
    let end = ended(1, 1, Outcome::Ok);
    assert!(books.append(std::slice::from_ref(&end)).is_err());
    books.keep(end);
    assert!(!books.unwritten.is_empty());
    // There is room again.
    let skipped = Line::Skipped(Skipped {
        id: 1,
        due: now(),
        last: now(),
        count: 1,
        why: Why::Quiet,
        at: now(),
    });
    books.append(&[skipped]).unwrap();
    assert!(books.unwritten.is_empty());
    let (_, loaded) = Books::open(folder.path(), now()).unwrap();
    assert_eq!(loaded.broken, 0);
    assert_eq!(
        loaded.accounts[&1].ended.as_ref().unwrap().outcome,
        Outcome::Ok
    );
    assert_eq!(loaded.accounts[&1].skipped, 1);
}
