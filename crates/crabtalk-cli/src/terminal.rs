//! The controlling terminal, used for questions even if standard input is a pipe.

use crate::prompt::Size;
use std::future::Future;
use std::io;
use std::pin::Pin;

/// Longest line taken from a terminal; the line discipline's own limit is 4096.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

/// A line that a person typed; `None` at end of input.
pub(crate) type Line<'a> = Pin<Box<dyn Future<Output = io::Result<Option<String>>> + Send + 'a>>;

/// A terminal that takes questions.
pub(crate) trait Terminal: Send {
    /// Shows text, which is cleaned.
    fn show(&mut self, text: &str) -> io::Result<()>;

    /// The next line. May be dropped and asked for again; nothing is lost.
    fn line(&mut self) -> Line<'_>;

    /// Drops what was typed and not yet taken.
    fn forget(&mut self);

    /// Whether what is typed is hidden from now on.
    fn hide(&mut self, hide: bool) {
        let _ = hide;
    }

    /// How large it is, where that is known.
    fn size(&self) -> Option<Size>;
}

/// The size of a terminal that reports none.
pub(crate) const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};
