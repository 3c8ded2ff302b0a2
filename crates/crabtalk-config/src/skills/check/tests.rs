use super::*;
use std::fs;

fn write(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

#[test]
fn check_takes_one_skill_or_a_folder() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    write(
        &root.join("good"),
        "---\nname: good\ndescription: d\n---\nx",
    );
    write(
        &root.join("more/bad"),
        "---\nname: Bad\ndescription: d\nmodel: x\n---\nx",
    );
    write(&root.join("more/worse"), "---\nname: [\n---\nx");
    let report = check(&root.join("good")).unwrap();
    assert!(report.passed(), "{report:?}");
    assert_eq!(report.skills, [root.join("good")]);

    let report = check(&root).unwrap();
    assert!(!report.passed());
    assert_eq!(report.skills.len(), 3);
    let texts: Vec<String> = report
        .findings
        .iter()
        .map(|f| f.to_string().replace(&format!("{}/", root.display()), ""))
        .collect();
    assert_eq!(texts.len(), 4, "{texts:#?}");
    for (text, start) in texts.iter().zip([
        "more/bad/SKILL.md:2: the name \"Bad\" has upper-case letters; for example `bad`",
        "more/bad/SKILL.md:4: `model` is not a field of a skill; the fields are name,",
        "more/bad/SKILL.md:2: the name differs from that of its folder, `bad`; write `name: bad`",
        "more/worse/SKILL.md:",
    ]) {
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn faults_fail_a_check_and_advice_does_not() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("a");
    write(&folder, "---\nname: a\ndescription: d\n---\n");
    let report = check(&folder).unwrap();
    assert_eq!(report.findings.len(), 1);
    assert!(report.passed());
    std::os::unix::fs::symlink("/etc/passwd", folder.join("x")).unwrap();
    let report = check(&folder).unwrap();
    assert!(!report.passed());
    assert!(
        report.findings[1]
            .to_string()
            .contains("a/x: is a symbolic link that leaves")
    );
}

#[test]
fn empty_folder_is_a_finding() {
    let temp = tempfile::tempdir().unwrap();
    let report = check(temp.path()).unwrap();
    assert!(!report.passed());
    assert!(report.findings[0].what.contains("no SKILL.md"));
    fs::write(temp.path().join("file"), "").unwrap();
    for name in ["missing", "file"] {
        let error = check(&temp.path().join(name)).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
