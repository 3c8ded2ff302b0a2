//! The links on the paths to open files. They grant no right: a separate file system
//! contains them so that `/bin/sh` exists if `/bin` is a
//! link.

use super::policy::Link;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Maximum links in one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// The links found on the recorded paths.
#[derive(Default)]
pub(super) struct Links {
    /// Link targets by link path.
    found: BTreeMap<PathBuf, PathBuf>,
    /// Path prefixes that are not links, to check common prefixes once.
    plain: HashSet<PathBuf>,
}

impl Links {
    /// Records every link on a path.
    pub(super) fn note(&mut self, path: &Path) {
        let mut ahead: VecDeque<OsString> = names(path).collect();
        let mut at = PathBuf::from("/");
        let mut followed = 0;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            at.push(name);
            if self.plain.contains(&at) {
                continue;
            }
            let Ok(target) = std::fs::read_link(&at) else {
                self.plain.insert(at.clone());
                continue;
            };
            followed += 1;
            if followed > MAX_LINKS {
                return;
            }
            self.found.insert(at.clone(), target.clone());
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(name);
            }
        }
    }

    pub(super) fn into_list(self) -> Vec<Link> {
        let link = |(path, target)| Link { path, target };
        self.found.into_iter().map(link).collect()
    }
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_on_the_way_is_noted_once() {
        let dir = tempfile::tempdir().expect("creates");
        let root = dir.path().canonicalize().expect("exists");
        std::fs::create_dir_all(root.join("real/below")).expect("creates");
        let link = |target: &Path, at: &str| {
            std::os::unix::fs::symlink(target, root.join(at)).expect("links");
        };
        link(Path::new("real"), "first");
        link(&root.join("first/below"), "second");
        link(Path::new("loop"), "loop");
        let mut links = Links::default();
        links.note(&root.join("second/file"));
        links.note(&root.join("loop"));
        let found: Vec<PathBuf> = links.into_list().into_iter().map(|l| l.path).collect();
        let expected = ["first", "loop", "second"].map(|name| root.join(name));
        assert_eq!(found, expected);
    }
}
