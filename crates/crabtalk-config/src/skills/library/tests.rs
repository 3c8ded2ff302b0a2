use super::catalog::{MAX_CACHED_ROOTS, SETTLED};
use super::*;
use crate::skills::skill::folder_name;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

struct Disk {
    _temp: tempfile::TempDir,
    root: PathBuf,
}

fn disk(skills: &[(&str, &str)]) -> Disk {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let disk = Disk { _temp: temp, root };
    for (folder, description) in skills {
        disk.write(folder, description, "Do it.");
    }
    disk
}

impl Disk {
    fn write(&self, folder: &str, description: &str, body: &str) {
        let folder = self.root.join(folder);
        let name = folder_name(&folder).to_owned();
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n{body}\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
    }

    fn library(&self) -> Library {
        let folder = |name: &str, source| Folder {
            path: self.root.join(name),
            source,
        };
        Library::new(vec![
            folder("home", SkillSource::Home),
            folder("external", SkillSource::External),
        ])
    }

    fn cwd(&self) -> PathBuf {
        self.root.join("work")
    }
}

fn all(_: &str) -> bool {
    true
}

fn names(skills: &[SkillSummary]) -> Vec<&str> {
    skills.iter().map(|s| s.name.as_str()).collect()
}

const PROJECT: &str = "work/.crabtalk/skills";

#[test]
fn first_skill_of_a_name_wins() {
    let disk = disk(&[
        ("home/b", "from home"),
        ("home/group/a", "nested"),
        ("external/B", "from external"),
        ("external/c", "from external"),
        (&format!("{PROJECT}/C"), "from project"),
        (&format!("{PROJECT}/d"), "from project"),
    ]);
    let listing = disk.library().list(Some(&disk.cwd()), &all);
    let skills: Vec<_> = listing
        .skills
        .iter()
        .map(|s| (&*s.name, s.source))
        .collect();
    assert_eq!(
        skills,
        [
            ("b", SkillSource::Home),
            ("a", SkillSource::Home),
            ("c", SkillSource::External),
            ("d", SkillSource::Project),
        ]
    );
    let second: Vec<String> = listing
        .warnings
        .iter()
        .filter(|f| f.what.contains("second skill"))
        .map(|f| {
            f.file
                .strip_prefix(&disk.root)
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    assert_eq!(second, ["external/B", &format!("{PROJECT}/C")]);
    let elsewhere = disk.library().list(None, &all);
    assert_eq!(names(&elsewhere.skills), ["b", "a", "c"]);
}

fn load(library: &Library, name: &str) -> Skill {
    match library.find(name, None, &all) {
        Ok(Lookup::Skill(skill)) => *skill,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn exact_names_ignore_case_and_are_read_fresh() {
    let disk = disk(&[("home/feeds", "old"), ("home/x/deep", "nested")]);
    let library = disk.library();
    assert_eq!(load(&library, "FEEDS").summary.name, "feeds");
    assert_eq!(load(&library, "deep").summary.name, "deep");
    disk.write("home/feeds", "new", "Do that.");
    let skill = load(&library, "feeds");
    assert_eq!(
        (&*skill.summary.description, &*skill.body),
        ("new", "Do that.")
    );
    disk.write("home/later", "added", "x");
    load(&library, "later");
    fs::remove_dir_all(disk.root.join("home/feeds")).unwrap();
    let gone = library.find("feeds", None, &all).unwrap();
    assert!(matches!(gone, Lookup::Matches(found) if found.is_empty()));
}

#[test]
fn list_reflects_every_edit() {
    let disk = disk(&[("home/a", "one"), ("home/b", "two")]);
    for settled in [Duration::ZERO, SETTLED] {
        let mut library = disk.library();
        library.cache.settled = settled;
        library.list(None, &all);
        // Another size, so that even an unsettled stamp shows it.
        let text = format!("changed {settled:?}");
        disk.write("home/a", &text, "x");
        let listing = library.list(None, &all);
        assert_eq!(listing.skills[0].description, text);
        assert_eq!(names(&listing.skills), ["a", "b"]);
    }
}

#[test]
fn change_within_the_same_instant_is_seen() {
    let disk = disk(&[("home/a", "one")]);
    let library = disk.library();
    for description in ["two", "six", "ten", "one"] {
        disk.write("home/a", description, "x");
        assert_eq!(library.list(None, &all).skills[0].description, description);
    }
}

#[test]
fn unchanged_files_are_not_parsed_again() {
    let disk = disk(&[("home/a", "one")]);
    let mut library = disk.library();
    library.cache.settled = Duration::ZERO;
    library.list(None, &all);
    for parsed in library.cache.roots.lock().unwrap().values_mut() {
        for cached in Arc::make_mut(parsed).values_mut() {
            cached.skill.as_mut().unwrap().description = "from the cache".into();
        }
    }
    assert_eq!(
        library.list(None, &all).skills[0].description,
        "from the cache"
    );
    assert_eq!(load(&library, "a").summary.description, "one");
}

#[test]
fn search_ranks_names_before_descriptions() {
    let disk = disk(&[
        ("home/a", "Reads FEEDS and Größen"),
        ("home/check-feeds", "Looks"),
        ("home/z", "Other"),
    ]);
    let library = disk.library();
    for (query, wanted) in [
        ("", vec!["a", "check-feeds", "z"]),
        ("  ", vec!["a", "check-feeds", "z"]),
        ("feed", vec!["check-feeds", "a"]),
        ("GRÖSSEN", vec![]),
        ("größen", vec!["a"]),
        ("nothing", vec![]),
    ] {
        match library.find(query, None, &all).unwrap() {
            Lookup::Matches(found) => assert_eq!(names(&found), wanted, "{query}"),
            Lookup::Skill(_) => panic!("{query} is not a name"),
        }
    }
    assert!(matches!(
        library.find(" Z ", None, &all),
        Ok(Lookup::Skill(_))
    ));
}

#[test]
fn names_that_are_paths_are_refused() {
    let disk = disk(&[("home/a", "x"), ("secret", "x")]);
    let library = disk.library();
    for name in ["../secret", "..", "a/../../secret", "/etc", "a\\b", "x/a"] {
        assert!(
            matches!(library.find(name, None, &all), Err(Error::BadName(_))),
            "{name}"
        );
        let slash = library.resolve_slash(&format!("/{name}"), None, &all);
        assert_eq!(slash.unwrap(), None, "{name}");
    }
}

#[test]
fn scope_holds_for_every_way_in() {
    let disk = disk(&[("home/a", "x"), ("home/b", "x"), ("home/broken", "x")]);
    fs::write(disk.root.join("home/broken/SKILL.md"), "---\n").unwrap();
    let library = disk.library();
    let only_a = |name: &str| name == "a";
    assert_eq!(names(&library.list(None, &only_a).skills), ["a"]);
    let Ok(Lookup::Matches(found)) = library.find("", None, &only_a) else {
        panic!("an empty text lists");
    };
    assert_eq!(names(&found), ["a"]);
    for name in ["b", "B", "broken"] {
        let out = |error| matches!(error, Error::OutOfScope(n) if n == name.to_lowercase());
        assert!(
            out(library.find(name, None, &only_a).unwrap_err()),
            "{name}"
        );
        let slash = library.resolve_slash(&format!("/{name} x"), None, &only_a);
        assert!(out(slash.unwrap_err()), "{name}");
    }
    // It is the skill's own name that is asked about, not the spelling.
    assert!(matches!(
        library.find("A", None, &only_a),
        Ok(Lookup::Skill(_))
    ));
}

#[test]
fn slash_command_is_a_skill_or_plain_text() {
    let disk = disk(&[("home/feeds", "x"), (&format!("{PROJECT}/local"), "x")]);
    let library = disk.library();
    let cwd = disk.cwd();
    for (text, skill) in [
        ("/feeds", Some("feeds")),
        ("/feeds a b", Some("feeds")),
        ("/Feeds\nmore", Some("feeds")),
        ("/local", Some("local")),
        ("/unknown x", None),
        ("/feed", None),
        ("/", None),
        ("/ feeds", None),
        ("//feeds", None),
        ("/feeds/x", None),
        (" /feeds", None),
        ("feeds", None),
        ("/etc/passwd", None),
        ("", None),
    ] {
        let got = library.resolve_slash(text, Some(&cwd), &all).unwrap();
        assert_eq!(
            got.map(|s| s.skill.summary.name).as_deref(),
            skill,
            "{text:?}"
        );
    }
    let slash = library
        .resolve_slash("/feeds  a b ", None, &all)
        .unwrap()
        .unwrap();
    let folder = disk.root.join("home/feeds");
    assert_eq!(
        slash.text,
        format!(
            "<skill name=\"feeds\" folder=\"{}\">\nDo it.\n</skill>\n\na b",
            folder.display()
        )
    );
}

#[test]
fn refused_skill_frees_its_name() {
    let disk = disk(&[("home/a", "x"), ("external/a", "works"), ("home/b", "x")]);
    for name in ["a", "b"] {
        let manifest = disk.root.join("home").join(name).join("SKILL.md");
        fs::File::create(manifest)
            .unwrap()
            .set_len(10_000_000)
            .unwrap();
    }
    let library = disk.library();
    let listing = library.list(None, &all);
    assert_eq!(names(&listing.skills), ["a"]);
    assert_eq!(listing.warnings.len(), 2);
    assert_eq!(load(&library, "a").summary.description, "works");
    let error = library
        .resolve_slash("/b", None, &all)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("home/b/SKILL.md: has 10000000 bytes"),
        "{error}"
    );
}

#[test]
fn project_folder_outside_of_the_cwd_is_refused() {
    let disk = disk(&[("elsewhere/evil", "x"), ("work/own/good", "x")]);
    let library = disk.library();
    fs::create_dir(disk.cwd().join(".crabtalk")).unwrap();
    let link = disk.cwd().join(".crabtalk/skills");
    symlink("../../elsewhere", &link).unwrap();
    let listing = library.list(Some(&disk.cwd()), &all);
    assert!(listing.skills.is_empty());
    assert!(
        listing.warnings[0].what.contains("leaves the project"),
        "{listing:?}"
    );
    fs::remove_file(&link).unwrap();
    symlink("../own", &link).unwrap();
    let listing = library.list(Some(&disk.cwd()), &all);
    assert_eq!(names(&listing.skills), ["good"]);
}

#[test]
fn manifest_in_the_root_is_refused() {
    let disk = disk(&[("home", "x"), ("home/a", "x")]);
    let listing = disk.library().list(None, &all);
    assert_eq!(names(&listing.skills), ["a"]);
    assert!(
        listing.warnings[0]
            .what
            .contains("among the skills' folders")
    );
}

#[test]
fn configured_project_folder_counts_once() {
    let disk = disk(&[("home/a", "x")]);
    fs::create_dir_all(disk.cwd()).unwrap();
    let library = Library::new(vec![Folder {
        path: disk.cwd().join(".crabtalk/skills"),
        source: SkillSource::Home,
    }]);
    disk.write(&format!("{PROJECT}/a"), "x", "x");
    let listing = library.list(Some(&disk.cwd()), &all);
    assert_eq!(listing.skills.len(), 1);
    assert_eq!(listing.skills[0].source, SkillSource::Home);
    assert_eq!(listing.warnings, []);
}

#[test]
fn cache_is_bounded() {
    let disk = disk(&[]);
    let library = disk.library();
    for n in 0..2 * MAX_CACHED_ROOTS {
        disk.write(&format!("{n}/.crabtalk/skills/a"), "x", "x");
        assert_eq!(
            library
                .list(Some(&disk.root.join(n.to_string())), &all)
                .skills
                .len(),
            1
        );
    }
    assert!(library.cache.roots.lock().unwrap().len() <= MAX_CACHED_ROOTS);
}
