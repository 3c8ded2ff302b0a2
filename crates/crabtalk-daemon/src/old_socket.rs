//! The place where clients of the 0.0.20 generation look for the socket: a link
//! to the one that there is (WIRE-5).
//!
//! Invariant: a socket there on which somebody listens stays.

use crabtalk_config::Home;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Its name in the folder `run`.
const NAME: &str = "crabtalk.sock";

/// A link that goes with the daemon.
pub(crate) struct OldSocket {
    path: Option<PathBuf>,
}

impl OldSocket {
    /// Makes the link. Without it everything else works, so that a failure is
    /// only told.
    pub(crate) fn link(home: &Home) -> Self {
        let path = home.run_dir().join(NAME);
        match make(&path, &home.socket()) {
            Ok(()) => Self { path: Some(path) },
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "clients of the 0.0.20 generation will not find the socket");
                Self { path: None }
            }
        }
    }
}

impl Drop for OldSocket {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
        {
            // What is left behind leads to no socket, which clients take alike.
            let _ = fs::remove_file(path);
        }
    }
}

fn make(path: &Path, socket: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {}
        // What an older daemon left; nothing answers there.
        Ok(found) if found.file_type().is_socket() => {
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::other("somebody listens there"));
            }
        }
        Ok(_) => return Err(io::Error::other("something else lies there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let born = folder.join(format!(".{NAME}.{}", std::process::id()));
    let _ = fs::remove_file(&born);
    symlink(socket, &born)?;
    fs::rename(&born, path)
}
