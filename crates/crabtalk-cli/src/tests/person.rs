//! A person at a terminal.

use crate::prompt::Size;
use crate::terminal::{Line, Terminal};
use crabtalk_testkit::Buffer;
use std::io::{self, Write};
use tokio::sync::mpsc;

/// Waits until a text was shown this many times.
pub(crate) async fn shows(shown: &Buffer, text: &str, times: usize) {
    while shown.text().matches(text).count() < times {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Types the texts from a channel.
pub(super) struct Person {
    pub(super) typed: mpsc::Receiver<&'static str>,
    pub(super) shown: Buffer,
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
