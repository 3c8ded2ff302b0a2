//! The files of a git work tree before and after a command.
//!
//! Invariants: the repository is only read, and its index is copied; git runs with
//! separate settings, so that no configuration of a repository or user makes
//! it run a program; paths from git are checked before they are opened; time
//! and output of git are bounded.
//!
//! Ignored files are not examined. Files that git converts between repository
//! and work tree (line ends, LFS) are identified by size and not restored.

mod before;
mod git;

pub(super) use before::{Before, Changed};
pub(super) use git::Git;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Largest pointer file of a repository, such as `.git` of a linked work tree.
const MAX_POINTER_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) top: PathBuf,
    /// The folder of the index.
    git: PathBuf,
    /// The folder of the objects.
    common: PathBuf,
}

impl Tree {
    /// The work tree that contains a folder. A user's home folder does not count as a work tree.
    pub(super) fn of(folder: &Path, user_home: Option<&Path>) -> Option<Self> {
        let text = |path: &Path| crabtalk_files::read_text(path, MAX_POINTER_BYTES).ok();
        let (top, git) = folder.ancestors().find_map(|top| {
            let git = top.join(".git");
            let git = match git.symlink_metadata().ok()?.is_dir() {
                true => git,
                false => top.join(text(&git)?.strip_prefix("gitdir:")?.trim()),
            };
            git.join("HEAD").exists().then(|| (top.to_owned(), git))
        })?;
        if user_home == Some(&*top) {
            return None;
        }
        let common = match text(&git.join("commondir")) {
            Some(common) => git.join(common.trim()),
            None => git.clone(),
        };
        Some(Self { top, git, common })
    }

    fn is_sha256(&self) -> bool {
        let config = crabtalk_files::read_text(&self.common.join("config"), MAX_POINTER_BYTES);
        let config = config.unwrap_or_default().to_ascii_lowercase();
        let squeezed: String = config.split_whitespace().collect();
        squeezed.contains("objectformat=sha256")
    }

    /// Resolves a name from git to a path, if the path may be opened.
    fn path(&self, name: &OsStr) -> Option<PathBuf> {
        let name = Path::new(name);
        let plain = |part: Component<'_>| match part {
            Component::Normal(part) => !part.eq_ignore_ascii_case(".git"),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => false,
        };
        // Paths in the journal must be UTF-8.
        let whole = name.to_str().is_some_and(|name| !name.ends_with('/'));
        let may = whole && name.components().next().is_some() && name.components().all(plain);
        may.then(|| self.top.join(name))
    }
}
