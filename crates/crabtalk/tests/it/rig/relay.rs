//! A socket between a client and the daemon that can be cut.

use super::TestEnv;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Forwards bytes between clients of its home and the daemon of another home.
pub(crate) struct Relay {
    folder: TempDir,
    connections: Arc<Mutex<JoinSet<()>>>,
    is_shut: Arc<AtomicBool>,
    _accepting: JoinSet<()>,
}

impl Relay {
    pub(crate) fn start(env: &TestEnv) -> Self {
        let folder = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("daemon.sock")).unwrap();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let (daemon, relayed) = (env.socket(), Arc::clone(&connections));
        let is_shut = Arc::new(AtomicBool::new(false));
        let shut = Arc::clone(&is_shut);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                if shut.load(Ordering::SeqCst) {
                    continue;
                }
                let daemon = daemon.clone();
                relayed.lock().unwrap().spawn(async move {
                    // If the daemon does not run, the connection is closed.
                    if let Ok(mut daemon) = UnixStream::connect(daemon).await {
                        let _ = copy_bidirectional(&mut client, &mut daemon).await;
                    }
                });
            }
        });
        Self {
            folder,
            connections,
            is_shut,
            _accepting: accepting,
        }
    }

    /// The home for the clients.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Cuts every connection; new ones are accepted.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }

    /// Cuts every connection; new ones are closed until it is opened again.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Accepts new connections again.
    pub(crate) fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }
}
