//! Elsewhere: what the standard library has for all systems.
//!
//! Nothing lies in a file's place there that opening would wait for, and no
//! stamp of a file is believed.

use crate::error::Error;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

pub(crate) fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| told(path, error))
}

pub(crate) fn open_to_append(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| told(path, error))
}

pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path)
}

/// A folder cannot be opened as a file is.
fn told(path: &Path, error: io::Error) -> Error {
    if path.is_dir() {
        return Error::Kind("a folder");
    }
    if error.kind() == ErrorKind::NotFound && path.is_symlink() {
        return Error::LeadsNowhere;
    }
    Error::Io(error)
}

pub(crate) fn other_kind(file: &File) -> io::Result<Option<&'static str>> {
    let metadata = file.metadata()?;
    Ok(match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => None,
        (_, true) => Some("a folder"),
        _ => Some("something else"),
    })
}

pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// A folder cannot be opened there, and its names last by themselves.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn place(metadata: &Metadata) -> [u64; 2] {
    [metadata.len(), 0]
}

pub(crate) fn content(metadata: &Metadata) -> [i64; 5] {
    [metadata.len() as i64, 0, 0, 0, 0]
}

pub(crate) fn changed(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}

pub(crate) fn is_local(_: &Path) -> bool {
    false
}
