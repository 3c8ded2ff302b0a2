//! External commands: programs named `crabtalk-NAME`.

use std::ffi::OsStr;
use std::path::PathBuf;

pub(crate) use crate::system::is_program;

/// The path of `crabtalk-NAME`, next to this program or on PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let file = format!("crabtalk-{name}");
    find_in(folders_of_programs().into_iter(), OsStr::new(&file))
}

/// Folders of external programs, in order.
pub(crate) fn folders_of_programs() -> Vec<PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    // A relative folder would run programs from the current folder.
    folders.filter(|folder| folder.is_absolute()).collect()
}

fn find_in(folders: impl Iterator<Item = PathBuf>, file: &OsStr) -> Option<PathBuf> {
    folders
        .map(|folder| folder.join(file))
        .find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_program_is_found_by_its_folder_and_must_be_executable() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        for dir in [&a, &b] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("crabtalk-x"), "#!/bin/sh\n").unwrap();
        }
        let find = || find_in([a.clone(), b.clone()].into_iter(), OsStr::new("crabtalk-x"));
        assert_eq!(find(), None);
        fs::set_permissions(b.join("crabtalk-x"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(), Some(b.join("crabtalk-x")));
        assert!(
            folders_of_programs()
                .iter()
                .all(|folder| folder.is_absolute())
        );
    }
}
