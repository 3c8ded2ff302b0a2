//! Ordinary folders, and folders prepared by an attacker.

use crabtalk_search::{Error, Hit, Index, Settings, Updated};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

struct World {
    root: tempfile::TempDir,
    settings: Settings,
}

impl World {
    /// A named folder `notes`, beside which others lie.
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let at = root.path().canonicalize().expect("there");
        for name in ["notes", "other", "home", "state"] {
            fs::create_dir(at.join(name)).expect("made");
        }
        let settings = Settings {
            folders: vec![at.join("notes")],
            ..Settings::default()
        };
        Self { root, settings }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().expect("there").join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn index(&self) -> Index {
        Index::open(&self.path("state")).expect("opens")
    }

    fn update(&self, index: &mut Index) -> Updated {
        let updated = index.update(&self.settings, &self.path("home"), None);
        updated.expect("up to date")
    }

    /// The files that have some words, without the folder's path.
    fn found(&self, words: &str) -> Vec<String> {
        let mut index = self.index();
        self.update(&mut index);
        let hits = index.search(&self.settings, words, 20).expect("asked");
        hits.iter().map(|hit| self.short(&hit.path)).collect()
    }

    fn short(&self, path: &Path) -> String {
        let short = path.strip_prefix(self.path("notes"));
        short.unwrap_or(path).display().to_string()
    }

    fn first(&self, words: &str) -> Hit {
        let index = self.index();
        let mut hits = index.search(&self.settings, words, 5).expect("asked");
        assert!(!hits.is_empty(), "{words}");
        hits.remove(0)
    }
}

#[test]
fn what_changed_is_read_and_nothing_else() {
    let world = World::new();
    world.write("notes/a.md", "apples and pears");
    world.write("notes/b/c.md", "plums");
    let mut index = world.index();
    assert_eq!(world.update(&mut index).read, 2);
    assert_eq!(world.update(&mut index).read, 0);
    world.write("notes/a.md", "cherries, many of them");
    fs::remove_file(world.path("notes/b/c.md")).expect("removed");
    let updated = world.update(&mut index);
    assert_eq!(
        (updated.read, updated.removed, updated.complete),
        (1, 1, true)
    );
    assert_eq!(world.found("apples"), [""; 0]);
    assert_eq!(world.found("plums"), [""; 0]);
    assert_eq!(world.found("cherries"), ["a.md"]);
    // It survives its program, and two may have it open.
    let mut second = world.index();
    assert_eq!(world.update(&mut second).read, 0);
    assert_eq!(index.files().expect("counted"), 1);
}

#[test]
fn words_are_found_as_people_write_them() {
    let world = World::new();
    world.write("notes/cafe.md", "Das Café in Zürich\nis nice");
    world.write("notes/tokyo.txt", "昨日は東京都へ行きました");
    world.write("notes/seoul.txt", "서울에서 만나요");
    world.write("notes/bangkok.txt", "ภาษาไทยไม่มีช่องว่าง");
    world.write(
        "notes/code.rs",
        "fn parseRequest(x: u8) {}\nlet http_client = 1;",
    );
    world.write("notes/wide.txt", b"\xff\xfew\0i\0d\0e\0l\0y\0");
    world.write("notes/run.txt", "She was running every day");
    world.write("notes/empty-name.txt", "");
    for (words, file) in [
        ("cafe zurich", "cafe.md"),
        ("CAFÉ", "cafe.md"),
        ("cafe\u{301}", "cafe.md"),
        ("東京", "tokyo.txt"),
        ("京都", "tokyo.txt"),
        ("서울", "seoul.txt"),
        ("ไทย", "bangkok.txt"),
        ("parse request", "code.rs"),
        ("parseRequest", "code.rs"),
        ("http_client", "code.rs"),
        ("widely", "wide.txt"),
        ("runs", "run.txt"),
        ("empty-name", "empty-name.txt"),
    ] {
        assert_eq!(world.found(words), [file], "{words}");
    }
    assert_eq!(
        world.found("東都"),
        [""; 0],
        "characters in a row, in this order"
    );
    // Nothing that is asked is syntax of the index.
    for words in [
        "a OR",
        "NEAR(",
        "x*",
        "-",
        "name:x",
        "a\" b",
        "'; DROP TABLE file; --",
    ] {
        let index = world.index();
        let asked = index.search(&world.settings, words, 5);
        assert!(
            matches!(asked, Ok(_) | Err(Error::NoWords(_))),
            "{words}: {asked:?}"
        );
    }
}

#[test]
fn the_best_place_comes_first_with_its_line() {
    let world = World::new();
    let mut long = String::new();
    for line in 1..500 {
        long.push_str(&format!("line {line} of filler\n"));
        if line == 321 {
            long.push_str("the zebra crossed the road\n");
        }
    }
    world.write("notes/long.txt", &long);
    world.write("notes/other.txt", "a road, and no animal");
    world.write("notes/zebra.md", "about zebras");
    assert_eq!(
        world.found("zebra road"),
        ["long.txt"],
        "all words before any"
    );
    let hit = world.first("zebra road");
    assert_eq!(hit.line, 322);
    assert_eq!(
        hit.text,
        "line 321 of filler\nthe zebra crossed the road\nline 322 of filler"
    );
    assert_eq!(world.found("zebra")[0], "zebra.md", "a name counts more");
    assert_eq!(
        world.found("zebra submarine").len(),
        2,
        "any where none has all"
    );
    let index = world.index();
    let lines = index.show(&world.settings, &world.path("notes/long.txt"), 322, 2);
    let lines = lines.expect("shown");
    assert_eq!(
        lines.lines,
        ["the zebra crossed the road", "line 322 of filler"]
    );
    assert_eq!((lines.first, lines.total), (322, 500));
    world.write(
        "notes/one.txt",
        format!("{}needle{}", "x ".repeat(5000), " y".repeat(5000)),
    );
    world.found("needle");
    let hit = world.first("needle");
    assert!(
        hit.text.contains("needle") && hit.text.chars().count() < 400,
        "{}",
        hit.text
    );
}

#[test]
fn ignore_files_hold_as_git_has_them() {
    let world = World::new();
    world.write(
        "notes/.gitignore",
        "target/\n*.tmp\n/only-top.md\n!keep.tmp\n",
    );
    world.write("notes/deep/.ignore", "!x.tmp\nhere.md\n");
    for path in [
        "target/a.md",
        "a.tmp",
        "keep.tmp",
        "only-top.md",
        "deep/only-top.md",
        "deep/x.tmp",
        "deep/here.md",
        "deep/target/b.md",
        "here.md",
        ".hidden/c.md",
        ".env",
    ] {
        world.write(&format!("notes/{path}"), "needle");
    }
    let mut found = world.found("needle");
    found.sort();
    assert_eq!(
        found,
        ["deep/only-top.md", "deep/x.tmp", "here.md", "keep.tmp"]
    );
}

#[test]
fn what_is_no_text_or_a_secret_is_left_out() {
    let mut world = World::new();
    world.write("notes/image.png", b"\x89PNG\0needle");
    world.write("notes/server.pem", "needle");
    world.write("notes/credentials.json", "needle");
    world.write("notes/copy.txt", "needle\n-----BEGIN PRIVATE KEY-----\n");
    world.write("notes/huge.txt", "needle ".repeat(400_000));
    world.write("notes/fine.txt", "needle");
    world.write("notes/home/x.txt", "needle");
    assert_eq!(world.found("needle"), ["fine.txt", "home/x.txt"]);
    // They are not shown by name either.
    let index = world.index();
    for name in [
        "server.pem",
        "copy.txt",
        "image.png",
        "huge.txt",
        "absent.txt",
    ] {
        let path = world.path("notes").join(name);
        let shown = index.show(&world.settings, &path, 1, 9);
        assert!(matches!(shown, Err(Error::Unknown(_))), "{name}: {shown:?}");
    }
    // The home of CrabTalk is left out wherever it lies.
    let mut index = world.index();
    let updated = index.update(&world.settings, &world.path("notes/home"), None);
    assert_eq!(updated.expect("done").removed, 1);
    // A person may wish otherwise, and back.
    world.settings.secrets = true;
    world.settings.skip = vec!["fine*".to_owned()];
    let mut found = world.found("needle");
    found.sort();
    assert_eq!(
        found,
        ["copy.txt", "credentials.json", "home/x.txt", "server.pem"]
    );
    world.settings.secrets = false;
    assert_eq!(world.found("needle"), ["home/x.txt"]);
}

#[test]
fn names_that_no_line_can_show_are_left_out() {
    let world = World::new();
    for name in [
        "a\nb.txt",
        "c\u{1b}[2Jd.txt",
        "folder\r/e.txt",
        "fine é.txt",
    ] {
        world.write(&format!("notes/{name}"), "needle");
    }
    assert_eq!(world.found("needle"), ["fine é.txt"]);
}

#[test]
fn what_lies_too_deep_is_told() {
    let world = World::new();
    let deep = "d/".repeat(80);
    world.write(&format!("notes/{deep}x.txt"), "needle");
    world.write("notes/y.txt", "needle");
    let mut index = world.index();
    let updated = world.update(&mut index);
    let [told] = &updated.failed[..] else {
        panic!("{updated:?}")
    };
    assert!(told.contains("folders deep"), "{told}");
    assert_eq!(world.found("needle"), ["y.txt"]);
}

#[test]
fn links_and_pipes_lead_nowhere() {
    let world = World::new();
    world.write("other/secret.md", "needle");
    world.write("other/ignore", "fine.txt");
    world.write("notes/fine.txt", "needle");
    symlink(world.path("other"), world.path("notes/folder")).expect("linked");
    symlink(world.path("other/secret.md"), world.path("notes/file.md")).expect("linked");
    symlink("fine.txt", world.path("notes/inside.md")).expect("linked");
    symlink("..", world.path("notes/up")).expect("linked");
    // Ignore files are read, too: a link, and one that would never end.
    symlink(world.path("other/ignore"), world.path("notes/.gitignore")).expect("linked");
    symlink("/dev/zero", world.path("notes/.ignore")).expect("linked");
    let mkfifo = |path: &str| {
        let made = std::process::Command::new("mkfifo")
            .arg(world.path(path))
            .status();
        assert!(made.is_ok_and(|status| status.success()));
    };
    mkfifo("notes/pipe.txt");
    world.write("notes/sub/x.txt", "needle");
    mkfifo("notes/sub/.ignore");
    assert_eq!(world.found("needle"), ["fine.txt", "sub/x.txt"]);

    // A file in the index that becomes a link is not followed, nor a folder on the way.
    let index = world.index();
    fs::remove_file(world.path("notes/fine.txt")).expect("removed");
    symlink(world.path("other/secret.md"), world.path("notes/fine.txt")).expect("linked");
    fs::rename(world.path("notes/sub"), world.path("notes/was")).expect("moved");
    symlink(world.path("notes/was"), world.path("notes/sub")).expect("linked");
    assert_eq!(
        index.search(&world.settings, "needle", 9).expect("asked"),
        []
    );
    for name in ["notes/fine.txt", "notes/sub/x.txt"] {
        let shown = index.show(&world.settings, &world.path(name), 1, 9);
        assert!(
            matches!(shown, Err(Error::Read { .. })),
            "{name}: {shown:?}"
        );
    }
    for path in ["notes/../other/secret.md", "other/secret.md"] {
        let shown = index.show(&world.settings, &world.path(path), 1, 9);
        assert!(shown.is_err(), "{path}");
    }
    // And the folder itself, once it is a link.
    fs::rename(world.path("notes"), world.path("moved")).expect("moved");
    symlink(world.path("other"), world.path("notes")).expect("linked");
    let updated = world.update(&mut world.index());
    assert_eq!((updated.failed.len(), updated.read), (1, 0));
    assert_eq!(world.index().files().expect("counted"), 0);
}

#[test]
fn a_broken_index_is_made_again_and_time_is_kept() {
    let world = World::new();
    for number in 0..50 {
        world.write(&format!("notes/{number}.md"), "needle");
    }
    assert_eq!(world.found("needle").len(), 20);
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(world.path(&format!("state/index.db{suffix}")));
    }
    world.write(
        "state/index.db",
        "this is no index at all, but it is long enough to look",
    );
    assert_eq!(world.found("needle").len(), 20);
    let mut index = world.index();
    world.write("notes/new.md", "haystack");
    let late = index.update(&world.settings, &world.path("home"), Some(Instant::now()));
    let late = late.expect("asked");
    assert_eq!(
        (late.complete, late.read, late.removed),
        (false, 0, 0),
        "nothing is taken out"
    );
    assert_eq!(index.files().expect("counted"), 50);
    let deep = "d/".repeat(80);
    world.write(&format!("notes/{deep}x.md"), "abyss");
    assert_eq!(world.found("abyss"), [""; 0]);
    assert_eq!(world.found("haystack"), ["new.md"]);
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(world.path("state/index.db"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0);
}
