//! Elsewhere: there is no socket in a home, and no daemon that could be started.
//! A daemon is reached over TCP, with a token.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Never made: see [`connect`].
pub(crate) type LocalConnection = crabtalk_transport::TcpConnection;

pub(crate) const NO_DAEMON: &str = "name one that listens on TCP with `--connect`";

fn none() -> Error {
    Error::NoDaemon(
        "a daemon runs on Unix systems; from here one is reached over TCP, with a token: \
         `crabtalk remote add NAME tcp://HOST:PORT`, then `crabtalk --connect NAME`"
            .to_owned(),
    )
}

pub(crate) async fn connect(_: &Path) -> Result<LocalConnection, Error> {
    Err(none())
}

pub(crate) async fn is_listening(_: &Path) -> Result<bool, Error> {
    Err(none())
}

pub(crate) async fn peer_pid(_: &Path) -> Option<i32> {
    None
}

pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}
