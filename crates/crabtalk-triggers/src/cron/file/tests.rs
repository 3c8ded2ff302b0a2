use super::*;
use std::path::PathBuf;

const NOW: &str = "2026-11-22T10:00:00Z";

fn around(limit: usize) -> Surroundings<'static> {
    static UTC: TimeZone = TimeZone::UTC;
    Surroundings {
        default_agent: "crab",
        local: &UTC,
        now: NOW.parse().unwrap(),
        limit,
    }
}

struct World {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn world(text: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crons.toml");
    if !text.is_empty() {
        std::fs::write(&path, text).unwrap();
    }
    World {
        path,
        _folder: folder,
    }
}

impl World {
    fn read(&self) -> Read {
        read_crons(&self.path, around(100)).unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }
}

fn entry(id: u64) -> CronEntry {
    let draft = Draft {
        id,
        schedule: "0 9 * * *".into(),
        content: "look \"here\"\nand there".into(),
        zone: "Europe/Berlin".into(),
        once: true,
        by: "user".into(),
        ..Draft::default()
    };
    draft
        .check_new("crab", &TimeZone::UTC, NOW.parse().unwrap())
        .unwrap()
}

const MINE: &str = "# mine\n[[cron]]\nid = 1 # the first\nschedule = \"0 9 * * 1-5\"\n\
    content = \"look\"\npaused = false # not yet\n\n# the other one\n[[cron]]\nid = 2\n\
    at = 2026-12-24T17:30:00\ncontent = \"gifts\"\n";

#[test]
fn edits_keep_comments_and_other_entries() {
    let world = world(MINE);
    let read = world.read();
    assert_eq!(read.findings, []);
    let mut file = CRONS.edit(&world.path, read.text.as_deref()).unwrap();
    file.add(table(&entry(7).draft)).unwrap();
    assert!(pause(&mut file, 1, true));
    assert!(!pause(&mut file, 9, true));
    let now = file.save().unwrap();
    assert_eq!(world.text(), now);
    assert!(
        now.starts_with("# mine\n[[cron]]\nid = 1 # the first\n"),
        "{now}"
    );
    assert!(now.contains("paused = true # not yet"), "{now}");
    assert!(now.contains("# the other one"), "{now}");
    let read = world.read();
    let ids: Vec<u64> = read.entries.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [1, 2, 7]);
    assert_eq!(read.entries[2], entry(7));
    let mut file = CRONS.edit(&world.path, read.text.as_deref()).unwrap();
    assert!(file.remove(2));
    assert!(!file.remove(2));
    let now = file.save().unwrap();
    assert!(now.contains("# mine") && !now.contains("gifts"), "{now}");
}

#[test]
fn first_entry_creates_the_file() {
    let world = world("");
    let mut file = CRONS.edit(&world.path, None).unwrap();
    file.add(table(&entry(1).draft)).unwrap();
    file.save().unwrap();
    assert!(world.text().starts_with("# Entries that start runs"));
    assert_eq!(world.read().entries, [entry(1)]);
}

#[test]
fn concurrent_edits_are_conflicts() {
    let world = world(MINE);
    let taken = world.read().text;
    let file = CRONS.edit(&world.path, taken.as_deref()).unwrap();
    std::fs::write(&world.path, format!("{MINE}# more\n")).unwrap();
    assert!(matches!(file.save(), Err(TablesError::Conflict(_))));
    let error = CRONS.edit(&world.path, taken.as_deref()).unwrap_err();
    assert!(error.to_string().contains("reload"), "{error}");
    assert!(world.text().ends_with("# more\n"));
}

#[test]
fn broken_entries_are_reported_by_line() {
    let world = world(
        "[[cron]]\nid = 1\nschedule = \"61 * * * *\"\ncontent = \"a\"\n\
         [[cron]]\nschedule = \"* * * * *\"\ncontent = \"b\"\n\
         [[cron]]\nid = 3\nschedule = \"* * * * *\"\ncontent = \"c\"\n\
         [[cron]]\nid = 3\nschedule = \"* * * * *\"\ncontent = \"d\"\n\
         [[cron]]\nid = 4\nschedule = 5\ncontent = \"e\"\n\
         [[cron]]\nid = 5\nschedul = \"* * * * *\"\ncontent = \"f\"\n\
         [[cron]]\nid = 6\nat = \"17:30\"\ncontent = \"g\"\n\
         [[cron]]\nid = -1\nschedule = \"* * * * *\"\ncontent = \"h\"\n\
         [[cron]]\nid = 7\nschedule = \"* * * * *\"\nzone = \"Mars/X\"\ncontent = \"i\"\n\
         [crons]\nx = 1\n",
    );
    let read = world.read();
    assert_eq!(read.entries.len(), 1);
    assert_eq!(read.entries[0].draft.content, "c");
    let found: Vec<String> = read
        .findings
        .iter()
        .map(|finding| format!("{} {:?} {}", finding.line, finding.id, finding.why))
        .collect();
    for (finding, want) in found.iter().zip([
        "1 Some(1) the minute field",
        "5 None it has no id",
        "12 Some(3) another entry has the id 3",
        "16 Some(4) schedule must be a string in quotes",
        "20 Some(5) the key \"schedul\" is unknown",
        "24 Some(6) at = \"17:30\" has no date",
        "28 None id must be a number",
        "32 Some(7) unknown time zone \"Mars/X\"",
        "37 None \"crons\" is unknown",
    ]) {
        assert!(finding.starts_with(want), "{finding}");
    }
    assert_eq!(found.len(), 9);
}

#[test]
fn invalid_toml_is_refused_and_kept() {
    for garbage in [&b"[[cron]\n"[..], b"\xff\xfe", b"id = \x00", &[b'['; 5000]] {
        let world = world("");
        std::fs::write(&world.path, garbage).unwrap();
        assert!(read_crons(&world.path, around(9)).is_err());
        assert!(CRONS.edit(&world.path, None).is_err());
        assert_eq!(std::fs::read(&world.path).unwrap(), garbage);
    }
    let world = world("x = 1\n[[cron]\n");
    let error = read_crons(&world.path, around(9)).unwrap_err();
    assert!(error.to_string().contains("crons.toml:2: "), "{error}");
}

#[test]
fn inline_entries_are_kept() {
    let inline = "cron = [{ id = 1, schedule = \"* * * * *\", content = \"x\" }]\n";
    let world = world(inline);
    let read = world.read();
    assert!(read.findings[0].why.contains("[[cron]]"));
    let mut file = CRONS.edit(&world.path, read.text.as_deref()).unwrap();
    assert!(file.add(table(&entry(2).draft)).is_err());
}

#[test]
fn entries_beyond_the_limit_are_reported() {
    let text: String = (1..=10)
        .map(|id| format!("[[cron]]\nid = {id}\nschedule = \"* * * * *\"\ncontent = \"x\"\n"))
        .collect();
    let world = world(&text);
    let read = read_crons(&world.path, around(4)).unwrap();
    assert_eq!((read.entries.len(), read.findings.len()), (4, 6));
    assert!(read.findings[0].why.contains("the limit ([limits] crons)"));
}
