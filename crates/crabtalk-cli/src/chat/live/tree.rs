//! The files of the work tree, for completion.
//!
//! Invariants: the walk runs in a thread and is bounded; hidden and ignored files are
//! omitted.

use super::Live;
use ignore::WalkBuilder;
use std::path::Path;

/// Maximum number of files and folders, which a search can scan within a key press.
pub(super) const MAX_PATHS: usize = 50_000;

/// Files and folders below a folder.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Relative paths; folders end with a slash.
    pub(super) paths: Vec<String>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

impl Tree {
    /// Reads the names below a folder.
    fn read(folder: &Path, most: usize) -> Self {
        let mut tree = Self::default();
        let entries = WalkBuilder::new(folder)
            .follow_links(false)
            .require_git(false)
            .build();
        for entry in entries.flatten() {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let path = entry.path().strip_prefix(folder).ok();
            let Some(path) = path.and_then(Path::to_str) else {
                continue;
            };
            // A quote would end the reference.
            if path.is_empty() || path.contains(['"', '\n']) {
                continue;
            }
            if tree.paths.len() == most {
                tree.is_cut = true;
                break;
            }
            let slash = if is_folder { "/" } else { "" };
            tree.paths.push(format!("{path}{slash}"));
        }
        tree
    }
}

impl Live<'_> {
    /// Reads the tree again, unless a walk is in progress.
    pub(super) fn walk(&mut self) {
        if !std::mem::replace(&mut self.walks, true) {
            let (folder, of) = (self.cwd.clone(), self.cwd.clone());
            let walk = tokio::task::spawn_blocking(move || Tree::read(&folder, MAX_PATHS));
            self.call(walk, move |live, tree| {
                live.walked(&of, tree.unwrap_or_default())
            });
        }
    }

    fn walked(&mut self, folder: &Path, tree: Tree) {
        self.walks = false;
        if folder == self.cwd {
            self.tree = tree;
            match self.popup.is_none() && self.is_reference() {
                true => self.look_up(),
                false => self.look_up_again(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_skips_ignored_and_hidden_files_and_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for dir in ["src", "target", ".hidden"] {
            std::fs::create_dir(at(dir)).unwrap();
        }
        for file in ["src/a.rs", "target/b", ".hidden/c", "d\"e", ".env"] {
            std::fs::write(at(file), "").unwrap();
        }
        std::fs::write(at(".gitignore"), "target/\n").unwrap();
        let mut tree = Tree::read(folder.path(), 100);
        tree.paths.sort();
        assert_eq!(tree.paths, ["src/", "src/a.rs"]);
        assert!(!tree.is_cut);
        let tree = Tree::read(folder.path(), 1);
        assert_eq!((tree.paths.len(), tree.is_cut), (1, true));
    }
}
