//! The gate's access to the disk.
//!
//! Invariant: no path is resolved through `/proc`, which differs per process.

use crate::skills::Skills;
use crabtalk_domain::BoxFuture;
use crabtalk_files::{PathStep, PathWalk};
use crabtalk_gate::Disk;
use crabtalk_tools::{FileWork, OsTools};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk of this machine.
#[derive(Default)]
pub(crate) struct LocalDisk {
    pub(crate) files: FileWork,
    /// Determines whether the sandbox is complete.
    pub(crate) tools: Option<Arc<OsTools>>,
    /// Knows the trusted folders.
    pub(crate) skills: Option<Arc<Skills>>,
    pub(crate) user_home: Option<PathBuf>,
}

impl Disk for LocalDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_absolute() {
            return None;
        }
        let mut way = PathWalk::along(path);
        let mut missing = false;
        while let Some(step) = way.step() {
            let PathStep::Down { own } = step else {
                // The parent of an absent folder cannot be resolved.
                if missing {
                    return None;
                }
                continue;
            };
            if way.at().starts_with("/proc") && way.at() != Path::new("/proc") {
                return None;
            }
            if missing {
                continue;
            }
            match std::fs::symlink_metadata(way.at()) {
                Ok(meta) if meta.file_type().is_symlink() => way.follow_link().ok()?,
                Ok(_) => {}
                // The target of a dangling link may be created anywhere later.
                Err(error) if is_absent(&error) && own => missing = true,
                Err(_) => return None,
            }
        }
        Some(way.at().to_owned())
    }

    fn is_replaceable(&self, program: &str, cwd: &Path) -> bool {
        let tools = self.tools.as_ref();
        tools.is_some_and(|tools| tools.is_replaceable(program, cwd))
    }

    fn wait_for<'a>(
        &'a self,
        of: &'a str,
        work: Box<dyn FnOnce() + Send>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.files.look(of, work))
    }

    fn is_contained<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(tools) = &self.tools else {
                return false;
            };
            if !tools.walls().await.are_complete() {
                return false;
            }
            let (folder, skills) = (folder.to_owned(), self.skills.clone());
            let home = self.user_home.clone();
            let look = move || is_contained(&folder, home.as_deref(), skills.as_deref());
            tokio::task::spawn_blocking(look).await.unwrap_or(false)
        })
    }
}

/// Whether a folder is a work tree or trusted, and neither the home nor above it.
fn is_contained(folder: &Path, home: Option<&Path>, skills: Option<&Skills>) -> bool {
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_too_wide =
        folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder));
    if is_too_wide {
        return false;
    }
    let is_work_tree = |above: &Path| above.join(".git").symlink_metadata().is_ok();
    let trust = skills.and_then(|skills| skills.trust.load().ok());
    folder.ancestors().any(is_work_tree) || trust.is_some_and(|trust| trust.reaches(folder))
}

/// Whether a name does not exist or cannot exist.
fn is_absent(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_unless_dangling_or_through_proc() {
        let disk = LocalDisk::default();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("/proc/self/cwd", root.join("cwd")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (path, want) in [
            ("link/file", Some("real/file")),
            ("link/../real", Some("real")),
            ("link/new", Some("real/new")),
            ("new/deep/er", Some("new/deep/er")),
            ("real/file/x", Some("real/file/x")),
            ("new/../real", None),
            ("dangling", None),
            ("dangling/x", None),
            ("cwd/../x", None),
            ("loop", None),
        ] {
            let resolved = disk.resolve(&root.join(path));
            assert_eq!(resolved, want.map(|want| root.join(want)), "{path}");
        }
        assert_eq!(disk.resolve(Path::new("/proc/self/environ")), None);
        assert_eq!(disk.resolve(Path::new("/dev/fd/3")), None);
        assert_eq!(
            disk.resolve(&root.join("x".repeat(300))),
            Some(root.join("x".repeat(300)))
        );
    }

    #[test]
    fn work_trees_below_the_home_are_contained() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("work/src")).unwrap();
        fs::create_dir_all(home.join("loose")).unwrap();
        fs::create_dir(home.join("work/.git")).unwrap();
        fs::create_dir(home.join(".git")).unwrap();
        let contained = |at: &str| is_contained(&home.join(at), Some(&home), None);
        assert!(contained("work") && contained("work/src"));
        assert!(!contained("") && !is_contained(Path::new("/"), Some(&home), None));
        fs::remove_dir(home.join(".git")).unwrap();
        assert!(!contained("loose"));
    }
}
