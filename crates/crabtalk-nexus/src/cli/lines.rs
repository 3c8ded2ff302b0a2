//! The lines that `run` prints, on their own thread: a pager or a stopped terminal
//! that takes no output blocks this thread only.

use super::show;
use crate::supervisor::Listener;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Lines in the queue. Further ones are dropped; the log has them.
const LINES: usize = 1000;

/// How long the end waits for the last lines.
const ENDS: Duration = Duration::from_secs(1);

pub(super) struct Lines {
    tell: SyncSender<String>,
    ended: Receiver<()>,
}

impl Lines {
    pub(super) fn begin() -> io::Result<Self> {
        let (tell, told) = sync_channel::<String>(LINES);
        let (over, ended) = channel();
        let thread = std::thread::Builder::new().name("lines".into());
        thread.spawn(move || {
            for line in told {
                // A closed standard error has no reader.
                let _ = writeln!(io::stderr(), "{line}");
            }
            let _ = over.send(());
        })?;
        Ok(Self { tell, ended })
    }

    pub(super) fn say(&self, line: &str) {
        let _ = self.tell.try_send(line.to_owned());
    }

    /// Prints each entry.
    pub(super) fn listener(&self) -> Listener {
        let tell = self.tell.clone();
        Box::new(move |entry, _| {
            let _ = tell.try_send(show::entry(entry));
        })
    }

    /// Prints what is left, once the listeners are dropped.
    pub(super) fn end(self) {
        drop(self.tell);
        let _ = self.ended.recv_timeout(ENDS);
    }
}
