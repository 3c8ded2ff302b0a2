//! Connections that are made before anybody asks (MODEL-8).
//! Invariants: a server has one spare at most, and none while a kept connection to it is free;
//! a spare that nobody takes is closed when it is as old as a kept one may be.

use super::MAX_IDLE_TIME;
use super::socket::Socket;
use http::Uri;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Scheme, host and port: what two requests must share to share a connection.
type Server = Arc<str>;

/// What is known of the connections to all servers.
#[derive(Default)]
pub(super) struct Spares {
    servers: Mutex<HashMap<Server, Connections>>,
}

#[derive(Default)]
struct Connections {
    /// Those that are connected, in use or kept; a spare that nobody took is none of them.
    open: usize,
    /// Calls whose answers have not ended.
    calls: usize,
    spare: Option<Spare>,
    /// Of the spares so far, so that an old one's end takes no new one away.
    number: u64,
}

/// A connection on its way, or one that rests in the channel.
struct Spare(oneshot::Receiver<Socket>);

impl Spares {
    /// Takes a spare, which may still be connecting.
    pub(super) fn take(&self, server: &Uri) -> Option<oneshot::Receiver<Socket>> {
        let mut servers = self.lock();
        let spare = servers.get_mut(&key(server))?.spare.take();
        spare.map(|Spare(socket)| socket)
    }

    /// A place for a spare, unless there is one or a kept connection is free.
    pub(super) fn place(self: &Arc<Self>, server: &Uri) -> Option<Place> {
        let server = key(server);
        let mut servers = self.lock();
        let of = servers.entry(Arc::clone(&server)).or_default();
        if of.spare.is_some() || of.open > of.calls {
            return None;
        }
        let (socket, spare) = oneshot::channel();
        of.number += 1;
        of.spare = Some(Spare(spare));
        Some(Place {
            number: of.number,
            socket,
            spares: Arc::clone(self),
            server,
        })
    }

    /// Counts a connection until what this returns is dropped.
    pub(super) fn connected(self: &Arc<Self>, server: &Uri) -> Counted {
        self.count(server, |of| &mut of.open)
    }

    /// Counts a call until what this returns is dropped.
    pub(super) fn called(self: &Arc<Self>, server: &Uri) -> Counted {
        self.count(server, |of| &mut of.calls)
    }

    fn count(self: &Arc<Self>, server: &Uri, which: fn(&mut Connections) -> &mut usize) -> Counted {
        let server = key(server);
        *which(self.lock().entry(Arc::clone(&server)).or_default()) += 1;
        Counted {
            spares: Arc::clone(self),
            server,
            which,
        }
    }

    /// Changes what is known of a server, and forgets one that nothing is known of.
    fn change(&self, server: &Server, change: impl FnOnce(&mut Connections)) {
        let mut servers = self.lock();
        let Some(of) = servers.get_mut(server) else {
            return;
        };
        change(of);
        if of.open == 0 && of.calls == 0 && of.spare.is_none() {
            servers.remove(server);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Server, Connections>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Spares {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

fn key(server: &Uri) -> Server {
    let scheme = server.scheme_str().unwrap_or_default();
    let authority = server.authority().map_or("", |it| it.as_str());
    format!("{scheme}://{authority}").into()
}

/// Where a spare goes.
pub(super) struct Place {
    number: u64,
    socket: oneshot::Sender<Socket>,
    spares: Arc<Spares>,
    server: Server,
}

impl Place {
    /// Connects, then waits until the spare was taken or is too old. Why it cannot be made
    /// is told to whoever asks next, who tries again.
    pub(super) async fn fill<E>(self, connect: impl Future<Output = Result<Socket, E>>) {
        let Self {
            number,
            socket,
            spares,
            server,
        } = self;
        if let Ok(mut spare) = connect.await {
            spare.rests();
            if socket.send(spare).is_ok() {
                tokio::time::sleep(MAX_IDLE_TIME).await;
            }
        }
        let mut old = None;
        spares.change(&server, |of| {
            if of.number == number {
                old = of.spare.take();
            }
        });
        // Closing a socket is no work for who holds a lock.
        drop(old);
    }
}

/// Takes itself off a count.
pub(super) struct Counted {
    spares: Arc<Spares>,
    server: Server,
    which: fn(&mut Connections) -> &mut usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let which = self.which;
        self.spares.change(&self.server, |of| *which(of) -= 1);
    }
}
