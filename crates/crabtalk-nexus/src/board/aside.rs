//! The board of the NEXUS in this process, on its own thread: a terminal that
//! takes no output, as behind a broken connection, blocks this thread only.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the end waits for the terminal to be restored.
const ENDS: Duration = Duration::from_secs(1);

/// A board that is shown.
#[derive(Debug)]
pub struct Aside {
    end: oneshot::Sender<()>,
    ended: Receiver<()>,
}

impl Aside {
    /// Shows the board of the NEXUS in this folder; `left` is sent when the person
    /// leaves it. Answers `None` if the thread cannot start.
    pub fn begin(folder: PathBuf, left: oneshot::Sender<()>) -> Option<Self> {
        let (end, ends) = oneshot::channel();
        let (over, ended) = channel();
        let shown = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                let ends = async {
                    let _ = ends.await;
                };
                // A terminal that fails has no reader.
                let _ = runtime.block_on(super::show(&folder, true, ends));
            }
            let _ = left.send(());
            let _ = over.send(());
        };
        let thread = std::thread::Builder::new().name("board".into());
        thread.spawn(shown).ok()?;
        Some(Self { end, ended })
    }

    /// Takes it off the terminal.
    pub fn end(self) {
        let _ = self.end.send(());
        // A blocked terminal does not delay the end of the process.
        let _ = self.ended.recv_timeout(ENDS);
    }
}
