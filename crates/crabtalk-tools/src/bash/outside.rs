//! What differs for a command outside the sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Temporary folders, which sandboxed commands of before may have written to.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Takes the entries out of `PATH` that other commands may write to: relative
/// ones, and those below the working folder or a temporary folder.
pub(super) fn trust_path(environment: &mut [(OsString, OsString)], cwd: &Path) {
    let temporary = environment.iter().find(|(name, _)| name == "TMPDIR");
    let temporary = temporary.map(|(_, folder)| PathBuf::from(folder));
    let writable: Vec<PathBuf> = TEMPORARY
        .iter()
        .map(PathBuf::from)
        .chain([cwd.to_path_buf()])
        .chain(temporary)
        .collect();
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let is_below = |path: &Path| {
        let both = [path.to_path_buf(), resolved(path)];
        writable.iter().any(|folder| {
            both.iter()
                .any(|p| p.starts_with(folder) || p.starts_with(resolved(folder)))
        })
    };
    for (_, path) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let kept = std::env::split_paths(&*path).filter(|p| p.is_absolute() && !is_below(p));
        // Entries that came from a list can be joined again.
        *path = std::env::join_paths(kept).unwrap_or_else(|_| OsStr::new("").to_owned());
    }
}
