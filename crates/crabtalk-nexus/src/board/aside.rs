//! The board beside the supervisor, on a thread of its own.
//!
//! Invariants: a terminal that takes nothing, as behind a line that is down,
//! holds this thread and not NEXUS; NEXUS's end waits for it for a moment only,
//! in which the terminal becomes what it was.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// For how long the end waits for the terminal.
const ENDS: Duration = Duration::from_secs(1);

/// The thread, and what ends it.
struct Running {
    end: oneshot::Sender<()>,
    ended: Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

/// A board for the NEXUS of this process.
pub struct Aside {
    folder: PathBuf,
    /// Taken when it begins: what is told when the person leaves.
    left: Mutex<Option<oneshot::Sender<()>>>,
    running: Mutex<Option<Running>>,
}

impl std::fmt::Debug for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aside")
    }
}

impl Aside {
    /// Not shown yet. `left` hears when the person leaves it.
    pub fn new(folder: PathBuf, left: oneshot::Sender<()>) -> Self {
        Self {
            folder,
            left: Mutex::new(Some(left)),
            running: Mutex::new(None),
        }
    }

    /// Shows it.
    pub fn begin(&self) {
        let left = self.left.lock().ok().and_then(|mut left| left.take());
        let (Some(left), Ok(mut running)) = (left, self.running.lock()) else {
            return;
        };
        let (end, ends) = oneshot::channel();
        let (over, ended) = channel();
        let folder = self.folder.clone();
        let thread = std::thread::Builder::new()
            .name("board".into())
            .spawn(move || shown(folder, ends, left, &over));
        // Without a thread there is no board; the log has what happens.
        *running = thread.ok().map(|thread| Running { end, ended, thread });
    }

    /// Takes it off the terminal.
    pub fn end(&self) {
        let running = self.running.lock().ok().and_then(|mut held| held.take());
        let Some(running) = running else {
            return;
        };
        let _ = running.end.send(());
        // It may be held by a terminal that takes nothing; the process ends anyway.
        if running.ended.recv_timeout(ENDS).is_ok() {
            let _ = running.thread.join();
        }
    }
}

fn shown(
    folder: PathBuf,
    end: oneshot::Receiver<()>,
    left: oneshot::Sender<()>,
    over: &Sender<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(runtime) = runtime {
        runtime.block_on(async {
            let ends = async {
                let _ = end.await;
            };
            // A terminal that fails is one that nobody sits at.
            let _ = super::show(&folder, true, ends).await;
        });
    }
    let _ = left.send(());
    let _ = over.send(());
}
