//! Reads `MEMORY.md` and `Crab.md`.

use crate::Warning;
use crate::text::cut;
use crabtalk_files::Error;
use std::path::{Path, PathBuf};

/// Largest page to write, and maximum bytes of a larger one in a request: every request
/// contains it.
pub(crate) const MAX_PAGE_BYTES: usize = 16 * 1024;

/// Largest file to read; a larger one is not a page.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file that people edit.
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

    /// Reads the text; empty if the file is absent or unreadable.
    pub(super) fn text(&self) -> String {
        self.load()
            .unwrap_or_else(|reason| {
                tracing::warn!(file = %self.file.display(), %reason, "skipped a memory page");
                None
            })
            .unwrap_or_default()
    }

    fn load(&self) -> Result<Option<String>, Error> {
        crabtalk_files::if_there(crabtalk_files::read_text(&self.file, MAX_FILE_BYTES))
    }

    /// The warning about a page that is unreadable or too long, if it is.
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
        .then(|| format!("has {bytes} bytes; prompts contain the first {MAX_PAGE_BYTES}"))
}

/// The part of a page that a request contains, with a note if it is cut.
pub(crate) fn told(name: &str, text: &str) -> String {
    let text = text.trim();
    match too_long(text) {
        None => text.to_owned(),
        Some(note) => format!("{}\n({name} {note})", cut(text, MAX_PAGE_BYTES)),
    }
}
