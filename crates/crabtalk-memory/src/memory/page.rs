//! Reads `MEMORY.md` and `Crab.md`.

use crate::Warning;
use crate::text::cut;
use crabtalk_files::Error;
use std::path::{Path, PathBuf};

/// Largest page that is written, and how much of a larger one a request
/// carries: it is part of every one.
pub(crate) const MAX_PAGE_BYTES: usize = 16 * 1024;

/// Largest file that is read at all: beyond it lies something else.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file that people write by hand.
pub(super) struct Page {
    file: PathBuf,
}

impl Page {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the text; empty if the file is not there or cannot be read.
    pub(super) fn text(&self) -> String {
        self.load()
            .unwrap_or_else(|reason| {
                tracing::warn!(file = %self.file.display(), %reason, "left out");
                None
            })
            .unwrap_or_default()
    }

    fn load(&self) -> Result<Option<String>, Error> {
        crabtalk_files::if_there(crabtalk_files::read_text(&self.file, MAX_FILE_BYTES))
    }

    /// Why it is left out, or not all of it is told, if so.
    pub(super) fn warning(&self) -> Option<Warning> {
        let reason = match self.load() {
            Ok(text) => too_long(text?.trim())?,
            Err(error) => error.to_string(),
        };
        Some(Warning {
            file: self.file.clone(),
            reason,
        })
    }
}

fn too_long(text: &str) -> Option<String> {
    let bytes = text.len();
    (bytes > MAX_PAGE_BYTES)
        .then(|| format!("has {bytes} bytes, agents are told the first {MAX_PAGE_BYTES}"))
}

/// As much of a page as a request carries, and a note where that is not all.
pub(crate) fn told(name: &str, text: &str) -> String {
    let text = text.trim();
    match too_long(text) {
        None => text.to_owned(),
        Some(note) => format!("{}\n({name} {note})", cut(text, MAX_PAGE_BYTES)),
    }
}
