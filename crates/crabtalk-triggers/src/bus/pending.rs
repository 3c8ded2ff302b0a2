//! Events whose runs have not started yet.

use crate::bus::event::{TooLong, check_payload};
use crabtalk_domain::records::{self, Event};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of waiting events; more are refused, so that the publisher slows down.
pub const MAX_PENDING: usize = 1000;

/// Maximum bytes of their payloads together.
pub const MAX_PENDING_BYTES: usize = 16 * 1024 * 1024;

/// Why an event was refused.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The payload is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Too many events wait; retry later.
    #[error(
        "{MAX_PENDING} events, or {} MiB of them, are waiting, which is the limit: publish again \
         later",
        MAX_PENDING_BYTES / 1024 / 1024
    )]
    Full,
    /// The records could not be written, so that the event fires nothing.
    #[error("the event could not be stored: {0}")]
    Unrecorded(#[from] records::Error),
}

/// Waiting events.
#[derive(Debug, Default)]
pub struct Pending {
    events: BTreeMap<u64, Arc<Event>>,
    bytes: usize,
}

impl Pending {
    /// Creates the collection from these events.
    pub fn new(events: Vec<Event>) -> Self {
        let mut pending = Self::default();
        for event in events {
            pending.insert(event);
        }
        pending
    }

    /// All events, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.values()
    }

    /// Whether an event about this run is waiting.
    pub fn has(&self, about: &str) -> bool {
        self.events.values().any(|event| event.about == about)
    }

    /// Whether an event may be added.
    ///
    /// # Errors
    /// The event is too long, or too many wait.
    pub fn check(&self, event: &Event) -> Result<(), PublishError> {
        check_payload(&event.payload)?;
        let bytes = self.bytes + event.payload.len();
        if self.events.len() >= MAX_PENDING || bytes > MAX_PENDING_BYTES {
            return Err(PublishError::Full);
        }
        Ok(())
    }

    /// Adds a recorded event.
    pub fn insert(&mut self, event: Event) {
        self.bytes += event.payload.len();
        self.events.insert(event.id, Arc::new(event));
    }

    /// Removes an event; returns whether it was waiting.
    pub fn remove(&mut self, id: u64) -> bool {
        let removed = self.events.remove(&id);
        self.bytes -= removed.as_ref().map_or(0, |event| event.payload.len());
        removed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::event::MAX_PAYLOAD_BYTES;

    #[test]
    fn pending_events_are_bounded() {
        let mut long = Event {
            payload: "x".repeat(MAX_PAYLOAD_BYTES + 1),
            ..Event::default()
        };
        let mut pending = Pending::default();
        assert!(matches!(
            pending.check(&long),
            Err(PublishError::TooLong(_))
        ));
        long.payload.pop();
        for id in 0..MAX_PENDING_BYTES / MAX_PAYLOAD_BYTES {
            pending.check(&long).expect("there is room");
            let id = id as u64;
            pending.insert(Event { id, ..long.clone() });
        }
        assert!(matches!(pending.check(&long), Err(PublishError::Full)));
        assert!(pending.remove(0) && !pending.remove(0));
        pending.check(&long).expect("there is room again");
        let small = (0..MAX_PENDING as u64).map(|id| Event {
            id,
            ..Event::default()
        });
        let pending = Pending::new(small.collect());
        assert!(matches!(
            pending.check(&Event::default()),
            Err(PublishError::Full)
        ));
    }
}
