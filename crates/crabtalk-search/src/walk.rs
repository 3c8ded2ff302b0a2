//! Lists the files of a folder.
//!
//! Excluded are names with a leading dot or control characters, names listed in
//! `.gitignore` and `.ignore`, secrets, and links. Ignore files above the named
//! folder are not read.
//!
//! Invariant: ignore files are opened like all other files, without following links or
//! blocking.

use crate::open;
use crate::rules::Rules;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Dir, FileType};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum depth; each level needs an open descriptor.
const MAX_DEPTH: usize = 64;

/// Maximum number of names in one folder.
const MAX_NAMES: usize = 100_000;

/// Largest ignore file.
const MAX_IGNORE_BYTES: u64 = 256 * 1024;

/// Maximum number of reported paths at which a limit was reached.
const MAX_TOLD: usize = 8;

const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// Callback for each file with its folder, name and path.
pub(crate) type Visit<'a> = dyn FnMut(BorrowedFd<'_>, &OsStr, &Path) -> ControlFlow<()> + 'a;

/// Walks a folder in order of name.
pub(crate) struct Walk<'a> {
    pub(crate) rules: &'a Rules,
    /// A folder that is always excluded: CrabTalk's home.
    pub(crate) except: &'a Path,
    /// Paths at which a limit was reached.
    pub(crate) beyond: RefCell<Vec<String>>,
}

impl Walk<'_> {
    /// Visits every file until the callback stops; returns whether all were visited. Skips entries that
    /// cannot be opened; fails if the folder itself cannot be opened.
    pub(crate) fn run(&self, folder: &Path, visit: &mut Visit<'_>) -> io::Result<bool> {
        let fd = open::folder(folder)?;
        let flow = self.below(fd, folder, &mut Vec::new(), visit);
        Ok(flow.is_continue())
    }

    fn below(
        &self,
        fd: OwnedFd,
        path: &Path,
        ignores: &mut Vec<Gitignore>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        if path == self.except {
            return ControlFlow::Continue(());
        }
        if ignores.len() >= MAX_DEPTH {
            self.tell(path, &format!("it is {MAX_DEPTH} folders deep"));
            return ControlFlow::Continue(());
        }
        ignores.push(ignore_files(fd.as_fd(), path));
        let mut flow = ControlFlow::Continue(());
        let names = names(&fd);
        if names.len() >= MAX_NAMES {
            self.tell(path, &format!("only {MAX_NAMES} of its files are read"));
        }
        for (name, kind) in names {
            let below = path.join(&name);
            let is_folder = kind == FileType::Directory;
            if self.leave_out(&name) || is_ignored(ignores, &below, is_folder) {
                continue;
            }
            flow = if is_folder {
                match open::folder_at(fd.as_fd(), &name) {
                    Ok(inner) => self.below(inner, &below, ignores, visit),
                    Err(_) => ControlFlow::Continue(()),
                }
            } else {
                visit(fd.as_fd(), &name, &below)
            };
            if flow.is_break() {
                break;
            }
        }
        ignores.pop();
        flow
    }

    /// Records a path at which a limit was reached.
    pub(crate) fn tell(&self, path: &Path, why: &str) {
        let mut beyond = self.beyond.borrow_mut();
        if beyond.len() < MAX_TOLD {
            beyond.push(format!("{}: {why}", path.display()));
        }
    }

    fn leave_out(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        name.starts_with('.') || name.contains(char::is_control) || self.rules.leave_out(&name)
    }
}

/// The files and folders in a folder, by name. An entry of unknown type counts as a file.
fn names(fd: &OwnedFd) -> Vec<(OsString, FileType)> {
    let Ok(entries) = Dir::read_from(fd) else {
        return Vec::new();
    };
    let wanted = [
        FileType::RegularFile,
        FileType::Directory,
        FileType::Unknown,
    ];
    let mut names: Vec<(OsString, FileType)> = entries
        .filter_map(Result::ok)
        .filter(|entry| wanted.contains(&entry.file_type()))
        .take(MAX_NAMES)
        .map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            let is_unknown = entry.file_type() == FileType::Unknown;
            let kind = match is_unknown && open::folder_at(fd.as_fd(), &name).is_ok() {
                true => FileType::Directory,
                false => entry.file_type(),
            };
            (name, kind)
        })
        .filter(|(name, _)| name != "." && name != "..")
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    names
}

/// The rules of a folder's ignore files.
fn ignore_files(fd: BorrowedFd<'_>, path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    for name in IGNORE_FILES {
        let read = open::file_at(fd, OsStr::new(name)).and_then(|file| file.read(MAX_IGNORE_BYTES));
        let Ok(Some(bytes)) = read else { continue };
        for line in String::from_utf8_lossy(&bytes).lines() {
            // Invalid lines are skipped.
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The innermost rule applies.
fn is_ignored(ignores: &[Gitignore], path: &Path, is_folder: bool) -> bool {
    for ignore in ignores.iter().rev() {
        match ignore.matched(path, is_folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}
