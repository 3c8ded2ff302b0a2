//! Opens files of a skill, within its folder and within limits.
//!
//! Invariant: a folder passed in is canonical; below it the kernel follows no link, so
//! that the checked file is the one that is read, even if another process replaces it by a
//! link.

use crate::skills::Error;
use crate::skills::finding::{Finding, Level, Trouble};
use crate::skills::system;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Largest bundled file. References, scripts and fonts stay below.
pub const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum number of files of one skill; real ones have at most a few hundred.
pub const MAX_FILES: usize = 2_000;

/// Maximum bytes of one skill's files, all of which are hashed and copied.
pub const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum depth below a skill's folder; by the format, references are one level deep.
const MAX_DEPTH: usize = 8;

/// The files of a skill's folder.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Regular files, and links to such within the folder: sorted paths relative to it,
    /// with `/`.
    pub(crate) files: Vec<String>,
    /// Skipped files, and the reasons.
    pub(crate) troubles: Vec<Finding>,
    total: u64,
    max_files: usize,
    seen: usize,
    full: bool,
}

/// Selects the names that a walk skips.
pub(crate) type LeaveOut = fn(&str) -> bool;

/// Whether a file or folder is hidden.
pub(crate) fn hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Walks a skill's folder.
pub(crate) fn tree(folder: &Path, leave_out: LeaveOut) -> Tree {
    tree_within(folder, leave_out, MAX_FILES)
}

fn tree_within(folder: &Path, leave_out: LeaveOut, max_files: usize) -> Tree {
    let mut tree = Tree {
        max_files,
        ..Tree::default()
    };
    tree.walk(folder, folder, 0, leave_out);
    tree.files.sort();
    tree
}

impl Tree {
    fn walk(&mut self, root: &Path, folder: &Path, depth: usize, leave_out: LeaveOut) {
        if depth > MAX_DEPTH {
            self.trouble(
                folder,
                format!("lies more than {MAX_DEPTH} folders deep"),
                "keep a skill's files one level deep",
            );
            return;
        }
        let entries = match sorted_entries(folder, 2 * self.max_files) {
            Ok(entries) => entries,
            Err(e) => {
                self.trouble(
                    folder,
                    format!("cannot be listed: {e}"),
                    "make it readable, with fewer files",
                );
                return;
            }
        };
        for entry in entries {
            if self.full {
                return;
            }
            // Folders count too, so that a tree of folders also ends.
            self.seen += 1;
            if self.seen > 2 * self.max_files {
                self.fill(root);
                return;
            }
            let path = entry.path();
            match entry.file_name().to_str() {
                None => self.trouble(&path, "has a name that is not UTF-8", "rename it"),
                Some(name) if leave_out(name) => {}
                Some(_) => match entry.file_type() {
                    Ok(kind) if kind.is_dir() => self.walk(root, &path, depth + 1, leave_out),
                    Ok(_) => self.file(root, &path),
                    Err(e) => {
                        self.trouble(&path, format!("cannot be read: {e}"), "make it readable");
                    }
                },
            }
        }
    }

    fn file(&mut self, root: &Path, path: &Path) {
        let len = match inside(root, path).and_then(|real| regular(&real)) {
            Ok(len) => len,
            Err(trouble) => {
                self.refuse(path, trouble);
                return;
            }
        };
        if len > MAX_FILE_BYTES {
            self.refuse(path, too_large(len, MAX_FILE_BYTES));
            return;
        }
        self.total += len;
        if self.files.len() == self.max_files || self.total > MAX_TOTAL_BYTES {
            self.fill(root);
            return;
        }
        // All names are UTF-8 and below the root, as checked before.
        if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            self.files.push(path.to_owned());
        }
    }

    fn fill(&mut self, root: &Path) {
        self.full = true;
        self.trouble(
            root,
            format!(
                "has more than {} files or {MAX_TOTAL_BYTES} bytes",
                self.max_files
            ),
            "keep only the files that the skill needs",
        );
    }

    fn trouble(&mut self, path: &Path, what: impl Into<String>, right: &str) {
        self.refuse(path, Trouble::new(what, right));
    }

    fn refuse(&mut self, path: &Path, trouble: Trouble) {
        let finding = Finding::new(Level::Refused, path, None, trouble);
        self.troubles.push(finding);
    }
}

/// The entries of a folder by name; an error if there are more than `limit`.
pub(crate) fn sorted_entries(folder: &Path, limit: usize) -> io::Result<Vec<fs::DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        if entries.len() == limit {
            return Err(io::Error::other(format!(
                "it has more than {limit} entries"
            )));
        }
        entries.push(entry?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// The canonical path, if it is below the folder.
pub(crate) fn inside(folder: &Path, path: &Path) -> Result<PathBuf, Trouble> {
    match fs::canonicalize(path) {
        Ok(real) if real.starts_with(folder) => Ok(real),
        Ok(real) => Err(Trouble::new(
            format!(
                "is a symbolic link that leaves {}: it leads to {}",
                folder.display(),
                real.display()
            ),
            "put a copy there in its place",
        )),
        Err(e) => Err(Trouble::new(
            format!("cannot be read: {e}"),
            "make it readable or remove it",
        )),
    }
}

fn regular(real: &Path) -> Result<u64, Trouble> {
    match fs::symlink_metadata(real) {
        Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
        Ok(metadata) if metadata.is_dir() => Err(Trouble::new(
            "is a symbolic link to a folder",
            "put the folder itself there",
        )),
        Ok(_) => Err(Trouble::new("is not a regular file", "remove it")),
        Err(e) => Err(Trouble::new(
            format!("cannot be read: {e}"),
            "make it readable",
        )),
    }
}

fn too_large(len: u64, limit: u64) -> Trouble {
    Trouble::new(
        format!("has {len} bytes, the limit is {limit}"),
        "make it smaller or remove it",
    )
}

/// Reads a file below a canonical folder, within a limit.
pub(crate) fn read(folder: &Path, relative: &str, limit: u64) -> Result<Vec<u8>, Trouble> {
    let file = open_inside(folder, relative, limit)?;
    crabtalk_files::read_open(&file, limit)
        .map_err(|e| Trouble::new(e.to_string(), "make it readable and small"))
}

/// Opens a regular file below a canonical folder.
pub(crate) fn open_inside(folder: &Path, relative: &str, limit: u64) -> Result<File, Trouble> {
    let real = inside(folder, &folder.join(relative))?;
    let file = system::open_real(folder, &real)
        .map_err(|e| Trouble::new(format!("cannot be opened: {e}"), "make it readable"))?;
    match file.metadata() {
        Ok(metadata) if !metadata.is_file() => Err(Trouble::new(
            "is not a regular file",
            "put a text file there in its place",
        )),
        Ok(metadata) if metadata.len() > limit => Err(too_large(metadata.len(), limit)),
        Ok(_) => Ok(file),
        Err(e) => Err(Trouble::new(
            format!("cannot be read: {e}"),
            "make it readable",
        )),
    }
}

/// The canonical form of an existing folder.
pub(crate) fn canonical_folder(path: &Path) -> Result<PathBuf, Error> {
    let real = fs::canonicalize(path).map_err(|e| Error::io("find", path, e))?;
    if real.is_dir() {
        Ok(real)
    } else {
        let error = io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder");
        Err(Error::io("read", path, error))
    }
}

#[cfg(test)]
mod tests;
