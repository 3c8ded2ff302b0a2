//! Configurations and indexes, as text and bytes.

use super::*;
use std::collections::BTreeMap;

/// Files by path. Folders are there when something is in them.
#[derive(Default)]
struct Files(BTreeMap<PathBuf, Vec<u8>>);

impl Disk for Files {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        crate::gate::path::absolute(path, Path::new("/"), None)
    }

    fn read(&self, file: &Path, _: u64) -> Content {
        let file = self.resolve(file).expect("absolute");
        match self.0.get(&file) {
            Some(text) => Content::File(text.clone()),
            None if self.0.keys().any(|path| path.starts_with(&file)) => Content::Folder,
            None => Content::Absent,
        }
    }
}

impl Files {
    fn with(mut self, path: &str, text: impl AsRef<[u8]>) -> Self {
        self.0.insert(path.into(), text.as_ref().to_vec());
        self
    }

    fn repository(self, top: &str, config: &str) -> Self {
        let git = format!("{top}/.git");
        self.with(&format!("{git}/HEAD"), "ref: refs/heads/main\n")
            .with(&format!("{git}/objects/x"), "")
            .with(&format!("{git}/refs/x"), "")
            .with(&format!("{git}/config"), config)
    }

    fn says(&self, folder: &str) -> Result<(), String> {
        check(self, Path::new(folder), None)
    }
}

#[test]
fn only_keys_that_name_no_program_pass() {
    for (config, passes) in [
        ("[core]\n\tbare = false\n\tfilemode = true\n", true),
        (
            "[Core]\nBare\n# x\n; y\n\n[remote \"origin\"]\n url = https://h/p\n",
            true,
        ),
        (
            "[branch \"a.b/c\"]\n\tremote = origin\n\tmerge = refs/heads/x\n",
            true,
        ),
        ("[core]\n\tfsmonitor = ./evil\n\thooksPath = x\n", true),
        ("[filter \"x\"]\n\tclean = evil\n", false),
        ("[FILTER \"x\"]\n\tClean = evil\n", false),
        ("[diff \"x\"]\n\ttextconv = evil\n", false),
        ("[diff]\n\texternal = evil\n", false),
        ("[core]\n\tsshCommand = evil\n", false),
        ("[core] sshCommand = evil\n", false),
        ("[core]\n\tbare = false \\\n[x]\n", false),
        ("[include]\n\tpath = x\n", false),
        ("[includeIf \"gitdir:x\"]\n\tpath = x\n", false),
        ("[filter.x]\n\tclean = evil\n", false),
        ("\u{feff}[filter \"x\"]\nclean = evil\n", false),
        ("bare = false\n", false),
        ("[remote \"o\"]\n\turl = ext::evil\n", false),
        ("[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n", false),
        ("[remote \"o\"]\n\tuploadpack = evil\n", false),
        ("[remote \"o\\\"]\\n[filter\"]\n\turl = x\n", false),
        ("[credential]\n\thelper = evil\n", false),
        ("[gc]\n\trecentObjectsHook = evil\n", false),
        ("[submodule \"x\"]\n\tupdate = !evil\n", false),
        ("[core]\n\tworktree = /home/u\n", false),
        ("[core]\n\tworktree = ..\n", true),
        ("[alias]\n\tx = !evil\n", true),
        ("[alias \"x\"]\n\tcommand = !evil\n", true),
    ] {
        let said = Files::default().repository("/w", config).says("/w/sub");
        assert_eq!(said.is_ok(), passes, "{config:?}: {said:?}");
    }
}

#[test]
fn every_file_that_git_reads_is_looked_at() {
    const EVIL: &str = "[filter \"x\"]\n\tclean = evil\n";
    let fine = || Files::default().repository("/w", "[core]\n\tbare = false\n");
    assert!(fine().says("/w").is_ok());
    assert!(fine().says("/elsewhere").is_ok());
    for files in [
        fine().with("/w/.git/config.worktree", EVIL),
        // An empty `.git` in between is passed over by git.
        fine()
            .with("/w/.git/config", EVIL)
            .with("/w/sub/.git/x", ""),
        fine()
            .with("/w/sub/.git", "gitdir: ../other\n")
            .with("/w/other/config", EVIL),
        fine()
            .with("/w/.git/commondir", "../c\n")
            .with("/w/c/config", EVIL),
        fine().with("/w/sub/.git", "something else"),
    ] {
        assert!(files.says("/w/sub").is_err());
    }
    assert!(fine().says("/w/.git/hooks").is_err());
}

#[test]
fn what_is_sent_goes_to_known_remotes_elsewhere() {
    let far = "[remote \"origin\"]\n\turl = git@h:p\n[branch \"m\"]\n\tremote = origin\n";
    for (config, to, passes) in [
        (far, None, true),
        (far, Some("origin"), true),
        (far, Some("evil"), false),
        (far, Some("."), false),
        ("[remote \"origin\"]\n\turl = ./evil\n", None, false),
        ("[remote \"origin\"]\n\turl = file:///evil\n", None, false),
        (
            "[remote \"origin\"]\n\turl = https://h/p\n\tpushurl = /evil\n",
            None,
            false,
        ),
        ("[branch \"m\"]\n\tremote = .\n", None, false),
        ("[remote]\n\tpushDefault = evil\n", None, false),
    ] {
        let files = Files::default().repository("/w", config);
        let sends = Sends {
            to: to.map(str::to_owned),
        };
        let said = check(&files, Path::new("/w"), Some(&sends));
        assert_eq!(said.is_ok(), passes, "{config:?} {to:?}: {said:?}");
    }
    let old = Files::default().repository("/w", far);
    assert!(!has_names(&old, Path::new("/w/.git/remotes")));
}

/// An index of version 2 with entries of these modes and names.
fn index(entries: &[(u32, &str)], tail: &[u8]) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(entries.len()).expect("few").to_be_bytes());
    for (mode, name) in entries {
        let begin = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(mode.to_be_bytes());
        bytes.extend([0; 12 + 20 + 2]);
        bytes.extend(name.bytes());
        let length = bytes.len() - begin;
        bytes.resize(begin + (length + 8) / 8 * 8, 0);
    }
    bytes.extend(tail);
    bytes.extend([0; 20]);
    bytes
}

#[test]
fn repositories_within_are_found_in_the_index() {
    let plain = [
        (0o100_644, "a"),
        (0o160_000, "sub/inner"),
        (0o120_000, "link"),
    ];
    assert_eq!(links(&index(&plain, b"")), Some(vec!["sub/inner".into()]));
    assert_eq!(
        links(&index(&plain, b"TREE\0\0\0\x02ab")),
        Some(vec!["sub/inner".into()])
    );
    // Most of the entries are in another file.
    assert_eq!(links(&index(&plain, b"link\0\0\0\x02ab")), None);
    assert_eq!(links(b"DIRC\0\0\0\x02\0\0\0\x09"), None);
    assert_eq!(links(b"something"), None);
    assert_eq!(links(&index(&[], b"")), Some(Vec::new()));

    let evil = "[filter \"x\"]\n\tclean = evil\n";
    let outer = Files::default()
        .repository("/w", "")
        .with("/w/.git/index", index(&plain, b""));
    assert!(outer.says("/w").is_ok());
    assert!(outer.repository("/w/sub/inner", evil).says("/w").is_err());
}
