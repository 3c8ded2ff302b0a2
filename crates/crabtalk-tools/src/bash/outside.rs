//! Entries of `PATH` that sandboxed commands may have written to.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Temporary folders, which earlier commands may have written to.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Whether sandboxed commands cannot write to an entry of `PATH`: it is absolute,
/// and neither below the working folder nor below a temporary folder.
fn trusted(environment: &[(OsString, OsString)], cwd: &Path) -> impl Fn(&Path) -> bool + use<> {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let temporary = environment.iter().find(|(name, _)| name == "TMPDIR");
    let temporary = temporary.map(|(_, folder)| PathBuf::from(folder));
    let writable: Vec<PathBuf> = TEMPORARY
        .iter()
        .map(PathBuf::from)
        .chain([cwd.to_path_buf()])
        .chain(temporary)
        .flat_map(|folder| [resolved(&folder), folder])
        .collect();
    move |entry| {
        let both = [entry.to_path_buf(), resolved(entry)];
        let is_below = |folder: &PathBuf| both.iter().any(|path| path.starts_with(folder));
        entry.is_absolute() && !writable.iter().any(is_below)
    }
}

/// Removes the entries of `PATH` that sandboxed commands may have written to.
pub(super) fn trust_path(environment: &mut [(OsString, OsString)], cwd: &Path) {
    let trusted = trusted(environment, cwd);
    for (_, path) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let kept = std::env::split_paths(&*path).filter(|entry| trusted(entry));
        // Entries that came from a list can be joined again.
        *path = std::env::join_paths(kept).unwrap_or_else(|_| OsStr::new("").to_owned());
    }
}

/// Whether `PATH` resolves this program to a path that sandboxed commands may have written to.
pub(crate) fn is_replaceable(
    environment: &[(OsString, OsString)],
    program: &str,
    cwd: &Path,
) -> bool {
    let path = environment.iter().rfind(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.as_os_str()).unwrap_or_default();
    let mut entries = std::env::split_paths(path);
    let found = entries.find(|entry| cwd.join(entry).join(program).is_file());
    !program.contains('/') && found.is_some_and(|entry| !trusted(environment, cwd)(&entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_working_folder_are_replaceable() {
        let work = tempfile::tempdir_in(".").unwrap();
        let work = work.path().canonicalize().unwrap();
        std::fs::create_dir(work.join("bin")).unwrap();
        for file in [work.join("bin/own"), work.join("ls")] {
            std::fs::write(file, "").unwrap();
        }
        for (path, program, want) in [
            ("WORK/bin:SYSTEM", "own", true),
            ("WORK/bin:SYSTEM", "ls", false),
            (".:SYSTEM", "ls", true),
            (":SYSTEM", "ls", true),
            ("bin", "own", true),
            ("SYSTEM:.", "ls", false),
            ("SYSTEM:.", "cd", false),
            (".", "/bin/sh", false),
        ] {
            let path = path.replace("WORK", work.to_str().unwrap());
            let path = path.replace("SYSTEM", "/usr/bin");
            let environment = [("PATH".into(), path.clone().into())];
            assert_eq!(is_replaceable(&environment, program, &work), want, "{path}");
        }
    }
}
