//! Parts of budgets that are set aside for calls under way.

use super::cells::Sum;
use crabtalk_domain::Reservation;
use jiff::Zoned;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Reservations by number.
#[derive(Default)]
pub(super) struct Reserved(Mutex<BTreeMap<u64, (String, Sum)>>);

/// What is set aside for an agent, and for all agents.
pub(super) struct UnderWay {
    pub(super) of_agent: Sum,
    pub(super) of_all: Sum,
}

impl Reserved {
    /// Sets something aside; the number differs from those of earlier starts.
    pub(super) fn add(&self, now: &Zoned, agent: &str, sum: Sum) -> u64 {
        let mut reserved = self.lock();
        let by_time = u64::try_from(now.timestamp().as_microsecond()).unwrap_or(1);
        let last = reserved.keys().next_back().copied().unwrap_or_default();
        let number = by_time.max(last + 1);
        reserved.insert(number, (agent.to_owned(), sum));
        number
    }

    /// Gives a reservation back; whether there was one.
    pub(super) fn remove(&self, reservation: Reservation) -> bool {
        self.lock().remove(&reservation.0).is_some()
    }

    pub(super) fn sums(&self, agent: &str) -> UnderWay {
        let mut under_way = UnderWay {
            of_agent: Sum::default(),
            of_all: Sum::default(),
        };
        for (of, sum) in self.lock().values() {
            under_way.of_all.add(sum);
            if of == agent {
                under_way.of_agent.add(sum);
            }
        }
        under_way
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (String, Sum)>> {
        let reserved = self.0.lock();
        reserved.expect("no code panics while it holds the reservations")
    }
}
