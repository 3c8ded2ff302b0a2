//! Shows the board or entries of `run` on a separate thread, so that a blocked terminal or pipe blocks
//! only this thread.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// Time to restore the terminal and print the last lines at the end.
const ENDS: Duration = Duration::from_secs(1);

pub(super) struct Aside {
    end: oneshot::Sender<()>,
    ended: Receiver<()>,
}

impl Aside {
    /// Shows the board of the NEXUS in this folder, or prints its entries; sends `left`
    /// when the person leaves the board. Returns `None` if the thread cannot start.
    pub(super) fn begin(folder: PathBuf, plain: bool, left: oneshot::Sender<()>) -> Option<Self> {
        let (end, ends) = oneshot::channel();
        let (over, ended) = channel();
        let shown = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let ends = async {
                let _ = ends.await;
            };
            // If the terminal fails, the user cannot see an error.
            match runtime {
                Ok(runtime) if plain => {
                    super::tell(
                        "NEXUS runs; `crabtalk nexus status` shows the team, Ctrl-C ends NEXUS, \
                         and the agents keep running",
                    );
                    let _ = runtime.block_on(super::entries(&folder, &mut std::io::stderr()));
                }
                Ok(runtime) => {
                    let _ = runtime.block_on(crate::board::show(&folder, true, ends));
                    let _ = left.send(());
                }
                Err(_) => {}
            }
            let _ = over.send(());
        };
        let thread = std::thread::Builder::new().name("aside".into());
        thread.spawn(shown).ok()?;
        Some(Self { end, ended })
    }

    pub(super) fn end(self) {
        let _ = self.end.send(());
        let _ = self.ended.recv_timeout(ENDS);
    }
}
