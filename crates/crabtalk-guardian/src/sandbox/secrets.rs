//! Files that are hidden from a command because of their names or modes.

use super::lists::{EXAMPLES, KERNEL_ONLY, ROOT_ONLY, SECRET_FILES, UNSEARCHED, words};
use std::collections::VecDeque;
use std::fs::DirEntry;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Entries per search, upper folders first.
const MAX_ENTRIES: usize = 20_000;

/// Files below a folder that look like secrets.
pub(super) fn in_project(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(folder, |entry, is_folder| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if is_folder {
            return !words(UNSEARCHED).any(|unsearched| unsearched == name);
        }
        if is_secret(&name) {
            found.push(entry.path());
        }
        false
    });
    found
}

/// Files and folders of the system that other users may not read. As root a
/// command has no capabilities, but still owns them.
pub(super) fn of_root() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = words(KERNEL_ONLY)
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .collect();
    for folder in words(ROOT_ONLY) {
        search(Path::new(folder), |entry, is_folder| {
            let readable = if is_folder { 0o5 } else { 0o4 };
            let closed = entry
                .metadata()
                .is_ok_and(|m| m.permissions().mode() & readable != readable);
            if closed {
                found.push(entry.path());
            }
            is_folder && !closed
        });
    }
    found
}

/// Shows every file and folder below one to `look`, which says whether a
/// folder is entered. Links are left out.
fn search(folder: &Path, mut look: impl FnMut(&DirEntry, bool) -> bool) {
    let mut ahead = VecDeque::from([folder.to_path_buf()]);
    let mut entries = 0;
    while let Some(folder) = ahead.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES {
                return;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    if look(&entry, true) {
                        ahead.push_back(entry.path());
                    }
                }
                Ok(kind) if kind.is_file() => {
                    look(&entry, false);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}

fn is_secret(name: &str) -> bool {
    let is = |pattern: &'static str| match pattern.split_once('*') {
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
        None => name == pattern,
    };
    words(SECRET_FILES).any(is) && !words(EXAMPLES).any(|example| example == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_are_known_by_name() {
        for (name, secret) in [
            (".env", true),
            (".env.production", true),
            (".env.example", false),
            ("tls.key", true),
            ("key", false),
            ("id_rsa.pub", true),
            ("service-account-7.json", true),
            ("package.json", false),
        ] {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }
}
