//! `MEMORY.md` and `Crab.md`, read again only when they changed.

use crate::Warning;
use crate::text::cut;
use crabtalk_files::Error;
use crabtalk_files::{Fingerprint, Trace};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Largest page that is written, and how much of a larger one a request
/// carries: it is part of every one.
pub(crate) const MAX_PAGE_BYTES: usize = 16 * 1024;

/// Largest file that is read at all: beyond it lies something else.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file that people write by hand.
pub(super) struct Page {
    file: PathBuf,
    /// The cached text, and the fingerprint for which it is valid.
    kept: Mutex<Option<(Fingerprint, Arc<str>)>>,
}

impl Page {
    pub(super) fn new(file: PathBuf) -> Self {
        Self {
            file,
            kept: Mutex::default(),
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The text, if it is known without opening the file.
    pub(super) fn known(&self) -> Option<Arc<str>> {
        let kept = self.kept();
        let (fingerprint, text) = kept.as_ref()?;
        fingerprint.holds().then(|| Arc::clone(text))
    }

    /// The text, read again if the file changed.
    pub(super) fn text(&self) -> Arc<str> {
        self.known().unwrap_or_else(|| self.read())
    }

    /// Reads it; empty if it is not there or cannot be read.
    pub(super) fn read(&self) -> Arc<str> {
        self.read_at(SystemTime::now())
    }

    /// Reads it, having `begun` at that moment, and keeps what it says.
    fn read_at(&self, begun: SystemTime) -> Arc<str> {
        let text: Arc<str> = match self.load() {
            Ok(text) => text.unwrap_or_default().into(),
            Err(reason) => {
                tracing::warn!(file = %self.file.display(), %reason, "left out");
                "".into()
            }
        };
        let fingerprint = Fingerprint::take(vec![Trace::Content(self.file.clone())], begun);
        *self.kept() = fingerprint.map(|fingerprint| (fingerprint, Arc::clone(&text)));
        text
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

    fn kept(&self) -> MutexGuard<'_, Option<(Fingerprint, Arc<str>)>> {
        // The cached value is complete or absent, even after a panic in another thread.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn a_page_is_read_again_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("MEMORY.md");
        let page = Page::new(file.clone());
        // As if all that is there had been for a while.
        let read = || page.read_at(SystemTime::now() + Duration::from_secs(1));
        assert_eq!((&*read(), page.known().as_deref()), ("", Some("")));
        for text in ["one", "two", "longer"] {
            fs::write(&file, text).unwrap();
            assert_eq!(page.known(), None, "{text}");
            assert_eq!((&*read(), page.known().as_deref()), (text, Some(text)));
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(page.known(), None);
        fs::write(&file, "new").unwrap();
        assert_eq!(&*page.read(), "new");
        assert_eq!(page.known(), None, "it may change again unseen");
    }
}
