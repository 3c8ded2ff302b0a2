//! Files that are hidden from a command because of their names or modes.

use super::lists::{EXAMPLES, KERNEL_ONLY, ROOT_ONLY, SECRET_FILES, UNSEARCHED, words};
use std::collections::VecDeque;
use std::fs::DirEntry;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of entries that one search reads, upper folders first: some hundred
/// milliseconds.
const MAX_ENTRIES: usize = 200_000;

/// Finds files below a folder whose names suggest secrets.
///
/// # Errors
/// The folder has too many entries.
pub(super) fn in_project(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let unsearched = search(folder, MAX_ENTRIES, |entry, is_folder| {
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
    if unsearched.is_empty() {
        return Ok(found);
    }
    Err(format!(
        "the command was not run: {} has more than {MAX_ENTRIES} files and folders, too many to hide all secret files from a command with network. Run it in a folder below, or use `escalate` with a reason to ask for a run outside the sandbox",
        folder.display()
    ))
}

/// System files and folders that other users may not read. A command of root has no
/// capabilities, but still owns them.
pub(super) fn of_root() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = words(KERNEL_ONLY)
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .collect();
    for folder in words(ROOT_ONLY) {
        let unsearched = search(Path::new(folder), MAX_ENTRIES, |entry, is_folder| {
            let readable = if is_folder { 0o5 } else { 0o4 };
            let closed = entry
                .metadata()
                .is_ok_and(|m| m.permissions().mode() & readable != readable);
            if closed {
                found.push(entry.path());
            }
            is_folder && !closed
        });
        found.extend(unsearched);
    }
    found
}

/// Passes every file and folder below a folder to `look`, which decides whether a
/// folder is entered. Skips links. Returns the folders that were not completely
/// read because there are more than `most` entries.
fn search(
    folder: &Path,
    most: usize,
    mut look: impl FnMut(&DirEntry, bool) -> bool,
) -> Vec<PathBuf> {
    let mut ahead = VecDeque::from([folder.to_path_buf()]);
    let mut entries = 0;
    while let Some(folder) = ahead.pop_front() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > most {
                ahead.push_front(folder);
                return ahead.into();
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
    Vec::new()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
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
            ("prod.ENV", true),
            (".envrc", true),
            ("AuthKey_1.P8", true),
            ("tls.key", true),
            ("key", false),
            ("id_rsa.pub", true),
            ("service-account-7.json", true),
            ("package.json", false),
        ] {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }

    #[test]
    fn search_names_the_folders_that_it_did_not_read() {
        let dir = tempfile::tempdir().expect("creates");
        for folder in ["a/b", "c"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("creates");
        }
        std::fs::write(dir.path().join("a/b/.env"), "").expect("writes");
        let unsearched = |most| search(dir.path(), most, |_, is_folder| is_folder);
        assert_eq!(unsearched(4), [] as [PathBuf; 0]);
        assert!(unsearched(3).contains(&dir.path().join("a/b")));
        assert_eq!(in_project(dir.path()).map(|found| found.len()), Ok(1));
    }
}
