//! A change that waits for an owner's word, on disk.
//!
//! Invariant: what was changed lies whole in the folder of the change before
//! anything is put back in its place, so that a crash loses neither.

use super::tree::{Item, Kind};
use crabtalk_files::{Existing, create_folder};
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What a change is about, beside its contents.
const ABOUT: &str = "about.json";

/// Where the contents lie, by their place in the home.
const CONTENT: &str = "new";

/// Largest description: tens of thousands of paths.
const MAX_ABOUT_BYTES: u64 = 64 * 1024 * 1024;

/// One path of a change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Change {
    /// Below the home.
    pub(super) path: PathBuf,
    /// What is accepted there; `None` if nothing is.
    pub(super) before: Option<Item>,
    /// What was put there; `None` if it was removed.
    pub(super) after: Option<Item>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Held {
    /// Names it, and its folder.
    pub(super) id: String,
    /// The agent whose command did it, as far as can be told.
    pub(super) agent: String,
    /// For whom it worked.
    pub(super) sender: String,
    /// RFC 3339 instant.
    pub(super) at: String,
    /// Deepest paths first.
    pub(super) changes: Vec<Change>,
}

impl Held {
    /// Where a changed content lies.
    pub(super) fn content(&self, folder: &Path, change: &Change) -> PathBuf {
        folder.join(&self.id).join(CONTENT).join(&change.path)
    }

    /// Takes what was changed out of the home, into a folder of its own.
    pub(super) fn take(&self, home: &Path, folder: &Path) -> io::Result<()> {
        let own = folder.join(&self.id);
        create_folder(&own)?;
        let about = serde_json::to_vec(self).map_err(io::Error::other)?;
        crabtalk_files::write(&own.join(ABOUT), &about, Existing::Replace)?;
        for change in &self.changes {
            let Some(after) = &change.after else { continue };
            let (from, to) = (home.join(&change.path), self.content(folder, change));
            if let Some(above) = to.parent() {
                create_folder(above)?;
            }
            match after.kind {
                // What is in it comes by itself, and came before.
                Kind::Folder => {
                    create_folder(&to)?;
                    if !matches!(
                        &change.before,
                        Some(Item {
                            kind: Kind::Folder,
                            ..
                        })
                    ) {
                        // It is not empty if somebody writes into it now.
                        let _ = fs::remove_dir(&from);
                    }
                }
                Kind::File { .. } | Kind::Link(_) | Kind::Other => move_to(&from, &to)?,
            }
        }
        Ok(())
    }

    /// Puts the changed contents into the home.
    pub(super) fn put(&self, home: &Path, folder: &Path) -> io::Result<()> {
        for change in self.changes.iter().filter(|change| change.after.is_none()) {
            remove(&home.join(&change.path))?;
        }
        // Folders before what is in them.
        for change in self.changes.iter().rev() {
            let Some(after) = &change.after else { continue };
            let (from, to) = (self.content(folder, change), home.join(&change.path));
            if matches!(after.kind, Kind::Folder) {
                if !to.is_dir() || to.is_symlink() {
                    remove(&to)?;
                    create_folder(&to)?;
                }
            } else {
                if to.is_dir() && !to.is_symlink() {
                    remove(&to)?;
                }
                if let Some(above) = to.parent() {
                    create_folder(above)?;
                }
                move_to(&from, &to)?;
            }
            set_mode(&to, after)?;
        }
        Ok(())
    }
}

/// Puts back what is accepted at the paths of a change. `kept` gives contents.
pub(super) fn restore(
    home: &Path,
    changes: &[Change],
    kept: &dyn Fn(&str) -> PathBuf,
) -> io::Result<()> {
    for change in changes.iter().filter(|change| change.before.is_none()) {
        remove(&home.join(&change.path))?;
    }
    for change in changes.iter().rev() {
        let Some(before) = &change.before else {
            continue;
        };
        let to = home.join(&change.path);
        match &before.kind {
            Kind::Folder => {
                if !to.is_dir() || to.is_symlink() {
                    remove(&to)?;
                    create_folder(&to)?;
                }
            }
            Kind::File { sha256, kept: true } => {
                if to.is_dir() || to.is_symlink() {
                    remove(&to)?;
                }
                let bytes =
                    crabtalk_files::read(&kept(sha256), u64::MAX).map_err(io::Error::from)?;
                crabtalk_files::write(&to, &bytes, crabtalk_files::Existing::Replace)?;
            }
            Kind::Link(target) => {
                remove(&to)?;
                symlink(target, &to)?;
            }
            Kind::File { kept: false, .. } | Kind::Other => {
                tracing::warn!(path = %to.display(), "it cannot be put back: it is too large, or no file");
                continue;
            }
        }
        set_mode(&to, before)?;
    }
    Ok(())
}

/// Moves a file, a link or whatever it is. One that is gone is gone.
fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A folder may be a link to another disk.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            if from.is_symlink() {
                symlink(fs::read_link(from)?, to)?;
            } else {
                crabtalk_files::open(from)?;
                fs::copy(from, to)?;
            }
            fs::remove_file(from)
        }
        moved => moved,
    }
}

fn set_mode(path: &Path, item: &Item) -> io::Result<()> {
    if matches!(item.kind, Kind::Link(_)) {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(item.mode))
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The changes in a folder, oldest first.
pub(super) fn waiting(folder: &Path) -> Vec<Held> {
    let mut found: Vec<Held> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let about = entry.path().join(ABOUT);
            let bytes = crabtalk_files::read(&about, MAX_ABOUT_BYTES).ok()?;
            let held: Held = serde_json::from_slice(&bytes).ok()?;
            // Its name is a path later on.
            (Some(held.id.as_str()) == entry.file_name().to_str()).then_some(held)
        })
        .collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}
