//! Folders for their owner alone.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Where a person's own folder is told.
pub(crate) const USER_HOME: &str = "HOME";

/// Folders are for their owner alone (OPS-5).
const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and those above it, 0700.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Whether others than its owner may do anything in a folder.
pub(crate) fn is_open_to_others(folder: &fs::Metadata) -> bool {
    folder.permissions().mode() & 0o077 != 0
}

/// Takes others' rights away.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE))
}
