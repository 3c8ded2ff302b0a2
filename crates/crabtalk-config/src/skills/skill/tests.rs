use super::*;
use std::os::unix::fs::symlink;

fn skill(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(temp.path()).unwrap().join(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(MANIFEST), text).unwrap();
    (temp, folder)
}

const TEXT: &str = "---\nname: feeds\ndescription: Checks feeds.\n---\nDo it.\n";

#[test]
fn skill_lists_its_files() {
    let (_temp, folder) = skill("feeds", TEXT);
    for path in [
        "scripts/run.sh",
        "references/a/b.md",
        "assets/é.txt",
        ".env",
        "LICENSE",
    ] {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), "x").unwrap();
    }
    let skill = load(&folder, SkillSource::Home).unwrap();
    assert_eq!(
        skill.files.paths,
        [
            "LICENSE",
            "assets/é.txt",
            "references/a/b.md",
            "scripts/run.sh"
        ]
    );
    assert_eq!(skill.warnings, []);
    assert_eq!(skill.summary.folder, folder);
}

#[test]
fn linked_or_huge_files_are_skipped() {
    let (temp, folder) = skill("feeds", TEXT);
    fs::write(temp.path().join("secret"), "s").unwrap();
    symlink("../secret", folder.join("notes.md")).unwrap();
    fs::File::create(folder.join("big.bin"))
        .unwrap()
        .set_len(10 * 1024 * 1024)
        .unwrap();
    let skill = load(&folder, SkillSource::Home).unwrap();
    assert!(skill.files.paths.is_empty());
    let texts: Vec<String> = skill.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts[0].contains("feeds/big.bin: has 10485760 bytes"),
        "{texts:?}"
    );
    assert!(
        texts[1].contains("feeds/notes.md: is a symbolic link"),
        "{texts:?}"
    );
}

#[test]
fn folder_names_the_skill() {
    for (folder, stated, name, warning) in [
        ("feeds", "name: feeds\n", Some("feeds"), ""),
        (
            "feeds",
            "name: other\n",
            Some("feeds"),
            "SKILL.md:2: the name differs from that of its folder",
        ),
        ("feeds", "", Some("feeds"), "there is no `name`"),
        (
            "My Feeds",
            "name: my-feeds\n",
            Some("my-feeds"),
            "rename it to `my-feeds`",
        ),
        ("naïve", "name: naïve\n", None, "cannot name a skill"),
        ("数据", "", None, "cannot name a skill"),
        ("..x", "name: ../x\n", None, "cannot name a skill"),
    ] {
        let text = format!("---\n{stated}description: d\n---\nx");
        let (_temp, path) = skill(folder, &text);
        let texts = match (load(&path, SkillSource::Home), name) {
            (Ok(skill), Some(name)) => {
                assert_eq!(skill.summary.name, name);
                format!(
                    "{:?}",
                    skill
                        .warnings
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                )
            }
            (Err(error @ Error::Refused { .. }), None) => error.to_string(),
            (got, _) => panic!("{folder}: {got:?}"),
        };
        assert!(texts.contains(warning), "{folder}: {texts}");
        assert_eq!(warning.is_empty(), texts == "[]", "{folder}: {texts}");
    }
}

#[test]
fn linked_or_huge_manifest_is_refused() {
    let (temp, folder) = skill("feeds", TEXT);
    let manifest = folder.join(MANIFEST);
    let refused = |part: &str| {
        let error = load(&folder, SkillSource::Home).unwrap_err().to_string();
        assert!(
            error.starts_with("the skill \"feeds\" cannot be loaded: "),
            "{error}"
        );
        assert!(
            error.contains("feeds/SKILL.md: ") && error.contains(part),
            "{error}"
        );
    };
    fs::File::create(&manifest)
        .unwrap()
        .set_len(10_000_000)
        .unwrap();
    refused("has 10000000 bytes, the limit is 1048576");
    fs::remove_file(&manifest).unwrap();
    fs::write(temp.path().join("secret.md"), TEXT).unwrap();
    symlink("../secret.md", &manifest).unwrap();
    refused("is a symbolic link that leaves");
    fs::remove_file(&manifest).unwrap();
    fs::create_dir(&manifest).unwrap();
    refused("is not a regular file");
    fs::remove_dir(&manifest).unwrap();
    fs::write(folder.join("text.md"), TEXT).unwrap();
    symlink("text.md", &manifest).unwrap();
    assert_eq!(load(&folder, SkillSource::Home).unwrap().body, "Do it.");
}

#[test]
fn lower_case_manifest_is_understood() {
    let (_temp, folder) = skill("feeds", TEXT);
    fs::rename(folder.join(MANIFEST), folder.join(LOWER_MANIFEST)).unwrap();
    let skill = load(&folder, SkillSource::Home).unwrap();
    assert_eq!(skill.warnings.len(), 1);
    assert!(
        skill.warnings[0]
            .to_string()
            .contains("rename it to SKILL.md")
    );
    assert!(skill.files.paths.is_empty());
}

#[test]
fn folder_without_manifest_is_not_a_skill() {
    let (_temp, folder) = skill("feeds", TEXT);
    fs::remove_file(folder.join(MANIFEST)).unwrap();
    let error = load(&folder, SkillSource::Home).unwrap_err().to_string();
    assert!(error.contains("there is no SKILL.md"), "{error}");
    assert!(matches!(
        load(&folder.join("x"), SkillSource::Home),
        Err(Error::Io { .. })
    ));
}
