use super::*;
use std::fs;

const NOTES: &[&str] = &["CREATE TABLE note (text TEXT NOT NULL UNIQUE) STRICT"];

fn database(folder: &Path, contents: Contents, migrations: &'static [&'static str]) -> Database {
    Database::new(Definition::new(
        folder.join("state/test.db"),
        contents,
        migrations,
    ))
}

fn add(
    database: &Database,
    text: &'static str,
) -> impl Future<Output = Result<usize, Error>> + use<> {
    database.write(move |c| c.execute("INSERT INTO note VALUES (?1)", [text]))
}

async fn notes(database: &Database) -> Result<Vec<String>, Error> {
    let work = |c: &Connection| {
        let mut all = c.prepare("SELECT text FROM note ORDER BY rowid")?;
        all.query_map([], |row| row.get(0))?.collect()
    };
    database.read(work).await
}

#[tokio::test]
async fn committed_writes_survive_reopening() {
    let home = tempfile::tempdir().expect("a folder");
    let database = || database(home.path(), Contents::Recorded, NOTES);
    let first = database();
    let all = ["a", "b", "c"].map(|text| add(&first, text));
    for added in all {
        added.await.expect("added");
    }
    assert_eq!(notes(&first).await.expect("read"), ["a", "b", "c"]);
    drop(first);
    assert_eq!(notes(&database()).await.expect("read"), ["a", "b", "c"]);
}

#[tokio::test]
async fn failed_write_undoes_itself_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let database = database(home.path(), Contents::Recorded, NOTES);
    // All wait in the queue while the first one opens the database.
    let all = ["a", "b"].map(|text| add(&database, text));
    let work = |c: &Connection| {
        c.execute("INSERT INTO note VALUES ('gone')", [])?;
        c.execute("INSERT INTO note VALUES ('a')", [])
    };
    let twice = database.write(work);
    let last = add(&database, "c");
    for added in all {
        added.await.expect("added");
    }
    twice.await.expect_err("the text is there already");
    last.await.expect("added");
    assert_eq!(notes(&database).await.expect("read"), ["a", "b", "c"]);
}

#[tokio::test]
async fn newer_or_damaged_records_are_refused_and_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let newer: &[&str] = &["CREATE TABLE note (text TEXT)", "CREATE TABLE more (n INT)"];
    let newer = database(home.path(), Contents::Recorded, newer);
    add(&newer, "a").await.expect("added");
    let known = database(home.path(), Contents::Recorded, NOTES);
    let refused = notes(&known).await.expect_err("newer");
    assert!(
        matches!(refused, Error::Newer { found: 2, .. }),
        "{refused}"
    );

    let home = tempfile::tempdir().expect("a folder");
    let damaged = database(home.path(), Contents::Recorded, NOTES);
    let file = damaged.path().to_owned();
    let garbage = vec![b'x'; 8192];
    fs::create_dir(home.path().join("state")).expect("made");
    fs::write(&file, &garbage).expect("written");
    let damaged = add(&damaged, "b").await;
    assert!(matches!(damaged, Err(Error::Damaged { .. })), "{damaged:?}");
    assert_eq!(fs::read(&file).expect("there"), garbage);
}

#[tokio::test]
async fn damaged_index_is_made_again() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("state/test.db");
    fs::create_dir(home.path().join("state")).expect("made");
    fs::write(&file, vec![b'x'; 8192]).expect("written");
    let index = database(home.path(), Contents::Derived, NOTES);
    add(&index, "a").await.expect("added");
    assert_eq!(notes(&index).await.expect("read"), ["a"]);
}

#[tokio::test]
async fn index_of_another_format_is_made_again() {
    let home = tempfile::tempdir().expect("a folder");
    let other: &[&str] = &["CREATE TABLE note (text TEXT, more TEXT)"];
    let other = database(home.path(), Contents::Derived, other);
    let filled = other.write(|c| c.execute("INSERT INTO note VALUES ('old', '')", []));
    filled.await.expect("added");
    let index = database(home.path(), Contents::Derived, NOTES);
    assert_eq!(notes(&index).await.expect("read"), Vec::<String>::new());
    add(&index, "new").await.expect("added");
    assert_eq!(notes(&index).await.expect("read"), ["new"]);
}

/// The statements of a text without comments, with single blanks.
fn statements(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = text.replace(" STRICT,", "").replace(" STRICT", "");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = text.split(';').map(words);
    all.map(|text| text.replace("( ", "(").replace(" )", ")"))
        .filter(|text| text.starts_with("CREATE TABLE"))
        .collect()
}

#[test]
fn guide_shows_the_tables() {
    let page = include_str!("../../../../docs/guide/databases.md");
    let blocks = page.split("```sql").skip(1);
    let shown: String = blocks.filter_map(|text| text.split("```").next()).collect();
    let shown = statements(&shown);
    let tables = [crate::records::MIGRATIONS, crate::derived::MIGRATIONS].concat();
    for table in statements(&tables.concat()) {
        assert!(
            shown.contains(&table),
            "docs/guide/databases.md lacks: {table}"
        );
    }
}

#[tokio::test]
async fn full_disk_refuses_the_write_and_keeps_the_rest() {
    let home = tempfile::tempdir().expect("a folder");
    let database = database(home.path(), Contents::Recorded, NOTES);
    add(&database, "a").await.expect("added");
    let full = database.write(|c| {
        let pages: i64 = c.pragma_query_value(None, "page_count", |row| row.get(0))?;
        c.pragma_update(None, "max_page_count", pages)?;
        c.execute("INSERT INTO note VALUES (?1)", ["b".repeat(1 << 20)])
    });
    let refused = full.await.expect_err("the disk is full");
    assert!(matches!(refused, Error::Unwritable { .. }), "{refused}");
    assert_eq!(notes(&database).await.expect("read"), ["a"]);
    let more = database.write(|c| c.pragma_update(None, "max_page_count", 1 << 20));
    more.await.expect("there is room again");
    add(&database, "c").await.expect("added");
    assert_eq!(notes(&database).await.expect("read"), ["a", "c"]);
}

#[tokio::test]
async fn failed_commit_refuses_all_its_writes() {
    let home = tempfile::tempdir().expect("a folder");
    // The reference is checked by the commit.
    let tables: &[&str] = &["CREATE TABLE note (text TEXT PRIMARY KEY);
        CREATE TABLE mark (note TEXT REFERENCES note (text) DEFERRABLE INITIALLY DEFERRED)"];
    let database = database(home.path(), Contents::Recorded, tables);
    // Both wait in the queue while the first one opens the database.
    let opened = add(&database, "a");
    let lost = database.write(|c| c.execute("INSERT INTO mark VALUES ('nothing')", []));
    let all = (opened.await.is_ok(), lost.await.is_ok());
    assert!(!all.1, "the commit failed");
    let kept = notes(&database).await.expect("read");
    assert_eq!(all.0, kept == ["a"], "{all:?} {kept:?}");
    add(&database, "b").await.expect("a new connection works");
}

#[tokio::test]
async fn write_ahead_log_stays_bounded() {
    let home = tempfile::tempdir().expect("a folder");
    let database = database(home.path(), Contents::Derived, NOTES);
    for n in 0..24 {
        let text = format!("{n}{}", "x".repeat(1 << 20));
        let added = database.write(move |c| c.execute("INSERT INTO note VALUES (?1)", [text]));
        added.await.expect("added");
    }
    let log = fs::metadata(home.path().join("state/test.db-wal")).expect("is there");
    assert!(log.len() <= 9 << 20, "{} bytes", log.len());
}

#[tokio::test]
async fn read_only_home_is_read_and_not_written() {
    let home = tempfile::tempdir().expect("a folder");
    let known = database(home.path(), Contents::Recorded, NOTES);
    add(&known, "a").await.expect("added");
    drop(known);
    // The writer's thread closes the connection, which ends the write-ahead log.
    while home.path().join("state/test.db-wal").exists() {
        std::thread::yield_now();
    }
    let definition = |migrations| {
        let path = home.path().join("state/test.db");
        Definition::new(path, Contents::Recorded, migrations)
    };
    let connection = connection::read_only(&definition(NOTES)).expect("opens");
    let count = connection.query_row("SELECT count(*) FROM note", [], |row| row.get(0));
    assert_eq!(count, Ok(1));
    let refused = connection.execute("INSERT INTO note VALUES ('b')", []);
    let refused = connection::failed(home.path(), &refused.expect_err("read-only"));
    assert!(matches!(refused, Error::Unwritable { .. }), "{refused}");
    let newer: &[&str] = &["CREATE TABLE note (text TEXT)", "CREATE TABLE more (n INT)"];
    let older = connection::read_only(&definition(newer)).expect_err("has to be migrated");
    assert!(matches!(older, Error::Unwritable { .. }), "{older}");
}
