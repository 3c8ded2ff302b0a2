//! Accounts for model calls and enforces budgets (MODEL-7).
//!
//! Invariants: a call counts in memory at once, and its row is written before the end of
//! its run is published; if the disk is not writable, runs continue and sums stay in
//! memory; a budget allows a call only after today's sums were read.

mod today;

use crate::settings::Settings;
use crabtalk_domain::model::{Error, ErrorKind};
use crabtalk_domain::records::{self, COST_DAYS, CostOf, CostReport, CostRow, Costs, ReservedCost};
use crabtalk_domain::{
    AgentConfig, BoxFuture, Budget, CallTotal, Clock, Cost, Ledger, Reservation, RunEnded, RunEnds,
    Spent, Usage, stamp,
};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan, Zoned};
use std::future::ready;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use today::Today;

/// Rows of each kind in a report.
const MAX_ROWS: u32 = 100;

/// The cost of a model's answer, where its price is known.
pub(crate) type Price = dyn Fn(&str, &Usage) -> Option<f64> + Send + Sync;

/// The daemon's ledger of model calls.
pub(crate) struct DayLedger {
    costs: Arc<dyn Costs>,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    /// The time zone that determines days, detected on first use.
    zone: LazyLock<TimeZone, Box<dyn FnOnce() -> TimeZone + Send>>,
    price: Box<Price>,
    /// Distinguishes the reservations of this daemon from those of former ones.
    life: i64,
    today: Mutex<Today>,
    /// The latest write, for [`Self::finish`].
    last_write: Mutex<Option<Write>>,
}

type Write = BoxFuture<'static, Result<(), records::Error>>;

/// Costs of some days up to today.
pub(crate) struct Report {
    pub(crate) today: CallTotal,
    pub(crate) budget: Budget,
    /// When the budgets are renewed.
    pub(crate) opens_at: String,
    pub(crate) costs: CostReport,
}

impl DayLedger {
    /// A ledger that reads nothing before the first use.
    pub(crate) fn new(
        costs: Arc<dyn Costs>,
        settings: Arc<Settings>,
        clock: Arc<dyn Clock>,
        zone: impl FnOnce() -> TimeZone + Send + 'static,
        price: impl Fn(&str, &Usage) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            costs,
            settings,
            life: clock.now().as_microsecond(),
            clock,
            zone: LazyLock::new(Box::new(zone)),
            price: Box::new(price),
            today: Mutex::default(),
            last_write: Mutex::default(),
        }
    }

    fn now(&self) -> Zoned {
        self.clock.now().to_zoned((*self.zone).clone())
    }

    fn today(&self) -> MutexGuard<'_, Today> {
        self.today.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_write(&self) -> MutexGuard<'_, Option<Write>> {
        let last = self.last_write.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all rows are written.
    pub(crate) async fn finish(&self) {
        let last = self.last_write().take();
        if let Some(last) = last {
            report_failure(last.await);
        }
    }

    /// Stores a write for [`Self::finish`]. Writes complete in order, even if dropped.
    fn write_later(&self, write: Write) {
        *self.last_write() = Some(write);
    }

    /// Totals over some days up to today.
    pub(crate) async fn report(&self, days: u32) -> Report {
        let now = self.now();
        let today = now.date();
        let back = i64::from(days.clamp(1, COST_DAYS)) - 1;
        let from = today.checked_sub(back.days()).unwrap_or(today);
        let read = self.costs.report(from, today, self.life, MAX_ROWS).await;
        let mut costs = read.unwrap_or_else(|error| {
            tracing::error!(%error, "costs cannot be read");
            CostReport::default()
        });
        if costs.days.first().is_none_or(|(day, _)| *day != today) {
            costs.days.insert(0, (today, CallTotal::default()));
        }
        let opens = self.opens_at(&now);
        Report {
            today: costs.days[0].1,
            budget: self.node_budget(),
            opens_at: opens.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            costs,
        }
    }

    /// When the budgets are renewed.
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

    /// Reads the costs of a day, once.
    async fn know(&self, day: Date) -> Result<(), String> {
        let known = self.today().known(day);
        let reading = known.get_or_try_init(|| async {
            let read = {
                // The read covers all rows up to now; later ones are added to the sums.
                let mut today = self.today();
                today.forget(day);
                self.costs.of_day(day, self.life)
            };
            let read = read.await.map_err(|error| error.to_string())?;
            let mut today = self.today();
            for (agent, total) in &read {
                today.add(day, agent, total);
            }
            Ok(())
        });
        reading.await.map(drop)
    }

    /// Reserves the estimate of a call if today's budgets leave room for it.
    async fn reserve_of_budgets(
        &self,
        agent: &AgentConfig,
        estimate: Usage,
    ) -> Result<Reservation, Error> {
        let now = self.now();
        let day = now.date();
        if let Err(why) = self.know(day).await {
            let message = format!("today's costs, which a budget needs, cannot be read: {why}");
            return Err(Error::new(ErrorKind::Budget, message));
        }
        let mut wanted = CallTotal::default();
        let money = (self.price)(&agent.model, &estimate);
        wanted.add(&estimate, Cost::of_call(&estimate, money));
        let mut today = self.today();
        if let Some(spent) = self.spent(&mut today, day, agent, &wanted) {
            let opens = self.opens_at(&now);
            let message = format!(
                "{spent}; it opens again at {} (in {})",
                opens.strftime("%Y-%m-%d %H:%M"),
                hours(now.duration_until(&opens))
            );
            return Err(Error::new(ErrorKind::Budget, message));
        }
        let name = agent.name.as_str();
        let reserved = today.reserve(name, wanted);
        let row = CostRow {
            of: CostOf::Reservation(self.reserved(reserved)),
            speaker: name.to_owned(),
            agent: name.to_owned(),
            total: wanted,
            ..row(&now)
        };
        // The call does not wait for the disk.
        self.write_later(self.costs.add(row, None));
        Ok(reserved)
    }

    /// The message about the exceeded budget.
    fn spent(
        &self,
        today: &mut Today,
        day: Date,
        agent: &AgentConfig,
        wanted: &CallTotal,
    ) -> Option<String> {
        let name = agent.name.as_str();
        let of_agent = today.used(day, Some(name), wanted);
        if let Some((used, key, limit)) = exceeded(&of_agent, &agent.budget) {
            return Some(format!(
                "the agent {name} has used or reserved {used} today, and its budget (budget.{key}) is {limit}"
            ));
        }
        let of_all = today.used(day, None, wanted);
        let (used, key, limit) = exceeded(&of_all, &self.node_budget())?;
        Some(format!(
            "all agents together have used or reserved {used} today, and the node's budget (limits.{key}) is {limit}"
        ))
    }

    fn reserved(&self, reservation: Reservation) -> ReservedCost {
        ReservedCost {
            life: self.life,
            number: reservation.0,
        }
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
        let mut total = CallTotal::default();
        total.add(spent.usage, cost);
        let row = CostRow {
            speaker: spent.agent.name.to_string(),
            agent: spent.key.agent.to_string(),
            sender: spent.key.sender.to_string(),
            provider: spent.provider.to_owned(),
            model: spent.model.to_owned(),
            run: spent.run,
            total,
            ..row(&now)
        };
        let mut today = self.today();
        let settles = today
            .settle(reservation)
            .then(|| self.reserved(reservation));
        today.add(row.day, &row.speaker, &total);
        self.write_later(self.costs.add(row, settles));
        cost
    }

    fn release(&self, _: &AgentConfig, reservation: Reservation) {
        if self.today().settle(reservation) {
            self.write_later(self.costs.release(self.reserved(reservation)));
        }
    }
}

impl RunEnds for DayLedger {
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()> {
        // A crash lost the total of this run.
        let Some(total) = ended.total else {
            return Box::pin(ready(()));
        };
        let row = CostRow {
            of: CostOf::Run(ended.outcome.code),
            agent: ended.key.agent.to_string(),
            sender: ended.key.sender.to_string(),
            run: ended.outcome.run,
            total,
            ..row(&self.now())
        };
        // The rows of the run's calls were written before.
        let written = self.costs.add(row, None);
        Box::pin(async { report_failure(written.await) })
    }
}

/// Creates a row with the current time.
fn row(now: &Zoned) -> CostRow {
    CostRow {
        day: now.date(),
        at: stamp(now.timestamp()),
        ..CostRow::default()
    }
}

fn report_failure(written: Result<(), records::Error>) {
    if let Err(error) = written {
        tracing::error!(%error, "costs cannot be written; they count until a restart");
    }
}

/// The amount used, the key of the exceeded budget, and its limit.
fn exceeded(sum: &CallTotal, budget: &Budget) -> Option<(String, &'static str, String)> {
    let used = sum.usage.total_tokens();
    if let Some(limit) = budget.tokens_per_day.filter(|limit| used >= *limit) {
        return Some((
            format!("{used} tokens"),
            "tokens_per_day",
            limit.to_string(),
        ));
    }
    let limit = budget.money_per_day.filter(|limit| sum.money() >= *limit)?;
    let used = format!("{:.4} in money", sum.money());
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
