use super::*;
use rustix::fs::Mode;
use std::os::unix::fs::symlink;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap().join("skill");
    fs::create_dir(&root).unwrap();
    (temp, root)
}

fn sparse(path: &Path, len: u64) {
    File::create(path).unwrap().set_len(len).unwrap();
}

#[test]
fn only_regular_inner_files_are_read() {
    let (temp, root) = folder();
    fs::write(root.join("plain"), "text").unwrap();
    fs::write(temp.path().join("secret"), "secret").unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    symlink("plain", root.join("link")).unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("nothing", root.join("broken")).unwrap();
    sparse(&root.join("huge"), 10_000_000);
    let pipe = root.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR).unwrap();
    for (path, wanted) in [
        ("plain", Ok("text")),
        ("link", Ok("text")),
        ("out", Err("leaves")),
        ("up/secret", Err("leaves")),
        ("../secret", Err("leaves")),
        ("broken", Err("cannot be read")),
        ("missing", Err("cannot be read")),
        ("sub", Err("not a regular file")),
        ("pipe", Err("not a regular file")),
        ("huge", Err("has 10000000 bytes, the limit is 8388608")),
    ] {
        match (read(&root, path, MAX_FILE_BYTES), wanted) {
            (Ok(bytes), Ok(text)) => assert_eq!(bytes, text.as_bytes(), "{path}"),
            (Err(trouble), Err(part)) => {
                assert!(trouble.what.contains(part), "{path}: {trouble:?}");
            }
            (got, _) => panic!("{path}: {got:?}"),
        }
    }
}

#[test]
fn checked_path_is_not_opened_through_a_later_link() {
    let (temp, root) = folder();
    fs::create_dir(temp.path().join("elsewhere")).unwrap();
    fs::write(temp.path().join("elsewhere/file"), "secret").unwrap();
    symlink("../elsewhere", root.join("sub")).unwrap();
    symlink("../elsewhere/file", root.join("file")).unwrap();
    for path in ["sub/file", "file"] {
        assert!(
            system::open_real(&root, &root.join(path)).is_err(),
            "{path}"
        );
    }
}

#[test]
fn tree_lists_files_and_skipped_ones() {
    let (temp, root) = folder();
    fs::write(temp.path().join("secret"), "secret").unwrap();
    for path in ["b/z.md", "b.md", "a/é.md", ".hidden/x", ".dot"] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    symlink("b.md", root.join("link.md")).unwrap();
    symlink("../secret", root.join("out.md")).unwrap();
    symlink("b", root.join("folder-link")).unwrap();
    sparse(&root.join("huge.bin"), 10 * 1024 * 1024);
    let shown = tree(&root, hidden);
    let paths: Vec<&str> = shown.files.iter().map(String::as_str).collect();
    assert_eq!(paths, ["a/é.md", "b.md", "b/z.md", "link.md"]);
    let mut troubles: Vec<String> = shown
        .troubles
        .iter()
        .map(|t| format!("{} {}", t.file.file_name().unwrap().display(), t.what))
        .map(|text| text.chars().take(30).collect())
        .collect();
    troubles.sort();
    assert_eq!(
        troubles,
        [
            "folder-link is a symbolic link",
            "huge.bin has 10485760 bytes, t",
            "out.md is a symbolic link that",
        ]
    );
    let all = tree(&root, |_| false);
    assert_eq!(all.files.len(), 6);
}

#[test]
fn tree_is_bounded_in_depth_files_and_bytes() {
    let (_temp, root) = folder();
    fs::create_dir_all(root.join("1/2/3/4/5/6/7/8/9")).unwrap();
    fs::write(root.join("1/2/3/4/5/6/7/8/9/x"), "x").unwrap();
    let deep = tree(&root, hidden);
    assert!(deep.files.is_empty());
    assert!(deep.troubles[0].what.contains("8 folders deep"), "{deep:?}");

    let (_temp, root) = folder();
    for n in 0..9 {
        sparse(&root.join(n.to_string()), MAX_FILE_BYTES);
    }
    let heavy = tree(&root, hidden);
    assert_eq!(heavy.files.len(), 8);
    assert!(
        heavy.troubles[0].what.contains("67108864 bytes"),
        "{heavy:?}"
    );

    let (_temp, root) = folder();
    for n in 0..=6 {
        let sub = root.join((n % 3).to_string());
        fs::create_dir_all(&sub).unwrap();
        sparse(&sub.join(n.to_string()), 0);
    }
    assert!(tree_within(&root, hidden, 7).troubles.is_empty());
    let many = tree_within(&root, hidden, 6);
    assert_eq!(many.files.len(), 6);
    assert!(many.troubles[0].what.contains("6 files"), "{many:?}");

    let (_temp, root) = folder();
    fs::create_dir_all(root.join("a/b/c/d/e")).unwrap();
    assert!(!tree_within(&root, hidden, 2).troubles.is_empty());
}
