//! A person at a terminal, and what is shown.

use crate::prompt::Size;
use crate::terminal::{Line, Terminal};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// A buffer that several writers share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits until a text was shown so many times.
pub(crate) async fn shows(shown: &Shared, text: &str, times: usize) {
    while shown.text().matches(text).count() < times {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Types what a sender sends.
pub(super) struct Person {
    pub(super) typed: mpsc::Receiver<&'static str>,
    pub(super) shown: Shared,
}

impl Terminal for Person {
    fn show(&mut self, text: &str) -> io::Result<()> {
        self.shown.write_all(text.as_bytes())
    }

    fn line(&mut self) -> Line<'_> {
        Box::pin(async { Ok(self.typed.recv().await.map(str::to_owned)) })
    }

    fn forget(&mut self) {
        while self.typed.try_recv().is_ok() {}
    }

    fn size(&self) -> Option<Size> {
        None
    }
}
