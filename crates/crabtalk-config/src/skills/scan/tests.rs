use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn tree(skills: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap().join("skills");
    fs::create_dir(&root).unwrap();
    for skill in skills {
        fs::create_dir_all(root.join(skill)).unwrap();
        fs::write(root.join(skill).join("SKILL.md"), "").unwrap();
    }
    (temp, root)
}

fn found(root: &Path) -> Vec<String> {
    let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
    scan(root).folders.iter().map(relative).collect()
}

#[test]
fn nearest_skills_are_found_first() {
    let (_temp, root) = tree(&[
        "category/deep/nested",
        "z",
        "category/my-skill",
        "a",
        "a/inner",
        "a/references/example",
        "a/scripts/b",
        "a/assets/template",
        ".hidden/b",
        "category/.git/c",
        "node_modules/d",
    ]);
    assert_eq!(
        found(&root),
        [
            "a",
            "z",
            "a/inner",
            "category/my-skill",
            "category/deep/nested"
        ]
    );
    assert_eq!(scan(&root).findings, []);
}

#[test]
fn links_out_of_the_root_are_reported() {
    let (temp, root) = tree(&["a"]);
    fs::create_dir(temp.path().join("outside")).unwrap();
    fs::write(temp.path().join("outside/SKILL.md"), "").unwrap();
    symlink("../outside", root.join("evil")).unwrap();
    symlink("a", root.join("alias")).unwrap();
    symlink("..", root.join("loop")).unwrap();
    symlink("../outside/SKILL.md", root.join("README.md")).unwrap();
    assert_eq!(found(&root), ["a"]);
    let findings: Vec<String> = scan(&root)
        .findings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].contains("skills/evil: is a symbolic link that leaves"));
    assert!(findings[1].contains("skills/loop: is a symbolic link that leaves"));
}

#[test]
fn exceeded_bounds_are_reported() {
    let (_temp, root) = tree(&["1/2/3/4/5/6", "1/2/3/4/5/b/7"]);
    let scanned = scan(&root);
    assert_eq!(found(&root), ["1/2/3/4/5/6"]);
    assert!(
        scanned.findings[0].what.contains("6 folders deep"),
        "{scanned:?}"
    );

    let (_temp, root) = tree(&["a"]);
    for n in 0..9 {
        fs::create_dir_all(root.join(format!("b/{n}"))).unwrap();
    }
    assert_eq!(scan_within(&root, 12).findings, []);
    let scanned = scan_within(&root, 11);
    assert_eq!(scanned.folders, [root.join("a")]);
    assert!(
        scanned.findings[0].what.contains("11 folders"),
        "{scanned:?}"
    );
}
