use super::*;
use crate::skills::{Error, load};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const TEXT: &str = "---\nname: s\ndescription: d\nallowed-tools: Bash(git:*) Read\n---\nx\n";

fn home() -> (tempfile::TempDir, PathBuf, TrustFile) {
    let temp = tempfile::tempdir().unwrap();
    let skill = fs::canonicalize(temp.path()).unwrap().join("skills/s");
    fs::create_dir_all(skill.join("scripts")).unwrap();
    fs::write(skill.join("SKILL.md"), TEXT).unwrap();
    fs::write(skill.join("scripts/run.sh"), "echo").unwrap();
    let file = TrustFile::new(temp.path().join("state/trust.toml"));
    (temp, skill, file)
}

/// Trusts the present content of a skill.
fn trust(file: &TrustFile, folder: &Path, at: &str, by: &str) -> Result<TrustedSkill, Error> {
    file.add_skill(Offer::of(folder)?, at, by)
}

fn preapproved(file: &TrustFile, folder: &Path, source: SkillSource) -> Vec<String> {
    let skill = load(folder, source).unwrap();
    let rules = file.load().unwrap().preapproved(&skill);
    rules.iter().map(ToString::to_string).collect()
}

#[test]
fn hash_is_over_sorted_path_length_and_bytes() {
    use sha2::{Digest, Sha256};
    let (_temp, skill, _) = home();
    let mut bytes = Vec::new();
    for (path, text) in [("SKILL.md", TEXT), ("scripts/run.sh", "echo")] {
        bytes.extend(format!("{path}\0{}\0{text}", text.len()).bytes());
    }
    let wanted: String = Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(content_hash(&skill).unwrap(), wanted);
}

#[test]
fn any_change_changes_the_hash() {
    let (_temp, skill, _) = home();
    let first = content_hash(&skill).unwrap();
    let script = skill.join("scripts/run.sh");
    let changes: [(&str, &dyn Fn()); 4] = [
        ("bytes", &|| fs::write(&script, "ECHO").unwrap()),
        ("a hidden file", &|| {
            fs::write(skill.join(".x"), "").unwrap()
        }),
        ("a name", &|| {
            fs::rename(&script, skill.join("scripts/other")).unwrap()
        }),
        ("a new file", &|| fs::write(skill.join("new"), "").unwrap()),
    ];
    let mut seen = vec![first];
    for (what, change) in changes {
        change();
        let hash = content_hash(&skill).unwrap();
        assert!(!seen.contains(&hash), "{what}");
        seen.push(hash);
    }
    // The border between two files counts.
    for (a, b) in [("xy", "z"), ("x", "yz")] {
        fs::write(skill.join("a"), a).unwrap();
        fs::write(skill.join("b"), b).unwrap();
        let hash = content_hash(&skill).unwrap();
        assert!(!seen.contains(&hash));
        seen.push(hash);
    }
}

#[test]
fn incomplete_hash_is_refused() {
    for (target, part) in [
        ("/etc/passwd", "leaves"),
        ("scripts", "to a folder"),
        ("no", "read"),
    ] {
        let (_temp, skill, file) = home();
        symlink(target, skill.join("link")).unwrap();
        let error = content_hash(&skill).unwrap_err().to_string();
        assert!(error.contains("link: ") && error.contains(part), "{error}");
        assert!(trust(&file, &skill, "t", "me").is_err());
    }
}

#[test]
fn preapproval_needs_home_and_hash() {
    let (_temp, skill, file) = home();
    let rules = ["bash(git)", "bash(git *)", "read"];
    let none: [&str; 0] = [];
    assert_eq!(preapproved(&file, &skill, SkillSource::Home), none);
    let trusted = trust(&file, &skill, "2026-11-01T00:00:00Z", "user").unwrap();
    assert_eq!(trusted.sha256, content_hash(&skill).unwrap());
    assert_eq!(preapproved(&file, &skill, SkillSource::Home), rules);
    assert_eq!(preapproved(&file, &skill, SkillSource::Project), none);
    assert_eq!(preapproved(&file, &skill, SkillSource::External), none);

    let loaded = load(&skill, SkillSource::Home).unwrap();
    fs::write(skill.join("scripts/run.sh"), "rm").unwrap();
    assert_eq!(preapproved(&file, &skill, SkillSource::Home), none);
    assert!(file.load().unwrap().preapproved(&loaded).is_empty());
    fs::write(skill.join("scripts/run.sh"), "echo").unwrap();
    assert_eq!(preapproved(&file, &skill, SkillSource::Home), rules);

    // The present content is trusted, but not the loaded one.
    fs::write(skill.join("SKILL.md"), TEXT.replace("Read", "Write")).unwrap();
    trust(&file, &skill, "t", "user").unwrap();
    assert!(file.load().unwrap().preapproved(&loaded).is_empty());

    assert!(file.remove_skill(&skill).unwrap());
    assert!(!file.remove_skill(&skill).unwrap());
    assert_eq!(preapproved(&file, &skill, SkillSource::Home), none);
}

#[test]
fn copy_of_a_trusted_skill_is_not_trusted() {
    let (temp, skill, file) = home();
    trust(&file, &skill, "t", "user").unwrap();
    let copy = temp.path().join("s");
    fs::rename(&skill, &copy).unwrap();
    assert!(preapproved(&file, &copy, SkillSource::Home).is_empty());
    // Its entry can still be removed.
    assert!(file.remove_skill(&skill).unwrap());
}

#[test]
fn each_section_is_changed_without_the_other() {
    let (temp, skill, file) = home();
    let work = temp.path().join("work");
    fs::create_dir_all(work.join("below")).unwrap();
    let path = temp.path().join("state/trust.toml");
    fs::create_dir(temp.path().join("state")).unwrap();
    let gone = "[[skill]]\npath = \"/gone\"\nsha256 = \"00\"\nat = \"t0\"\nby = \"me\"\n";
    fs::write(&path, gone).unwrap();
    file.add_folder(&work, "t1", "a").unwrap();
    file.add_folder(&work, "t2", "b").unwrap();
    trust(&file, &skill, "t3", "c").unwrap();
    let trust = file.load().unwrap();
    assert_eq!(trust.folders.len(), 1);
    assert_eq!((&*trust.folders[0].at, &*trust.folders[0].by), ("t2", "b"));
    assert_eq!(trust.skills.len(), 2);
    assert!(trust.trusts_folder(&work));
    assert!(trust.trusts_folder(&work.join("below/..")));
    assert!(!trust.trusts_folder(&work.join("below")));
    assert!(!trust.trusts_folder(temp.path()));
    assert!(file.remove_folder(&work).unwrap());
    assert!(fs::read_to_string(&path).unwrap().starts_with(gone));
    assert_eq!(file.load().unwrap().skills.len(), 2);
    assert!(!file.load().unwrap().trusts_folder(&work));
}

#[test]
fn file_is_private_and_replaced_whole() {
    let (temp, skill, file) = home();
    trust(&file, &skill, "t", "me").unwrap();
    let path = temp.path().join("state/trust.toml");
    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let mut names: Vec<_> = fs::read_dir(temp.path().join("state"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["trust.lock", "trust.toml"]);
}

#[test]
fn invalid_trust_file_trusts_nothing() {
    let (temp, skill, file) = home();
    let path = temp.path().join("state/trust.toml");
    fs::create_dir(temp.path().join("state")).unwrap();
    for text in [
        "[[skill",
        "skill = 1\n",
        "note = 1\n",
        "[[skill]]\npath = 1\n",
        "[[skill]]\npath = \"/x\"\nsha256 = \"0\"\nby = \"me\"\n",
        "[[folder]]\n",
    ] {
        fs::write(&path, text).unwrap();
        let error = file.load().unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{text}: {error}");
        assert!(error.to_string().contains("trust.toml "), "{error}");
        assert!(file.add_folder(temp.path(), "t", "me").is_err(), "{text}");
        assert!(trust(&file, &skill, "t", "me").is_err(), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::File::create(&path).unwrap().set_len(2_000_000).unwrap();
    assert!(matches!(file.load(), Err(Error::Broken { .. })));
}

#[test]
fn changes_at_once_are_all_kept() {
    let (temp, _, file) = home();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let folder = temp.path().join(format!("f{n}"));
            fs::create_dir(&folder).unwrap();
            let file = &file;
            scope.spawn(move || file.add_folder(&folder, "t", "me").unwrap());
        }
    });
    assert_eq!(file.load().unwrap().folders.len(), 8);
}

#[test]
fn missing_skills_cannot_be_trusted() {
    let (temp, _, file) = home();
    assert_eq!(file.load().unwrap(), Trust::default());
    assert!(file.add_folder(&temp.path().join("no"), "t", "me").is_err());
    let error = trust(&file, temp.path(), "t", "me")
        .unwrap_err()
        .to_string();
    assert!(error.contains("there is no SKILL.md"), "{error}");
}
