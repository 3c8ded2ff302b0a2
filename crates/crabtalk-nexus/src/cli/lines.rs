//! What `run` tells line by line, on a thread of its own.
//!
//! Invariants: whoever takes no lines, such as a pager or a terminal that was stopped,
//! holds this thread and not NEXUS; lines that find no room are counted, and told of when
//! there is some; the end waits for a moment only.

use super::show;
use crate::supervisor::Listener;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Lines that wait: more than a team tells while a pager shows a page.
const LINES: usize = 1000;

/// For how long the end waits for the last of them.
const ENDS: Duration = Duration::from_secs(1);

pub(super) struct Lines {
    tell: SyncSender<String>,
    ended: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Lines {
    pub(super) fn begin() -> io::Result<Self> {
        let (tell, told) = sync_channel::<String>(LINES);
        let (over, ended) = channel();
        let thread = std::thread::Builder::new().name("lines".into());
        let thread = thread.spawn(move || {
            for line in told {
                // Where nobody reads, the log has it.
                let _ = writeln!(io::stderr(), "{line}");
            }
            let _ = over.send(());
        })?;
        Ok(Self {
            tell,
            ended,
            thread,
        })
    }

    pub(super) fn say(&self, line: &str) {
        // Without room the log has what happens.
        let _ = self.tell.try_send(line.to_owned());
    }

    /// Tells each entry.
    pub(super) fn listener(&self) -> Listener {
        let tell = self.tell.clone();
        let mut missed = 0_u64;
        Box::new(move |entry, _| {
            if missed > 0 {
                let line = format!("{missed} entries are in the log alone");
                if tell.try_send(line).is_ok() {
                    missed = 0;
                }
            }
            if missed > 0 || tell.try_send(show::entry(entry)).is_err() {
                missed += 1;
            }
        })
    }

    /// Ends it once nobody listens any more.
    pub(super) fn end(self) {
        drop(self.tell);
        // It may be held by whoever takes nothing; the process ends anyway.
        if self.ended.recv_timeout(ENDS).is_ok() {
            let _ = self.thread.join();
        }
    }
}
