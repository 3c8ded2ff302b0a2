//! Sums of the current day, for budgets.

use crabtalk_domain::{CallTotal, Reservation};
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Maximum number of days in memory: calls around midnight count for either.
const MAX_DAYS: usize = 2;

/// Costs of finished calls, and estimates of calls in progress.
#[derive(Default)]
pub(super) struct Today {
    days: BTreeMap<Date, Day>,
    /// Reservations: agent and estimate.
    reserved: BTreeMap<u64, (String, CallTotal)>,
    last_number: u64,
}

#[derive(Default)]
struct Day {
    /// Set once the day's rows were read.
    known: Arc<OnceCell<()>>,
    agents: BTreeMap<String, CallTotal>,
}

impl Today {
    fn day(&mut self, date: Date) -> &mut Day {
        if !self.days.contains_key(&date) && self.days.len() == MAX_DAYS {
            self.days.pop_first();
        }
        self.days.entry(date).or_default()
    }

    pub(super) fn known(&mut self, date: Date) -> Arc<OnceCell<()>> {
        Arc::clone(&self.day(date).known)
    }

    /// Clears the sums of a day before its rows are read.
    pub(super) fn forget(&mut self, date: Date) {
        self.day(date).agents.clear();
    }

    pub(super) fn add(&mut self, date: Date, agent: &str, total: &CallTotal) {
        let agents = &mut self.day(date).agents;
        agents.entry(agent.to_owned()).or_default().add_all(total);
    }

    pub(super) fn reserve(&mut self, agent: &str, estimate: CallTotal) -> Reservation {
        self.last_number += 1;
        let reserved = (agent.to_owned(), estimate);
        self.reserved.insert(self.last_number, reserved);
        Reservation(self.last_number)
    }

    /// Removes a reservation. Returns whether it existed.
    pub(super) fn settle(&mut self, reservation: Reservation) -> bool {
        self.reserved.remove(&reservation.0).is_some()
    }

    /// The use by an agent or by all agents, including calls in progress and one more. If no
    /// calls are in progress, that one is allowed while any budget is left.
    pub(super) fn used(
        &mut self,
        date: Date,
        agent: Option<&str>,
        wanted: &CallTotal,
    ) -> CallTotal {
        let is_meant = |name: &str| agent.is_none_or(|agent| agent == name);
        let mut used = CallTotal::default();
        for (name, total) in &self.day(date).agents {
            if is_meant(name) {
                used.add_all(total);
            }
        }
        let before = used.calls;
        for (name, estimate) in self.reserved.values() {
            if is_meant(name) {
                used.add_all(estimate);
            }
        }
        if used.calls > before {
            used.add_all(wanted);
        }
        used
    }
}
