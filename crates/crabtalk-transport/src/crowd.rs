//! What connections share: places, turns, and memory for frames that are not
//! complete.
//!
//! Invariants: no source takes all of anything, so that another finds room
//! beside a flood; who comes too fast waits, and is refused only when the wait
//! would be long; what is shared comes back when its [`Place`] is dropped.

use crabtalk_proto::Status;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

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

/// Connections, by all listeners together, whose clients have not said who they
/// are: a few kilobytes each, for some seconds. What is beyond is refused, so that
/// whoever comes without a token takes little from those who have one.
const STRANGERS: usize = 1024;

/// Of this many of them one source gets all but one.
const STRANGERS_PER_SPARE: usize = 4;

/// Connections that one source may open at once, before it is slowed down: as
/// many as there are places by default.
const BURST: u32 = 4096;

/// Connections a second that one source may open after that: more than any
/// client needs, and a tenth of what the daemon can do.
const PER_SECOND: u32 = 1000;

/// Longest wait of a connection that came too fast; beyond it is refused.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Bytes of a frame that need no share of the budget: whatever a person types.
/// With all places taken, 32 MiB.
const FREE_BYTES: usize = 8 * 1024;

/// Bytes of frames that are not complete, of all connections together: four
/// of the largest. With what needs no share it stays below a hundred megabytes.
const ALL_BYTES: usize = 64 * 1024 * 1024;

/// What one source may have of them: three of the largest, so that there is
/// always room for one of another's.
const SOURCE_BYTES: usize = 48 * 1024 * 1024;

/// Sources remembered before those that have nothing are forgotten.
const MANY_SOURCES: usize = 256;

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
    /// How many of all may be strangers.
    strangers: usize,
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
            // At least a quarter of the places is for those who are known.
            strangers: STRANGERS.min(limits.connections - limits.connections / 4),
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
    /// When its next connection is due, were they evenly spread; the past for
    /// one that came seldom.
    due: Option<Instant>,
}

/// One connection's place. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Place {
    crowd: Crowd,
    source: Option<Source>,
    /// Bytes taken from the budget.
    bytes: usize,
    /// Whether its client has not said who it is.
    stranger: bool,
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

    /// Gives a connection a place, and says how long it has to wait before it
    /// is served.
    pub(crate) fn enter(&self, source: Option<Source>) -> Result<(Place, Duration), Status> {
        let places = self.0.limits.connections;
        let mut wait = Duration::ZERO;
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
            let now = Instant::now();
            shared.forget(now);
            let usage = shared.sources.entry(source).or_default();
            wait = usage.take_turn(now)?;
            let most = places - (places / PLACES_PER_SPARE);
            if usage.open >= most {
                return Err(Status::too_many(format!(
                    "{source} has {} connections open, and the rest of the daemon's \
                     {places} is for others; close one or raise `connections` under [limits]",
                    usage.open
                )));
            }
            usage.open += 1;
        }
        shared.open += 1;
        drop(shared);
        let place = Place {
            crowd: self.clone(),
            source,
            bytes: 0,
            stranger: false,
        };
        Ok((place, wait))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Each change under this lock is a few sums that cannot panic.
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Keeps the list of sources short: whoever has nothing and came long ago
    /// is as good as new.
    fn forget(&mut self, now: Instant) {
        if self.sources.len() >= MANY_SOURCES.max(self.sources.capacity() / 2) {
            self.sources
                .retain(|_, usage| usage.open > 0 || usage.due.is_some_and(|due| due > now));
        }
    }
}

impl Shared {
    fn leave_strangers(&mut self, source: Option<Source>) {
        self.strangers -= 1;
        if let Some(usage) = source.and_then(|source| self.sources.get_mut(&source)) {
            usage.strangers -= 1;
        }
    }
}

fn too_many_strangers() -> Status {
    Status::too_many(
        "too many connections are open on which nobody has said who it is; try again in some seconds",
    )
}

impl Usage {
    /// How long until a connection's turn; refused, it has not had one.
    fn take_turn(&mut self, now: Instant) -> Result<Duration, Status> {
        let between = Duration::from_secs(1) / PER_SECOND;
        let due = self.due.map_or(now, |due| due.max(now));
        let wait = due.duration_since(now).saturating_sub(between * BURST);
        if wait > MAX_WAIT {
            return Err(Status::too_many(format!(
                "connections come faster than {PER_SECOND} a second; keep one open, or wait \
                 between them"
            )));
        }
        self.due = Some(due + between);
        Ok(wait)
    }
}

impl Place {
    /// A place in a crowd of one.
    #[cfg(test)]
    pub(crate) fn uncounted() -> Self {
        let (place, _) = Crowd::default().enter(None).expect("a place");
        place
    }

    /// Its client has yet to say who it is. Refused if too many have.
    pub(crate) fn is_strangers(&mut self) -> Result<(), Status> {
        let most = self.crowd.0.strangers;
        let own_most = most - most / STRANGERS_PER_SPARE;
        let mut shared = self.crowd.shared();
        let usage = self
            .source
            .map(|source| shared.sources.entry(source).or_default());
        let own = usage.as_ref().map_or(0, |usage| usage.strangers);
        if own >= own_most.max(1) {
            return Err(too_many_strangers());
        }
        if let Some(usage) = usage {
            usage.strangers += 1;
        }
        shared.strangers += 1;
        let all = shared.strangers;
        drop(shared);
        self.stranger = true;
        if all > most {
            // Dropped by the caller, the place counts no more.
            return Err(too_many_strangers());
        }
        Ok(())
    }

    /// Its client has said who it is.
    pub(crate) fn known(&mut self) {
        if std::mem::take(&mut self.stranger) {
            let mut shared = self.crowd.shared();
            shared.leave_strangers(self.source);
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
        let mut shared = self.crowd.shared();
        if self.stranger {
            shared.leave_strangers(self.source);
        }
        shared.bytes -= self.bytes;
        shared.open -= 1;
        if let Some(usage) = self
            .source
            .and_then(|source| shared.sources.get_mut(&source))
        {
            usage.bytes -= self.bytes;
            usage.open -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
