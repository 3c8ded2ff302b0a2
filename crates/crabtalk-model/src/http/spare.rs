//! Connections that are made before anybody asks (MODEL-8).
//! Invariants: a server has one spare at most; a spare that nobody takes is closed when it is
//! as old as a kept connection may be.

use super::MAX_IDLE_TIME;
use super::counts::Server;
use super::socket::Socket;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The spares of all servers.
#[derive(Default)]
pub(super) struct Spares {
    servers: Mutex<HashMap<Server, Spare>>,
}

struct Spare {
    /// It rests in the channel, or is on its way there.
    socket: oneshot::Receiver<Socket>,
    /// So that the end of an old one takes no new one away.
    of: Arc<()>,
}

impl Spares {
    /// Takes a spare, which may still be connecting.
    pub(super) fn take(&self, server: &Server) -> Option<oneshot::Receiver<Socket>> {
        let spare = self.lock().remove(server);
        spare.map(|spare| spare.socket)
    }

    /// A place for a spare, unless there is one.
    pub(super) fn place(self: &Arc<Self>, server: Server) -> Option<Place> {
        let mut servers = self.lock();
        if servers.contains_key(&server) {
            return None;
        }
        let (sender, socket) = oneshot::channel();
        let of = Arc::new(());
        let spare = Spare {
            socket,
            of: Arc::clone(&of),
        };
        servers.insert(server.clone(), spare);
        Some(Place {
            of,
            sender,
            spares: Arc::clone(self),
            server,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Server, Spare>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Spares {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// Where a spare goes.
pub(super) struct Place {
    of: Arc<()>,
    sender: oneshot::Sender<Socket>,
    spares: Arc<Spares>,
    server: Server,
}

impl Place {
    /// Connects, and closes the spare once it is too old. Why it cannot be made is told to
    /// nobody: whoever asks next tries again.
    pub(super) async fn fill<E>(self, connect: impl Future<Output = Result<Socket, E>>) {
        let Self {
            of,
            sender,
            spares,
            server,
        } = self;
        if let Ok(mut socket) = connect.await {
            socket.rests();
            if sender.send(socket).is_ok() {
                tokio::time::sleep(MAX_IDLE_TIME).await;
            }
        }
        let mut servers = spares.lock();
        let old = match servers.get(&server) {
            Some(spare) if Arc::ptr_eq(&spare.of, &of) => servers.remove(&server),
            Some(_) | None => None,
        };
        // Closing a socket is no work for who holds a lock.
        drop(servers);
        drop(old);
    }
}
