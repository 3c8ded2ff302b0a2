//! What model calls cost, and the budgets that end them (MODEL-7).
//!
//! Invariants: a call counts at once and is in the day's file a moment later, that
//! of a run before its end is told, so that a restart forgets nothing; nobody
//! waits long for a disk that does not answer; a file
//! that cannot be written stops no run, and the figures go on in memory; one that
//! cannot be read closes the budgets; what is kept in memory and on disk is
//! bounded.

mod book;
mod cells;
mod day;
mod desk;
mod report;
mod reserved;
mod sums;

pub(crate) use cells::Sum;
pub(crate) use report::Report;

use crate::settings::Settings;
use crabtalk_domain::model::{Error, ErrorKind};
use crabtalk_domain::{
    AgentConfig, BoxFuture, Budget, Clock, Cost, Ledger, Reservation, RunEnded, RunEnds, Spent,
    Usage,
};
use desk::Desk;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};
use reserved::Reserved;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use sums::Entry;

/// What a model's answer costs, where its price is known.
pub(crate) type Price = dyn Fn(&str, &Usage) -> Option<f64> + Send + Sync;

/// The daemon's account of model calls.
pub(crate) struct DayLedger {
    /// One file per day.
    desk: Arc<Desk>,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    /// Where midnight is; found at the first use.
    zone: LazyLock<TimeZone, Box<dyn FnOnce() -> TimeZone + Send>>,
    price: Box<Price>,
    /// Calls that are under way.
    reserved: Reserved,
}

impl DayLedger {
    /// Nothing is read before somebody asks.
    pub(crate) fn new(
        folder: PathBuf,
        settings: Arc<Settings>,
        clock: Arc<dyn Clock>,
        zone: impl FnOnce() -> TimeZone + Send + 'static,
        price: impl Fn(&str, &Usage) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            desk: Desk::new(folder),
            settings,
            clock,
            zone: LazyLock::new(Box::new(zone)),
            price: Box::new(price),
            reserved: Reserved::default(),
        }
    }

    fn now(&self) -> Zoned {
        self.clock.now().to_zoned((*self.zone).clone())
    }

    /// Waits until what was spent today is known, as far as it can be.
    pub(crate) async fn know_today(&self) {
        // Why it is not stands in the log.
        let _ = self.desk.know(self.now().date()).await;
    }

    /// Waits until everything is written down.
    pub(crate) async fn finish(&self) {
        self.desk.finish().await;
    }

    /// When spent budgets open again.
    fn opens_at(&self, now: &Zoned) -> Zoned {
        let tomorrow = now.date().tomorrow().ok();
        tomorrow
            .and_then(|date| date.to_zoned((*self.zone).clone()).ok())
            .unwrap_or_else(|| now.clone())
    }

    fn node_budget(&self) -> Budget {
        let limits = &self.settings.config().limits;
        Budget {
            tokens_per_day: limits.tokens_per_day,
            money_per_day: limits.money_per_day,
        }
    }

    /// Sets the estimate of a call aside, if today's budgets leave room for it.
    async fn reserve_of_budgets(
        &self,
        agent: &AgentConfig,
        estimate: Usage,
    ) -> Result<Reservation, Error> {
        let (own, node) = (&agent.budget, self.node_budget());
        let now = self.now();
        if let Err(why) = self.desk.know(now.date()).await {
            let message = format!(
                "there is a budget, and what was spent today is not known: {why}; mend that file or move it away"
            );
            return Err(Error::new(ErrorKind::Budget, message));
        }
        let (of_agent, of_node) = self.desk.with(now.date(), |day| {
            (day.of_agent(agent.name.as_str()), day.total())
        });
        let cost = Cost::of_call(&estimate, (self.price)(&agent.model, &estimate));
        let wanted = Sum::new(1, &estimate, &cost);
        let under_way = self.reserved.sums(agent.name.as_str());
        let of_agent = with_calls(of_agent, under_way.of_agent, wanted);
        let of_node = with_calls(of_node, under_way.of_all, wanted);
        let of_agent = exceeded(&of_agent, own).map(|(used, key, limit)| {
            let name = &agent.name;
            format!(
                "the agent {name} has used or reserved {used} today, and its budget (budget.{key}) is {limit}"
            )
        });
        let spent = of_agent.or_else(|| {
            let (used, key, limit) = exceeded(&of_node, &node)?;
            Some(format!(
                "all agents together have used or reserved {used} today, and the node's budget (limits.{key}) is {limit}"
            ))
        });
        let Some(spent) = spent else {
            let name = agent.name.as_str();
            let number = self.reserved.add(&now, name, wanted);
            let line = Entry {
                reserves: number,
                ..Entry::of_reservation(&now, name, wanted)
            };
            let line = self.desk.add(now.date(), line);
            self.desk.written(line).await;
            return Ok(Reservation(number));
        };
        let opens = self.opens_at(&now);
        let wait = now.duration_until(&opens);
        let message = format!(
            "{spent}; it opens again at {} (in {})",
            opens.strftime("%Y-%m-%d %H:%M"),
            hours(wait)
        );
        Err(Error::new(ErrorKind::Budget, message))
    }
}

impl Ledger for DayLedger {
    fn reserve<'a>(
        &'a self,
        agent: &'a AgentConfig,
        estimate: Usage,
    ) -> BoxFuture<'a, Result<Reservation, Error>> {
        let has_none = |budget: &Budget| *budget == Budget::default();
        if has_none(&agent.budget) && has_none(&self.node_budget()) {
            return Box::pin(ready(Ok(Reservation::default())));
        }
        Box::pin(self.reserve_of_budgets(agent, estimate))
    }

    fn record(&self, reservation: Reservation, spent: Spent<'_>) -> Cost {
        let now = self.now();
        let cost = Cost::of_call(spent.usage, (self.price)(spent.model, spent.usage));
        self.reserved.remove(reservation);
        let line = Entry {
            settles: reservation.0,
            ..Entry::new(&now, &spent, &cost)
        };
        self.desk.add(now.date(), line);
        cost
    }

    fn release(&self, agent: &AgentConfig, reservation: Reservation) {
        if self.reserved.remove(reservation) {
            let now = self.now();
            let line = Entry {
                settles: reservation.0,
                ..Entry::of_reservation(&now, agent.name.as_str(), Sum::default())
            };
            self.desk.add(now.date(), line);
        }
    }
}

impl RunEnds for DayLedger {
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()> {
        // What a crash took the account of is not known to have cost nothing.
        let Some(total) = &ended.total else {
            return Box::pin(ready(()));
        };
        let now = self.now();
        let line = Entry::of_run(&now, ended, total);
        let number = self.desk.add(now.date(), line);
        Box::pin(self.desk.written(number))
    }
}

/// What is used once the calls under way and one more have ended. The first call
/// of a budget is made as long as any of it is left.
fn with_calls(mut used: Sum, under_way: Sum, wanted: Sum) -> Sum {
    if under_way.calls > 0 {
        used.add(&under_way);
        used.add(&wanted);
    }
    used
}

/// What was used, of which budget, and what that is.
fn exceeded(sum: &Sum, budget: &Budget) -> Option<(String, &'static str, String)> {
    let tokens = budget.tokens_per_day.filter(|limit| sum.tokens() >= *limit);
    if let Some(limit) = tokens {
        let used = format!("{} tokens", sum.tokens());
        return Some((used, "tokens_per_day", limit.to_string()));
    }
    let limit = budget.money_per_day.filter(|limit| sum.money >= *limit)?;
    let used = format!("{:.4} in money", sum.money);
    Some((used, "money_per_day", limit.to_string()))
}

fn hours(wait: SignedDuration) -> String {
    let minutes = wait.as_mins().max(1);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests;
