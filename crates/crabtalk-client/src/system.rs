//! The daemon's socket and log.

use crate::error::Error;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// A connection to the daemon of a home.
pub(crate) type LocalConnection = crabtalk_transport::UnixConnection;

/// The remedy for a daemon that does not answer.
pub(crate) const NO_DAEMON: &str = "start one with `crabtalk daemon start`";

/// Connects to the socket of a home.
pub(crate) async fn connect(socket: &Path) -> Result<LocalConnection, Error> {
    match crabtalk_transport::connect(socket).await {
        Ok(connection) => Ok(connection),
        Err(crabtalk_transport::Error::Connect { path, source }) => Err(Error::NoDaemon(format!(
            "cannot connect to {}: {source}",
            path.display()
        ))),
        Err(error) => Err(Error::NoDaemon(error.to_string())),
    }
}

/// Whether a daemon listens. An error means that starting one would not help.
pub(crate) async fn is_listening(socket: &Path) -> Result<bool, Error> {
    match crabtalk_transport::connect(socket).await {
        Ok(_) => Ok(true),
        Err(crabtalk_transport::Error::NotListening(_)) => Ok(false),
        Err(_) => connect(socket).await.map(|_| true),
    }
}

/// The process that listens, as the kernel reports it.
pub(crate) async fn peer_pid(socket: &Path) -> Option<i32> {
    crabtalk_transport::listener(socket).await
}

/// Opens a log for appending, for its owner alone, and creates its folder.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700).create(folder)?;
    }
    let mut open = OpenOptions::new();
    open.append(true).create(true).mode(0o600).open(path)
}
