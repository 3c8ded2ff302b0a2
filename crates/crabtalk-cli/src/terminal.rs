//! The controlling terminal, used for questions even if standard input is a pipe.

use crate::prompt::Size;
use std::future::Future;
use std::io;
use std::pin::Pin;

/// Maximum length of a line; the line discipline's limit is 4096.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

/// An input line; `None` at end of input.
pub(crate) type Line<'a> = Pin<Box<dyn Future<Output = io::Result<Option<String>>> + Send + 'a>>;

/// A terminal on which questions are asked.
pub(crate) trait Terminal: Send {
    /// Shows cleaned text.
    fn show(&mut self, text: &str) -> io::Result<()>;

    /// Reads the next line. Cancel safe.
    fn line(&mut self) -> Line<'_>;

    /// Drops pending input.
    fn forget(&mut self);

    /// Hides or shows input.
    fn hide(&mut self, hide: bool) {
        let _ = hide;
    }

    /// The size, if known.
    fn size(&self) -> Option<Size>;
}

/// The size used if a terminal reports none.
pub(crate) const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};
