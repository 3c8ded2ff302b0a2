//! Threads that exist before there is work for them: a user whose limit of processes
//! is reached, by an agent's own command for instance, can start no more.
//!
//! They begin when those have been answered who waited for the daemon, but for the
//! one that read the files of the start.

use crabtalk_store::FileStore;
use std::sync::mpsc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// How long the first thread for file work waits for the second.
const SECOND_THREAD: Duration = Duration::from_secs(1);

/// Starts the thread that syncs logs, and a second one for file work: one that hangs
/// on a dead disk leaves another. More are started when there is work for them.
pub(crate) fn start(logs: &FileStore) {
    logs.start_syncing();
    let (tell, told) = mpsc::channel();
    spawn_blocking(move || {
        // Kept busy until the second one has begun, or is known not to.
        let _ = told.recv_timeout(SECOND_THREAD);
    });
    spawn_blocking(move || tell.send(()));
}
