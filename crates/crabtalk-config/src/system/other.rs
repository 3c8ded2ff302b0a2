//! Elsewhere: a person's own folder is nobody else's by what it inherits.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::Path;

pub(crate) const USER_HOME: &str = "USERPROFILE";

pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

pub(crate) fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

pub(crate) fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}
