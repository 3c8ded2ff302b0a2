//! Computes the hash of a skill's content.

use crate::skills::Error;
use crate::skills::disk::{self, MAX_FILE_BYTES};
use crate::skills::finding::{Finding, Level};
use crate::skills::skill::{folder_name, manifest};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// The files of a skill, read once.
pub(super) struct Hashed {
    /// The hash in lower-case hexadecimal.
    pub(super) sha256: String,
    /// The hashed bytes of its `SKILL.md`.
    pub(super) manifest: Vec<u8>,
}

/// The SHA-256, in lower-case hexadecimal, over all files of a skill, including hidden
/// ones, sorted by path: for each the path relative to the folder, NUL, its length in
/// decimal digits, NUL, its bytes. A file that cannot be hashed, such as a link out of the
/// folder, is an error.
pub fn content_hash(folder: &Path) -> Result<String, Error> {
    hash(folder).map(|hashed| hashed.sha256)
}

pub(super) fn hash(folder: &Path) -> Result<Hashed, Error> {
    let folder = disk::canonical_folder(folder)?;
    let refused = |findings: Vec<Finding>| Error::Refused {
        name: folder_name(&folder).to_owned(),
        findings,
    };
    let tree = disk::tree(&folder, |_| false);
    if !tree.troubles.is_empty() {
        return Err(refused(tree.troubles));
    }
    let manifest = manifest(&folder);
    let mut digest = Sha256::new();
    let mut text = Vec::new();
    for file in tree.files {
        let bytes = disk::read(&folder, &file, MAX_FILE_BYTES).map_err(|trouble| {
            let path = folder.join(&file);
            refused(vec![Finding::new(Level::Refused, &path, None, trouble)])
        })?;
        digest.update(file.as_bytes());
        digest.update([0]);
        digest.update(bytes.len().to_string());
        digest.update([0]);
        digest.update(&bytes);
        if Some(file.as_str()) == manifest {
            text = bytes;
        }
    }
    let mut sha256 = String::with_capacity(64);
    for byte in digest.finalize() {
        write!(sha256, "{byte:02x}").expect("a String takes all");
    }
    Ok(Hashed {
        sha256,
        manifest: text,
    })
}
