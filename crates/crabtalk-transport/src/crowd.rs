//! Limits shared by all listeners: connections, connections per source, and memory of incomplete frames.
//!
//! Invariant: a [`ConnectionSlot`] returns its share when it is dropped.

use crabtalk_proto::Status;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The source of a connection, by which connections are counted.
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

/// Concurrent refusals; further connections are closed without a reason.
const REFUSALS: usize = 16;

/// One source may hold all places but one in eight, so a relay with a connection per user gets nearly all.
const PLACES_PER_SPARE: usize = 8;

/// Bytes of an incomplete frame that do not count towards the budget.
const FREE_BYTES: usize = 8 * 1024;

/// Bytes per permit of the budget.
const UNIT: usize = 1024;

/// Budget for incomplete frames of all connections together: four frames of maximal size.
const ALL_BYTES: usize = 64 * 1024 * 1024;

/// The connections of all listeners that share clones of this value.
#[derive(Debug, Clone)]
pub struct Crowd(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Concurrent connections; one more gets 429 and is closed.
    limit: usize,
    places: Arc<Semaphore>,
    sources: Mutex<HashMap<Source, usize>>,
    bytes: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

/// One connection's place, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    crowd: Crowd,
    source: Option<Source>,
    /// The share of the byte budget.
    bytes: Option<OwnedSemaphorePermit>,
    _place: OwnedSemaphorePermit,
}

impl Crowd {
    /// Creates a crowd with a limit of concurrent connections.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Inner {
            limit,
            places: Arc::new(Semaphore::new(limit)),
            sources: Mutex::default(),
            bytes: Arc::new(Semaphore::new(ALL_BYTES / UNIT)),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
        }))
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.0.limit - self.0.places.available_permits()
    }

    /// Returns a permit to send a peer the reason of its refusal.
    pub(crate) fn refusal(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.refusals).try_acquire_owned().ok()
    }

    /// Reserves a place for a connection.
    pub(crate) fn enter(&self, source: Option<Source>) -> Result<ConnectionSlot, Status> {
        let places = self.0.limit;
        let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else {
            tracing::warn!(limit = places, "refused a connection: too many are open");
            return Err(Status::too_many(format!(
                "the daemon has {places} open connections, which is the limit; close one or raise \
                 `connections` under [limits]"
            )));
        };
        if let Some(source) = source {
            let mut sources = self.sources();
            let open = sources.entry(source).or_default();
            if *open >= places - (places / PLACES_PER_SPARE) {
                return Err(Status::too_many(format!(
                    "{source} has {open} of the daemon's {places} connections, which is the limit \
                     for one source; close one or raise `connections` under [limits]"
                )));
            }
            *open += 1;
        }
        Ok(ConnectionSlot {
            crowd: self.clone(),
            source,
            bytes: None,
            _place: place,
        })
    }

    fn sources(&self) -> MutexGuard<'_, HashMap<Source, usize>> {
        // No update under this lock can panic.
        let sources = self.0.sources.lock();
        sources.unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// A place that counts towards no limit.
    #[cfg(test)]
    pub(crate) fn uncounted() -> Self {
        Crowd::new(1).enter(None).expect("a place")
    }

    /// Whether the connection reserved a part of the byte budget.
    pub(crate) fn holds_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// Adjusts the reserved part of the byte budget to the received bytes of an incomplete frame.
    pub(crate) fn hold(&mut self, received: usize) -> Result<(), Status> {
        if received <= FREE_BYTES {
            self.bytes = None;
            return Ok(());
        }
        let wanted = received.div_ceil(UNIT);
        let held = self.bytes.as_ref().map_or(0, |share| share.num_permits());
        if wanted <= held {
            let rest = self
                .bytes
                .as_mut()
                .and_then(|share| share.split(held - wanted));
            drop(rest);
            return Ok(());
        }
        let more = u32::try_from(wanted - held).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.crowd.0.bytes).try_acquire_many_owned(more) else {
            return Err(Status::shutting_down(format!(
                "too many large messages are arriving at once: the limit for incomplete frames is \
                 {} MiB; try again later",
                ALL_BYTES >> 20
            )));
        };
        match &mut self.bytes {
            Some(share) => share.merge(more),
            None => self.bytes = Some(more),
        }
        Ok(())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some(source) = self.source else {
            return;
        };
        let mut sources = self.crowd.sources();
        if let Some(open) = sources.get_mut(&source) {
            *open -= 1;
            if *open == 0 {
                sources.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests;
