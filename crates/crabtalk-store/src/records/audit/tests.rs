use super::*;
use tempfile::TempDir;

fn entry(what: &str) -> AuditEntry {
    AuditEntry::new("2026-01-01T00:00:00Z".into(), what, "local").with("text", "some words")
}

/// Records with this many entries.
async fn written(count: u64) -> (TempDir, Records) {
    let home = tempfile::tempdir().expect("a folder");
    let records = Records::in_state(home.path());
    for n in 1..=count {
        let number = records.append(entry(&format!("thing-{n}"))).await;
        assert_eq!(number.expect("written"), n);
    }
    (home, records)
}

/// The problem that a check finds after a change of the tables.
async fn problem_after(change: &'static str) -> String {
    let (_home, records) = written(4).await;
    records
        .0
        .write(move |c| c.execute_batch(change))
        .await
        .expect("changed");
    let checked = records.verify().await.expect("read");
    checked.problem.expect("something does not fit")
}

fn fits(entries: u64) -> AuditCheck {
    AuditCheck {
        entries,
        problem: None,
    }
}

#[tokio::test]
async fn check_names_the_first_entry_that_does_not_fit() {
    for (change, problem) in [
        (
            "UPDATE audit SET entry = replace(entry, 'some', 'other') WHERE n = 2",
            "entry 2 or 3 was changed",
        ),
        (
            "UPDATE audit SET entry = replace(entry, 'some', 'other') WHERE n = 4",
            "the last entry, 4, was changed",
        ),
        (
            "DELETE FROM audit WHERE n = 2",
            "found entry 3, expected entry 2",
        ),
        (
            "DELETE FROM audit WHERE n > 2",
            "the last entry is 2, but 4 were written: entries were removed",
        ),
        (
            "UPDATE audit_head SET n = 3",
            "the last entry is 4, but 3 were written: entries were added",
        ),
        (
            "DELETE FROM audit_head",
            "the last entry is 4, but 0 were written: entries were added",
        ),
    ] {
        assert_eq!(problem_after(change).await, problem, "{change}");
    }
}

#[tokio::test]
async fn cut_chain_refuses_entries_until_new_chain() {
    let (_home, records) = written(3).await;
    let cut = "DELETE FROM audit WHERE n = 3";
    records
        .0
        .write(move |c| c.execute_batch(cut))
        .await
        .expect("cut");
    let refused = records.append(entry("refused")).await;
    assert!(matches!(refused, Err(Error::BrokenChain(_))), "{refused:?}");
    records
        .begin_chain(entry("new-chain"))
        .await
        .expect("begun");
    assert_eq!(records.append(entry("next")).await.expect("written"), 2);
    assert_eq!(records.verify().await.expect("read"), fits(2));
    let kept = records
        .0
        .read(|c| c.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)));
    assert_eq!(kept.await, Ok(4));
}

#[tokio::test]
async fn imported_chain_goes_on_and_is_imported_once() {
    let (_old_home, old) = written(3).await;
    let lines = old.latest(None, 10).await.expect("read").lines;
    let lines: Vec<(i64, String)> = (1..).zip(lines).collect();
    let home = tempfile::tempdir().expect("a folder");
    let records = Records::in_state(home.path());
    let import = || records.import_audit(lines.clone(), None);
    assert_eq!(import().await, Ok(true));
    assert_eq!(records.append(entry("next")).await.expect("written"), 4);
    assert_eq!(import().await, Ok(false));
    assert_eq!(records.verify().await.expect("read"), fits(4));

    // A record that was cut stays one.
    let home = tempfile::tempdir().expect("a folder");
    let records = Records::in_state(home.path());
    let cut = records.import_audit(lines[..2].to_vec(), Some((3, hash(&lines[2].1))));
    cut.await.expect("imported");
    assert!(records.verify().await.expect("read").problem.is_some());
}

#[tokio::test]
async fn long_text_is_cut() {
    let (_home, records) = written(0).await;
    let long = entry("long").with("text", "x".repeat(1_000_000));
    records.append(long).await.expect("written");
    let page = records.latest(None, 1).await.expect("read");
    assert!(page.lines[0].len() < 70_000 && page.lines[0].contains("1000000 bytes in all"));
}
