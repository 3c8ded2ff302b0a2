//! What connections share: places, turns, and memory for frames that are not
//! complete.
//!
//! Invariants: no source takes all of anything, so that another finds room
//! beside a flood; who comes too fast waits, and is refused only when the wait
//! would be long; who has not said who it is gives way to who comes after; what is
//! shared comes back when its [`Place`] is dropped.

use crabtalk_proto::Status;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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
/// are: a few kilobytes each, for some seconds. When one more comes, the one that has
/// been silent for longest gives way, of the source that has most of them: whoever
/// has something to say says it at once, and finds a place beside any flood.
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
    /// Connections that were closed since nobody said who it was.
    silent: AtomicU64,
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
            silent: AtomicU64::new(0),
            // At least a quarter of the places is for those who are known.
            strangers: STRANGERS.min(limits.connections - limits.connections / 4),
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// Connections that have a place.
    open: usize,
    /// Those of them whose clients have not said who they are, by when they came.
    strangers: BTreeMap<u64, Stranger>,
    /// Strangers that ever came.
    came: u64,
    sources: HashMap<Source, Usage>,
    bytes: usize,
}

#[derive(Debug)]
struct Stranger {
    source: Option<Source>,
    give_way: CancellationToken,
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
    /// Which of the strangers its client is; `None` once it has said who it is.
    stranger: Option<u64>,
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
            stranger: None,
        };
        Ok((place, wait))
    }

    /// Counts a connection that was closed since nobody said who it was. Ever fewer
    /// of them are told, since nobody shall fill the log.
    pub(crate) fn was_silent(&self) {
        let count = self.0.silent.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(
                count,
                "connections were closed on which nobody said who it was"
            );
        }
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
    /// One of the strangers is none any more; nothing, if it has given way.
    fn leave_strangers(&mut self, number: u64) -> Option<Stranger> {
        let stranger = self.strangers.remove(&number)?;
        let usage = stranger.source.and_then(|it| self.sources.get_mut(&it));
        if let Some(usage) = usage {
            usage.strangers -= 1;
        }
        Some(stranger)
    }

    fn strangers_of(&self, source: Option<Source>) -> usize {
        let usage = source.and_then(|source| self.sources.get(&source));
        usage.map_or(0, |usage| usage.strangers)
    }

    /// Has the one give way that came first, of this source or else of that which
    /// has most.
    fn push_out(&mut self, source: Option<Source>) {
        let mut found: Option<(usize, u64)> = None;
        for (number, stranger) in &self.strangers {
            if source.is_some() && stranger.source == source {
                found = Some((0, *number));
                break;
            }
            let many = self.strangers_of(stranger.source);
            if source.is_none() && found.is_none_or(|(most, _)| many > most) {
                found = Some((many, *number));
            }
        }
        let stranger = found.and_then(|(_, number)| self.leave_strangers(number));
        if let Some(stranger) = stranger {
            stranger.give_way.cancel();
        }
    }
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

    /// Its client has yet to say who it is. If too many have, one that came before
    /// gives way. What this gives is cancelled when it is this one's turn to.
    pub(crate) fn is_strangers(&mut self) -> CancellationToken {
        let most = self.crowd.0.strangers.max(1);
        let own_most = (most - most / STRANGERS_PER_SPARE).max(1);
        let give_way = CancellationToken::new();
        let mut shared = self.crowd.shared();
        if self.source.is_some() && shared.strangers_of(self.source) >= own_most {
            shared.push_out(self.source);
        } else if shared.strangers.len() >= most {
            shared.push_out(None);
        }
        let number = shared.came;
        shared.came += 1;
        let stranger = Stranger {
            source: self.source,
            give_way: give_way.clone(),
        };
        shared.strangers.insert(number, stranger);
        if let Some(source) = self.source {
            shared.sources.entry(source).or_default().strangers += 1;
        }
        self.stranger = Some(number);
        give_way
    }

    /// Its client has said who it is.
    pub(crate) fn known(&mut self) {
        if let Some(number) = self.stranger.take() {
            self.crowd.shared().leave_strangers(number);
        }
    }

    /// It is closed since nobody said who it was.
    pub(crate) fn was_silent(&self) {
        self.crowd.was_silent();
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
        if let Some(number) = self.stranger {
            shared.leave_strangers(number);
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
