//! Protects a repository's configuration from commands that write to the
//! repository.
//!
//! git runs programs that its configuration and hooks name, later and outside
//! the sandbox. So `.git` is a separate mount, which cannot be renamed, and
//! its parts that name programs are read-only. Nested repositories are
//! not protected.

use super::policy::PLACEHOLDER;
use std::path::{Component, Path, PathBuf};

/// Parts of a git directory that decide which programs git runs.
const PARTS: &[&str] = &["config", "config.worktree", "commondir", "hooks", "modules"];

/// Such parts of the folder `info`, to which git itself also writes.
const INFO_PARTS: &[&str] = &["attributes"];

/// Such parts of the git directory of a linked work tree.
const WORKTREE_PARTS: &[&str] = &["config.worktree", "commondir", "gitdir"];

/// Maximum number of linked work trees whose parts are mounted separately; more
/// are read-only as a whole.
const MAX_WORKTREES: usize = 64;

/// Maximum number of files that one configuration includes, over all levels.
const MAX_INCLUDES: usize = 32;

/// Largest configuration and `.git` file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The mounts and checks that protect one repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Protected {
    /// git directories outside the folder that must be opened.
    pub(super) folders: Vec<PathBuf>,
    /// Folders that may be changed but not renamed.
    pub(super) pinned: Vec<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
    /// Missing names that git would obey if the command created them: the folder, the
    /// relative path, and whether it is an included file.
    pub(super) absent: Vec<(PathBuf, PathBuf, bool)>,
}

/// Finds the repository of a folder. `roots` are all writable folders.
///
/// # Errors
/// A link is at a path where a mount is needed.
pub(super) fn protected(
    root: &Path,
    roots: &[PathBuf],
    user_home: Option<&Path>,
) -> Result<Protected, String> {
    let entry = root.join(".git");
    let mut found = Protected {
        pinned: ancestors_within(&entry, roots),
        ..Protected::default()
    };
    let Ok(meta) = entry.symlink_metadata() else {
        if is_git_directory(root) {
            found.directory(root, roots, user_home)?;
        }
        return Ok(found);
    };
    if meta.is_symlink() {
        return Err(format!(
            "the command was not run, because {} is a link, which the sandbox cannot protect: replace the link by its target, or use `escalate` with a reason to ask for a run outside the sandbox",
            entry.display()
        ));
    }
    if meta.is_dir() {
        found.directory(&entry, roots, user_home)?;
        return Ok(found);
    }
    let target = target_of(&entry);
    found.read_only.push(entry.clone());
    let Some(target) = target else {
        return Ok(found);
    };
    if let Some(common) = common_of_worktree(&target, &entry) {
        found.folders.extend([common.clone(), target]);
        found.directory(&common, roots, user_home)?;
    } else if belongs_to_submodule(&target, root) {
        found.folders.push(target.clone());
        found.directory(&target, roots, user_home)?;
    }
    Ok(found)
}

impl Protected {
    fn directory(
        &mut self,
        git: &Path,
        roots: &[PathBuf],
        user_home: Option<&Path>,
    ) -> Result<(), String> {
        if !self.parts(git, PARTS) {
            return Ok(());
        }
        let info = git.join("info");
        match info.symlink_metadata() {
            Ok(meta) if meta.is_dir() => drop(self.parts(&info, INFO_PARTS)),
            Ok(_) => self.read_only.push(git.to_path_buf()),
            Err(_) => self.absent.push((git.to_path_buf(), "info".into(), false)),
        }
        self.worktrees(&git.join("worktrees"));
        let configurations = [git.join("config"), git.join("config.worktree")];
        self.includes(configurations.into(), roots, user_home)
    }

    /// Protects parts of a git directory. Returns whether the directory is still writable:
    /// a link among the parts makes all of it read-only, since a link
    /// cannot be covered by a mount.
    fn parts(&mut self, git: &Path, parts: &[&str]) -> bool {
        let mut missing = Vec::new();
        let mut present = Vec::new();
        for part in parts {
            let path = git.join(part);
            match path.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => {
                    self.read_only.push(git.to_path_buf());
                    return false;
                }
                Ok(_) if !is_placeholder(&path) => present.push(path),
                Ok(_) | Err(_) => missing.push((git.to_path_buf(), PathBuf::from(part), false)),
            }
        }
        self.pinned.push(git.to_path_buf());
        self.read_only.extend(present);
        self.absent.extend(missing);
        true
    }

    fn worktrees(&mut self, folder: &Path) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) if !folder.is_symlink() => entries,
            Ok(_) => return self.read_only.push(folder.to_path_buf()),
            Err(_) => return,
        };
        let all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        if all.len() > MAX_WORKTREES || all.iter().any(|path| path.is_symlink()) {
            return self.read_only.push(folder.to_path_buf());
        }
        self.pinned.push(folder.to_path_buf());
        for worktree in all {
            self.parts(&worktree, WORKTREE_PARTS);
        }
    }

    /// Protects the files in writable folders that the configuration includes.
    fn includes(
        &mut self,
        mut ahead: Vec<PathBuf>,
        roots: &[PathBuf],
        user_home: Option<&Path>,
    ) -> Result<(), String> {
        let mut seen = 0;
        while let Some(config) = ahead.pop() {
            for entry in entries(&config) {
                let is_include = entry.section == "include" || entry.section == "includeif";
                if !is_include || entry.key != "path" {
                    continue;
                }
                seen += 1;
                if seen > MAX_INCLUDES {
                    return Err(format!("{} includes too many files", config.display()));
                }
                let path = match (entry.value.strip_prefix("~/"), user_home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => config.parent().unwrap_or(Path::new("/")).join(&entry.value),
                };
                let path = plain(&path);
                self.included(&path, roots)?;
                ahead.push(path);
            }
        }
        Ok(())
    }

    fn included(&mut self, path: &Path, roots: &[PathBuf]) -> Result<(), String> {
        let Some(root) = roots.iter().find(|root| path.starts_with(root)) else {
            return Ok(());
        };
        if path.symlink_metadata().is_err() {
            let name = path.strip_prefix(root).unwrap_or(path);
            self.absent.push((root.clone(), name.to_path_buf(), true));
            return Ok(());
        }
        if path.canonicalize().ok().as_deref() != Some(path) {
            return Err(format!(
                "the command was not run, because git's configuration includes {} through a link, which the sandbox cannot protect: include the file by its real path, or use `escalate` with a reason to ask for a run outside the sandbox",
                path.display()
            ));
        }
        self.pinned.extend(ancestors_within(path, roots));
        self.read_only.push(path.to_path_buf());
        Ok(())
    }
}

/// Whether another command in this folder, running or killed, left a placeholder:
/// git ignores its content.
fn is_placeholder(path: &Path) -> bool {
    let has = |content: &[u8]| text_of(path).is_some_and(|text| text.as_bytes() == content);
    match path.file_name().and_then(|name| name.to_str()) {
        Some("commondir") => has(PLACEHOLDER),
        Some("config.worktree" | "attributes") => has(b""),
        Some("modules") => path.read_dir().is_ok_and(|mut all| all.next().is_none()),
        _ => false,
    }
}

/// The folders between a path and the outermost writable folder that contains
/// it.
pub(super) fn ancestors_within(path: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let around = roots.iter().filter(|root| path.starts_with(root));
    let Some(root) = around.min_by_key(|root| root.as_os_str().len()) else {
        return Vec::new();
    };
    let between = path.ancestors().skip(1);
    let between = between.take_while(|folder| *folder != root && folder.starts_with(root));
    between.map(Path::to_path_buf).collect()
}

/// The git directory that a `.git` file names.
fn target_of(file: &Path) -> Option<PathBuf> {
    let text = text_of(file)?;
    let named = text.trim_end().strip_prefix("gitdir: ")?;
    let target = file.parent()?.join(named).canonicalize().ok()?;
    target.join("HEAD").exists().then_some(target)
}

/// The common git directory, if `git` belongs to a linked work tree whose
/// `.git` file is `entry`.
fn common_of_worktree(git: &Path, entry: &Path) -> Option<PathBuf> {
    let worktrees = git.parent()?;
    let common = worktrees.parent()?;
    let resolved = |name: &str| {
        let text = text_of(&git.join(name))?;
        git.join(text.trim_end()).canonicalize().ok()
    };
    let points_back = resolved("gitdir")? == entry.canonicalize().ok()?;
    let is_below = worktrees.file_name()? == "worktrees" && resolved("commondir")? == common;
    (points_back && is_below && is_git_directory(common)).then(|| common.to_path_buf())
}

/// Whether a git directory names this folder as its work tree.
fn belongs_to_submodule(git: &Path, root: &Path) -> bool {
    let is_worktree = |entry: &Entry| entry.section == "core" && entry.key == "worktree";
    let mut named = entries(&git.join("config")).into_iter().filter(is_worktree);
    let names_root = |entry: Entry| {
        git.join(entry.value)
            .canonicalize()
            .is_ok_and(|p| p == root)
    };
    is_git_directory(git) && named.next_back().is_some_and(names_root)
}

fn is_git_directory(path: &Path) -> bool {
    path.join("HEAD").exists() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

fn text_of(file: &Path) -> Option<String> {
    let is_small = file
        .metadata()
        .is_ok_and(|m| m.is_file() && m.len() <= MAX_BYTES);
    let bytes = is_small.then(|| std::fs::read(file))?.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes `.` and `..` from a path without reading the disk.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else if part != Component::CurDir {
            plain.push(part);
        }
    }
    plain
}

/// A setting of a configuration file; section and key in lower case.
struct Entry {
    section: String,
    key: String,
    value: String,
}

/// Parses the part of git's syntax that path settings use.
fn entries(config: &Path) -> Vec<Entry> {
    let text = text_of(config).unwrap_or_default().replace("\\\n", "");
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let (head, after) = rest.rsplit_once(']').unwrap_or((rest, ""));
            let name = head.split([' ', '\t', '"', '.']).next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            line = after.trim();
        }
        if let Some((key, value)) = line.split_once('=') {
            found.push(Entry {
                section: section.clone(),
                key: key.trim().to_ascii_lowercase(),
                value: unquoted(value.trim()),
            });
        }
    }
    found
}

/// Removes quotes, escapes and a trailing comment.
fn unquoted(text: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => value.extend(characters.next()),
            '#' | ';' if !quoted => break,
            c => value.push(c),
        }
    }
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(root: &Path, path: &str) -> PathBuf {
        let path = root.join(path);
        std::fs::create_dir_all(&path).expect("creates");
        path
    }

    fn repository(root: &Path, path: &str) -> PathBuf {
        let git = folder(root, path);
        folder(&git, "objects");
        folder(&git, "refs");
        write(&git.join("HEAD"), "ref: refs/heads/main\n");
        git
    }

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).expect("writes");
    }

    fn protect(root: &Path) -> Protected {
        let root = root.to_path_buf();
        protected(&root, std::slice::from_ref(&root), None).expect("no link")
    }

    #[test]
    fn settings_of_paths_are_read() {
        let dir = tempfile::tempdir().expect("creates");
        let config = dir.path().join("config");
        write(
            &config,
            "[include] path = \"a b\" ; c\n[IncludeIf \"gitdir:~/x[1]/\"]\n\tPATH=../y\\\\z#d\n[core]\nworktree = ../..\n",
        );
        let found: Vec<_> = entries(&config)
            .into_iter()
            .map(|e| (e.section, e.key, e.value))
            .collect();
        let entry = |s: &str, k: &str, v: &str| (s.to_owned(), k.to_owned(), v.to_owned());
        let expected = [
            entry("include", "path", "a b"),
            entry("includeif", "path", "../y\\z"),
            entry("core", "worktree", "../.."),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn included_files_in_the_folder_are_protected() {
        let dir = tempfile::tempdir().expect("creates");
        let root = dir.path().canonicalize().expect("exists");
        let git = repository(&root, ".git");
        write(
            &git.join("config"),
            "[include]\npath = ../conf/git/inc\npath = ../later\npath = /etc/gitconfig\n",
        );
        write(&folder(&root, "conf/git").join("inc"), "");
        let found = protect(&root);
        let pinned = [".git", "conf/git", "conf"].map(|p| root.join(p));
        assert_eq!(found.pinned, pinned);
        let read_only = [".git/config", "conf/git/inc"].map(|p| root.join(p));
        assert_eq!(found.read_only, read_only);
        assert!(found.absent.contains(&(root, "later".into(), true)));
    }

    #[test]
    fn git_file_is_followed_only_if_its_target_points_back() {
        let dir = tempfile::tempdir().expect("creates");
        let base = dir.path().canonicalize().expect("exists");
        let common = repository(&base, "main/.git");
        let own = repository(&base, "main/.git/worktrees/tree");
        let tree = folder(&base, "tree");
        let entry = tree.join(".git");
        write(&entry, &format!("gitdir: {}\n", own.display()));
        write(&own.join("commondir"), "../..\n");
        write(&own.join("gitdir"), &format!("{}\n", entry.display()));
        assert_eq!(protect(&tree).folders, [common.clone(), own.clone()]);
        write(&own.join("gitdir"), "/elsewhere/.git\n");
        assert_eq!(protect(&tree).folders, [] as [PathBuf; 0]);
        write(&own.join("gitdir"), &format!("{}\n", entry.display()));
        write(&own.join("commondir"), "../../..\n");
        assert_eq!(protect(&tree).folders, [] as [PathBuf; 0]);

        let module = repository(&base, "main/.git/modules/sub");
        write(&entry, "gitdir: ../main/.git/modules/sub\n");
        write(
            &module.join("config"),
            "[core]\nworktree = ../../../../tree\n",
        );
        assert_eq!(protect(&tree).folders, std::slice::from_ref(&module));
        write(&module.join("config"), "[core]\nworktree = ../../../sub\n");
        assert_eq!(protect(&tree).folders, [] as [PathBuf; 0]);
    }
}
