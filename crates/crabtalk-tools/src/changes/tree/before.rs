//! The state of a work tree before a command, and its changes after it.

use super::Tree;
use super::git::{Git, Staged};
use crate::changes::found::{Keep, MAX_FILE_BYTES, NOT_TEXT, PathState, look, sha256, store};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum number of changed files recorded per command; git itself can undo a checkout of
/// another branch.
const MAX_CHANGED: usize = 2_000;

/// Largest index that is copied: half a million files.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Maximum bytes of uncommitted contents stored while a command runs.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// Maximum lag of file times behind the clock of the process.
const CLOCKS_APART: Duration = Duration::from_millis(50);

/// The state of a work tree before a command.
#[derive(Debug)]
pub(crate) struct Before {
    tree: Tree,
    /// A private folder with a copy of the index, and stored contents.
    folder: PathBuf,
    at: SystemTime,
    /// Files that differed from the index or were not in it.
    differed: BTreeMap<OsString, PathState>,
}

/// A file that a command changed.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) path: PathBuf,
    pub(crate) before: PathState,
    pub(crate) after: PathState,
}

/// The folder of contents from before the command.
fn contents(folder: &Path) -> PathBuf {
    folder.join("contents")
}

fn index(folder: &Path) -> PathBuf {
    folder.join("index")
}

/// Copies the index with its modification time, by which git decides which files to
/// compare.
fn copy_index(tree: &Tree, folder: &Path) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot copy the index of git: {e}");
    crabtalk_files::create_folder(folder).map_err(|e| failed(&e))?;
    let path = tree.git.join("index");
    let Some(file) =
        crabtalk_files::if_there(crabtalk_files::open(&path)).map_err(|e| failed(&e))?
    else {
        // The repository has no index yet.
        return Ok(());
    };
    let bytes = crabtalk_files::read_open(&file, MAX_INDEX_BYTES).map_err(|e| failed(&e))?;
    let modified = file.metadata().and_then(|meta| meta.modified());
    let copied = modified.and_then(|modified| {
        std::fs::write(index(folder), bytes)?;
        std::fs::File::options()
            .write(true)
            .open(index(folder))?
            .set_modified(modified)
    });
    copied.map_err(|e| failed(&e))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| e.to_string())?
}

impl Before {
    /// Examines a work tree and stores contents that git does not have.
    pub(crate) async fn look(git: &Git, tree: Tree, folder: PathBuf) -> Result<Self, String> {
        let at = SystemTime::now() - CLOCKS_APART;
        let (of, to) = (tree.clone(), folder.clone());
        blocking(move || copy_index(&of, &to)).await?;
        let listed = git.differs(&tree, &index(&folder)).await?;
        blocking(move || {
            let mut room = MAX_KEPT_BYTES;
            let kept = contents(&folder);
            let mut differed = BTreeMap::new();
            for name in listed.tracked.into_iter().chain(listed.others) {
                let Some(path) = tree.path(&name) else {
                    continue;
                };
                let found = look(&path, &mut Keep::In(&kept, &mut room))?;
                differed.insert(name, found);
            }
            Ok(Self {
                tree,
                folder,
                at,
                differed,
            })
        })
        .await
    }

    /// Lists the changed files and stores their contents in `objects`.
    pub(crate) async fn changed(self, git: &Git, objects: PathBuf) -> Result<Vec<Changed>, String> {
        let index = index(&self.folder);
        let listed = git.differs(&self.tree, &index).await?;
        let was_clean = |name: &&OsString| !self.differed.contains_key(*name);
        let clean: Vec<&OsString> = listed.tracked.iter().filter(was_clean).collect();
        let new: Vec<&OsString> = listed.others.iter().filter(was_clean).collect();
        if clean.len() + new.len() > MAX_CHANGED {
            return Err(format!(
                "the command changed {} files, and up to {MAX_CHANGED} are noted",
                clean.len() + new.len()
            ));
        }
        let staged = git.staged(&self.tree, &index, &clean).await?;
        let wanted: Vec<&Staged> = staged.values().filter(|one| one.is_file()).collect();
        let names: Vec<&str> = wanted.iter().map(|one| one.object.as_str()).collect();
        let contents = match names.is_empty() {
            true => Vec::new(),
            false => git.contents(&self.tree, &index, &names).await?,
        };
        let of_object: BTreeMap<String, Option<Vec<u8>>> = names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(contents)
            .collect();
        let clean: Vec<OsString> = clean.into_iter().cloned().collect();
        let new: Vec<OsString> = new.into_iter().cloned().collect();
        blocking(move || self.compare(&clean, &new, &staged, &of_object, &objects)).await
    }

    fn compare(
        &self,
        clean: &[OsString],
        new: &[OsString],
        staged: &BTreeMap<OsString, Staged>,
        of_object: &BTreeMap<String, Option<Vec<u8>>>,
        objects: &Path,
    ) -> Result<Vec<Changed>, String> {
        let mut befores: Vec<(&OsString, PathState)> = Vec::new();
        for name in clean {
            if let Some(staged) = staged.get(name) {
                let content = of_object.get(&staged.object).and_then(Option::as_deref);
                befores.push((name, staged.found(content, objects)?));
            }
        }
        for name in new {
            let Some(path) = self.tree.path(name) else {
                continue;
            };
            // A file that is older than the command was ignored before.
            let older = path.symlink_metadata().is_ok_and(|meta| {
                let changed = {
                    use std::os::unix::fs::MetadataExt;
                    let secs = u64::try_from(meta.ctime()).unwrap_or(0);
                    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or(0);
                    SystemTime::UNIX_EPOCH + Duration::new(secs, nanos)
                };
                changed < self.at || meta.created().is_ok_and(|created| created < self.at)
            });
            let before = match older {
                true => PathState::Unkept {
                    why: "git ignored it before the command".to_owned(),
                    stamp: "ignored".to_owned(),
                },
                false => PathState::Nothing,
            };
            befores.push((name, before));
        }
        let kept = contents(&self.folder);
        let mut changed = Vec::new();
        let known = self
            .differed
            .iter()
            .map(|(name, found)| (name, found.clone()));
        for (name, before) in known.chain(befores) {
            let Some(path) = self.tree.path(name) else {
                continue;
            };
            let now = look(&path, &mut Keep::Nowhere)?;
            if now.is(&before) {
                continue;
            }
            if let PathState::File { sha256, .. } = &before {
                take_over(&kept, objects, sha256)?;
            }
            let mut room = MAX_FILE_BYTES;
            let after = look(&path, &mut Keep::In(objects, &mut room))?;
            changed.push(Changed {
                path,
                before,
                after,
            });
        }
        Ok(changed)
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // Files that remain are removed with the run.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Moves a content to its final path, unless it exists there.
fn take_over(kept: &Path, objects: &Path, sha256: &str) -> Result<(), String> {
    let (from, to) = (kept.join(sha256), objects.join(sha256));
    if to.exists() || !from.exists() {
        return Ok(());
    }
    crabtalk_files::create_folder(objects)
        .and_then(|()| std::fs::rename(&from, &to))
        .map_err(|e| format!("cannot keep a content: {e}"))
}

impl Staged {
    fn is_file(&self) -> bool {
        matches!(self.mode.as_str(), "100644" | "100755" | "120000")
    }

    /// The state of a file in the work tree, given its content in the repository.
    fn found(&self, content: Option<&[u8]>, objects: &Path) -> Result<PathState, String> {
        let lost = |why: &str| PathState::Unkept {
            why: why.to_owned(),
            stamp: self.object.clone(),
        };
        let Some(content) = content.filter(|_| self.is_file()) else {
            return Ok(lost("the repository does not have its content"));
        };
        if self.mode == "120000" {
            return Ok(match String::from_utf8(content.to_vec()) {
                Ok(target) => PathState::Link { target },
                Err(_) => lost(NOT_TEXT),
            });
        }
        let size = content.len() as u64;
        if self.size != 0 && self.size != size & u64::from(u32::MAX) {
            return Ok(lost("git converts its content"));
        }
        if size > MAX_FILE_BYTES {
            return Ok(lost("it was too large to be kept"));
        }
        let sha256 = sha256(content);
        store(objects, &sha256, content)?;
        Ok(PathState::File {
            sha256,
            size,
            mode: if self.mode == "100755" { 0o755 } else { 0o644 },
            exact: false,
        })
    }
}
