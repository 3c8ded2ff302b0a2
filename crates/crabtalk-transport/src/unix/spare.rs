//! Where a socket goes whose own folder cannot be written, for a daemon that
//! has to be reached on a full or read-only disk too (STORE-5).
//!
//! Invariant: the folder is ours alone or it is not used, since whoever else
//! could put a socket there could play the daemon.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Writable on any system, and the same for daemon and clients whatever their
/// environment says.
const PARENT: &str = "/tmp";

/// The place of a socket's spare one, whose folder is made.
pub(super) fn make(socket: &Path) -> io::Result<PathBuf> {
    let folder = folder(socket);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    find(socket).ok_or_else(|| {
        let message = format!("{} is not ours alone", folder.display());
        io::Error::new(io::ErrorKind::PermissionDenied, message)
    })
}

/// The place of a socket's spare one, if there may be one.
pub(super) fn find(socket: &Path) -> Option<PathBuf> {
    let folder = folder(socket);
    let found = fs::symlink_metadata(&folder).ok()?;
    let own = rustix::process::geteuid().as_raw();
    let ours = found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0;
    ours.then(|| folder.join("daemon.sock"))
}

fn folder(socket: &Path) -> PathBuf {
    // FNV-1a: daemon and clients of any build have to agree.
    let bytes = socket.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let own = rustix::process::geteuid().as_raw();
    Path::new(PARENT).join(format!("crabtalk-{own}-{hash:016x}"))
}

/// Whether another place would help.
pub(super) fn would_help(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_may_write_is_not_used() {
        let home = tempfile::tempdir().expect("a folder");
        let socket = home.path().join("daemon.sock");
        assert_eq!(find(&socket), None);
        let spare = make(&socket).expect("is made");
        assert_eq!(find(&socket), Some(spare.clone()));
        assert_eq!(make(&socket).expect("is there"), spare);
        let folder = spare.parent().expect("a folder");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("opens");
        assert_eq!(find(&socket), None);
        make(&socket).expect_err("not ours alone");
        fs::remove_dir(folder).expect("removes");
        std::os::unix::fs::symlink(home.path(), folder).expect("link");
        assert_eq!(find(&socket), None);
        fs::remove_file(folder).expect("removes");
    }
}
