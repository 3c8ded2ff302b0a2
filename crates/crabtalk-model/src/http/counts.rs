//! How many connections to each server there are, and how many calls use them.
//! Invariant: a server that nothing is counted of is forgotten.

use http::Uri;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Scheme, host and port: what two requests must share to share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Server(Arc<str>);

impl Server {
    pub(super) fn of(address: &Uri) -> Self {
        let scheme = address.scheme_str().unwrap_or_default();
        let authority = address.authority().map_or("", |it| it.as_str());
        Self(format!("{scheme}://{authority}").into())
    }
}

#[derive(Default)]
pub(super) struct Counts {
    servers: Mutex<HashMap<Server, Count>>,
}

#[derive(Default)]
struct Count {
    /// Connected, in use or kept.
    open: usize,
    /// Whose answers have not ended.
    calls: usize,
}

impl Counts {
    /// Whether a connection is there that no call uses.
    pub(super) fn is_one_free(&self, server: &Server) -> bool {
        let servers = self.lock();
        servers.get(server).is_some_and(|it| it.open > it.calls)
    }

    /// Counts a connection until what this returns is dropped.
    pub(super) fn connected(self: &Arc<Self>, to: &Uri) -> Counted {
        self.count(to, |it| &mut it.open)
    }

    /// Counts a call until what this returns is dropped.
    pub(super) fn called(self: &Arc<Self>, to: &Uri) -> Counted {
        self.count(to, |it| &mut it.calls)
    }

    fn count(self: &Arc<Self>, to: &Uri, which: fn(&mut Count) -> &mut usize) -> Counted {
        let server = Server::of(to);
        *which(self.lock().entry(server.clone()).or_default()) += 1;
        Counted {
            counts: Arc::clone(self),
            server,
            which,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Server, Count>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Counts {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// Takes itself off a count.
pub(super) struct Counted {
    counts: Arc<Counts>,
    server: Server,
    which: fn(&mut Count) -> &mut usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut servers = self.counts.lock();
        if let Some(count) = servers.get_mut(&self.server) {
            *(self.which)(count) -= 1;
            if count.open == 0 && count.calls == 0 {
                servers.remove(&self.server);
            }
        }
    }
}
