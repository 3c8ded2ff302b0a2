use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

struct Disk {
    _temp: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

fn disk(skills: &[&str]) -> Disk {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let disk = Disk {
        from: root.join("theirs"),
        to: root.join("config/skills"),
        _temp: temp,
    };
    for skill in skills {
        write(&disk.from.join(skill), "new");
    }
    disk
}

fn write(folder: &Path, body: &str) {
    fs::create_dir_all(folder).unwrap();
    let name = folder_name(folder);
    let text = format!("---\nname: {name}\ndescription: d\n---\n{body}\n");
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

impl Disk {
    fn import(&self, replace: bool) -> ImportReport {
        import(&self.from, &self.to, replace).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.to)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn body(&self, name: &str) -> String {
        load(&self.to.join(name), SkillSource::Home).unwrap().body
    }
}

/// A folder in which even root cannot create files.
const UNWRITABLE: &str = "/proc/self/fdinfo";

#[test]
fn refused_copy_is_reported_as_failed() {
    let disk = disk(&["a"]);
    let failed = |report: ImportReport| report.skipped[0].failed;
    assert!(disk.import(false).skipped.is_empty());
    assert!(!failed(disk.import(false)), "it exists");
    fs::remove_dir_all(&disk.to).unwrap();
    symlink(UNWRITABLE, &disk.to).unwrap();
    let report = disk.import(false);
    let reason = report.skipped[0].reason.clone();
    assert!(reason.contains("cannot be copied to /proc/"), "{reason}");
    assert!(failed(report));
}

#[test]
fn skills_are_copied_with_their_files() {
    let disk = disk(&["a", "category/b"]);
    let a = disk.from.join("a");
    for path in [
        "scripts/run.sh",
        ".config",
        ".git/HEAD",
        "__pycache__/x",
        ".DS_Store",
    ] {
        fs::create_dir_all(a.join(path).parent().unwrap()).unwrap();
        fs::write(a.join(path), "x").unwrap();
    }
    fs::set_permissions(a.join("scripts/run.sh"), Permissions::from_mode(0o4755)).unwrap();
    symlink("scripts/run.sh", a.join("link.sh")).unwrap();
    let report = disk.import(false);
    let copied: Vec<_> = report.copied.iter().map(|c| (&*c.name, c.files)).collect();
    assert_eq!(copied, [("a", 4), ("b", 1)]);
    assert_eq!((report.skipped, report.findings), (vec![], vec![]));
    assert_eq!(disk.names(), ["a", "b"]);
    let mode = |path: &str| {
        fs::symlink_metadata(disk.to.join(path))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("a/scripts/run.sh") & 0o7777, 0o700);
    assert_eq!(mode("a/SKILL.md") & 0o7777, 0o600);
    assert!(
        fs::symlink_metadata(disk.to.join("a/link.sh"))
            .unwrap()
            .is_file()
    );
    assert!(!disk.to.join("a/.git").exists());
    write(&a, "changed");
    assert_eq!(disk.body("a"), "new");
}

#[test]
fn existing_skills_are_replaced_on_request_only() {
    let disk = disk(&["a", "b", "c"]);
    write(&disk.to.join("A"), "mine");
    write(&disk.to.join("b"), "mine");
    fs::create_dir(disk.to.join("c")).unwrap();
    fs::create_dir(disk.to.join("c/inner")).unwrap();
    let report = disk.import(false);
    assert!(report.copied.is_empty(), "{report:?}");
    let reasons = |report: &ImportReport| -> Vec<String> {
        report.skipped.iter().map(|s| s.reason.clone()).collect()
    };
    let left = reasons(&report);
    assert!(left[0].contains("`a` exists already in"), "{left:?}");
    assert!(left[1].contains("`b` exists already in"), "{left:?}");
    assert!(left[2].contains("c, which is not replaced"), "{left:?}");
    assert_eq!(
        (disk.body("A"), disk.body("b")),
        ("mine".into(), "mine".into())
    );

    let report = disk.import(true);
    let copied: Vec<_> = report
        .copied
        .iter()
        .map(|c| (&*c.name, c.replaced))
        .collect();
    assert_eq!(copied, [("a", true), ("b", true)]);
    assert_eq!(reasons(&report), left[2..]);
    assert_eq!(disk.names(), ["a", "b", "c"]);
    assert_eq!(
        (disk.body("a"), disk.body("b")),
        ("new".into(), "new".into())
    );
    assert!(disk.to.join("c/inner").exists());
}

#[test]
fn invalid_skills_are_skipped() {
    let disk = disk(&["good", "huge", "leaves", "bad"]);
    fs::File::create(disk.from.join("huge/data"))
        .unwrap()
        .set_len(10_000_000)
        .unwrap();
    symlink("/etc/passwd", disk.from.join("leaves/passwd")).unwrap();
    fs::write(disk.from.join("bad/SKILL.md"), "---\na: [\n---\n").unwrap();
    symlink("/etc", disk.from.join("etc")).unwrap();
    let report = disk.import(false);
    assert_eq!(report.copied.len(), 1);
    assert_eq!(disk.names(), ["good"]);
    let reasons: Vec<&str> = report.skipped.iter().map(|s| s.reason.as_str()).collect();
    assert!(reasons[0].contains("bad/SKILL.md:"), "{reasons:?}");
    assert!(
        reasons[1].contains("huge/data: has 10000000 bytes"),
        "{reasons:?}"
    );
    assert!(
        reasons[2].contains("leaves/passwd: is a symbolic link that leaves"),
        "{reasons:?}"
    );
    assert!(
        report.findings[0]
            .to_string()
            .contains("theirs/etc: is a symbolic link")
    );
}

#[test]
fn faulty_skills_are_copied_with_warnings() {
    let disk = disk(&[]);
    write(&disk.from.join("My Skill"), "x");
    let text = "---\nname: my-skill\ndescription: Use: it\nversion: 1\n---\nx";
    fs::write(disk.from.join("My Skill/SKILL.md"), text).unwrap();
    let report = disk.import(false);
    assert_eq!(report.copied[0].name, "my-skill");
    assert_eq!(report.copied[0].warnings.len(), 3, "{report:?}");
    assert_eq!(disk.names(), ["my-skill"]);
}

#[test]
fn single_skill_same_folder_and_duplicates() {
    let disk = disk(&["a", "a/inner", "x/A"]);
    let report = import(&disk.from.join("a"), &disk.to, false).unwrap();
    assert_eq!(report.copied.len(), 1);
    assert!(disk.to.join("a/inner/SKILL.md").exists());
    fs::remove_dir_all(&disk.to).unwrap();
    let report = disk.import(true);
    assert_eq!(report.copied.len(), 1);
    assert!(
        report.skipped[0]
            .reason
            .contains("a second skill named `A`"),
        "{report:?}"
    );
    let report = import(&disk.to, &disk.to, true).unwrap();
    assert_eq!(report.copied, []);
    assert!(report.skipped[0].reason.contains("the same folder"));
    assert!(import(&disk.from.join("missing"), &disk.to, false).is_err());
}
