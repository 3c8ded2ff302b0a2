//! The place where clients of the 0.0.20 generation look for the socket: a link
//! to the one that there is (WIRE-5).
//!
//! Invariants: a socket there on which somebody listens stays; a link that was
//! removed is made again.

use crabtalk_config::Home;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Its name in the folder `run`.
const NAME: &str = "crabtalk.sock";

/// How often is looked whether the link is there: whoever cleans up a folder
/// does so seldom, and clients that are older than that are few.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// A link that goes with the daemon.
struct OldSocket {
    path: PathBuf,
    socket: PathBuf,
}

/// Makes the link before anybody is served. What prevents that is told by
/// [`keep`].
pub(crate) fn link(home: &Home) {
    let _ = make(&home.run_dir().join(NAME), &home.socket());
}

/// Makes the link, and makes it again when it is gone, until this is dropped.
/// Never resolves.
///
/// # Errors
/// When there is no link: then clients of the 0.0.20 generation find no daemon.
pub(crate) async fn keep(home: Home) -> io::Result<()> {
    let link = OldSocket {
        path: home.run_dir().join(NAME),
        socket: home.socket(),
    };
    make_if_gone(&link.path, &link.socket)?;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (path, socket) = (link.path.clone(), link.socket.clone());
        tokio::task::spawn_blocking(move || make_if_gone(&path, &socket)).await??;
    }
}

impl Drop for OldSocket {
    fn drop(&mut self) {
        if fs::read_link(&self.path).is_ok_and(|leads_to| leads_to == self.socket) {
            // What is left behind leads to no socket, which clients take alike.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn make_if_gone(path: &Path, socket: &Path) -> io::Result<()> {
    match fs::read_link(path) {
        Ok(leads_to) if leads_to == socket => Ok(()),
        Ok(_) | Err(_) => make(path, socket),
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_link_that_was_removed_is_made_again_and_goes_with_the_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path(), None).unwrap();
        let path = home.run_dir().join(NAME);
        let mut keeping = Box::pin(keep(home.clone()));
        assert!(keeping.as_mut().now_or_never().is_none());
        assert_eq!(fs::read_link(&path).unwrap(), home.socket());
        fs::remove_file(&path).unwrap();
        advance(LOOK_EVERY).await;
        while fs::read_link(&path).is_err() {
            assert!(keeping.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        drop(keeping);
        assert!(fs::symlink_metadata(&path).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_on_which_somebody_listens_is_told_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path(), None).unwrap();
        fs::create_dir_all(home.run_dir()).unwrap();
        let path = home.run_dir().join(NAME);
        let _theirs = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let refused = keep(home).await.unwrap_err();
        assert_eq!(refused.to_string(), "somebody listens there");
        UnixStream::connect(&path).unwrap();
    }
}
