//! What connections share: places, and memory for frames that are not complete.
//!
//! Invariants: no source takes all of anything, so that another finds room
//! beside a flood; what is shared comes back when its [`Place`] is dropped.

use crabtalk_proto::Status;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who connects, as far as connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A process of this machine.
    Process(i32),
    /// A machine.
    Address(IpAddr),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// Limits of all listeners together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; one more gets 429 and is closed.
    pub connections: usize,
    /// How long replies in flight may go on after shutdown began.
    pub drain: Duration,
}

impl Default for Limits {
    /// 1024 connections, below the usual 4096 files of a process with room
    /// for what each of them does; 3 seconds to drain, so that a daemon
    /// ends within the 5 that it promises.
    fn default() -> Self {
        Self {
            connections: 1024,
            drain: Duration::from_secs(3),
        }
    }
}

/// Refusals at a time; a connection beyond them is closed without a word, so
/// that a flood of connections stays bounded.
const REFUSALS: usize = 16;

/// Of this many places one source gets all but one: the rest is for others. A
/// relay that has a connection per user still gets nearly all.
const PLACES_PER_SPARE: usize = 8;

/// Of the places, one in so many is kept from clients that have not said who
/// they are: they get the rest for the few seconds of a handshake.
const PLACES_PER_KNOWN: usize = 4;

/// Connections of one source whose clients have not said who they are.
const STRANGERS_OF_SOURCE: usize = 64;

/// Bytes of a frame that need no share of the budget: whatever a person types.
/// With all places taken, 32 MiB.
const FREE_BYTES: usize = 8 * 1024;

/// Bytes of frames that are not complete, of all connections together: four
/// of the largest. With what needs no share it stays below a hundred megabytes.
const ALL_BYTES: usize = 64 * 1024 * 1024;

/// What one source may have of them: three of the largest, so that there is
/// always room for one of another's.
const SOURCE_BYTES: usize = 48 * 1024 * 1024;

/// Everybody who is connected, by whichever listener: listeners that are given
/// clones of one share its limits.
#[derive(Debug, Clone, Default)]
pub struct Crowd(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    shared: Mutex<Shared>,
    /// Turns at telling a peer why it is refused.
    refusals: Arc<Semaphore>,
}

impl Default for Inner {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Inner {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            shared: Mutex::default(),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// Connections that have a place.
    open: usize,
    /// Those of them whose clients have not said who they are.
    strangers: usize,
    sources: HashMap<Source, Usage>,
    bytes: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Usage {
    open: usize,
    strangers: usize,
    bytes: usize,
}

/// One connection's place. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Place {
    crowd: Crowd,
    source: Option<Source>,
    /// Bytes taken from the budget.
    bytes: usize,
    /// Its client has not said who it is.
    is_stranger: bool,
}

impl Crowd {
    /// Nobody yet.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Inner::new(limits)))
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.shared().open
    }

    pub(crate) fn limits(&self) -> Limits {
        self.0.limits
    }

    /// A turn at telling a peer why it is refused, if there is one.
    pub(crate) fn refusal(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.refusals).try_acquire_owned().ok()
    }

    /// Gives a connection a place.
    pub(crate) fn enter(&self, source: Option<Source>) -> Result<Place, Status> {
        let places = self.0.limits.connections;
        let mut shared = self.shared();
        if shared.open >= places {
            tracing::warn!(
                limit = places,
                "a connection was refused: too many are open"
            );
            return Err(Status::too_many(format!(
                "the daemon has {places} connections open, which is its limit; close one or raise \
                 `connections` under [limits]"
            )));
        }
        if let Some(source) = source {
            let most = places - (places / PLACES_PER_SPARE);
            let open = shared.sources.get(&source).map_or(0, |usage| usage.open);
            if open >= most {
                return Err(Status::too_many(format!(
                    "{source} has {open} connections open, and the rest of the daemon's \
                     {places} is for others; close one or raise `connections` under [limits]"
                )));
            }
            shared.sources.entry(source).or_default().open += 1;
        }
        shared.open += 1;
        drop(shared);
        Ok(Place {
            crowd: self.clone(),
            source,
            bytes: 0,
            is_stranger: false,
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Each change under this lock is a few sums that cannot panic.
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn count_stranger(&mut self, source: Option<Source>, comes: bool) {
        let count = |number: &mut usize| match comes {
            true => *number += 1,
            false => *number -= 1,
        };
        count(&mut self.strangers);
        if let Some(usage) = source.and_then(|source| self.sources.get_mut(&source)) {
            count(&mut usage.strangers);
        }
    }
}

impl Place {
    /// A place in a crowd of one.
    #[cfg(test)]
    pub(crate) fn uncounted() -> Self {
        Crowd::default().enter(None).expect("a place")
    }

    /// Its client has yet to say who it is. Refused if too many have.
    pub(crate) fn is_strangers(&mut self) -> Result<(), Status> {
        let places = self.crowd.0.limits.connections;
        let most = (places - places / PLACES_PER_KNOWN).max(1);
        let mut shared = self.crowd.shared();
        let usage = self.source.and_then(|it| shared.sources.get(&it));
        let own = usage.map_or(0, |usage| usage.strangers);
        if shared.strangers >= most || own >= STRANGERS_OF_SOURCE {
            return Err(Status::too_many(
                "too many connections are open on which nobody has said who it is; try again \
                 in some seconds, and begin with `hello` and a token",
            ));
        }
        shared.count_stranger(self.source, true);
        self.is_stranger = true;
        Ok(())
    }

    /// Its client has said who it is.
    pub(crate) fn known(&mut self) {
        if std::mem::take(&mut self.is_stranger) {
            self.crowd.shared().count_stranger(self.source, false);
        }
    }

    /// Whether this connection has a share of the budget.
    pub(crate) fn holds_bytes(&self) -> bool {
        self.bytes > 0
    }

    /// Takes or gives back memory, for a frame of which so many bytes have
    /// come.
    pub(crate) fn hold(&mut self, came: usize) -> Result<(), Status> {
        let bytes = if came > FREE_BYTES { came } else { 0 };
        if bytes == self.bytes {
            return Ok(());
        }
        let mut shared = self.crowd.shared();
        let all = shared.bytes - self.bytes + bytes;
        let usage = self
            .source
            .map(|source| shared.sources.entry(source).or_default());
        let own = usage
            .as_ref()
            .map_or(0, |usage| usage.bytes - self.bytes + bytes);
        if bytes > self.bytes && (all > ALL_BYTES || own > SOURCE_BYTES) {
            return Err(Status::shutting_down(format!(
                "too many large messages are arriving at once: what is not complete of them may \
                 take {} MiB, and {} MiB of one source; try again when others are through",
                ALL_BYTES >> 20,
                SOURCE_BYTES >> 20
            )));
        }
        if let Some(usage) = usage {
            usage.bytes = own;
        }
        shared.bytes = all;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.known();
        let mut shared = self.crowd.shared();
        shared.bytes -= self.bytes;
        shared.open -= 1;
        let Some(source) = self.source else {
            return;
        };
        if let Some(usage) = shared.sources.get_mut(&source) {
            usage.bytes -= self.bytes;
            usage.open -= 1;
            if usage.open == 0 {
                shared.sources.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests;
