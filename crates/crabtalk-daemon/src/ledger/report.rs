//! What was spent, by day, agent, model, conversation and run.

use super::DayLedger;
use super::book::read_day;
use super::cells::Sum;
use super::sums::{Entry, Sums};
use crabtalk_domain::Budget;
use jiff::ToSpan;
use jiff::civil::Date;
use std::collections::BTreeMap;

/// Longest span that is reported; as much as is kept.
const MAX_DAYS: u32 = 400;

/// Rows of one kind, the costliest: more than anybody reads.
const MAX_ROWS: usize = 100;

/// What was spent in the days up to now.
pub(crate) struct Report {
    pub(crate) today: Sum,
    pub(crate) budget: Budget,
    /// When spent budgets open again.
    pub(crate) opens_at: String,
    /// Newest first.
    pub(crate) days: Vec<(Date, Sum)>,
    pub(crate) agents: Vec<(String, Sum)>,
    /// Provider and model.
    pub(crate) models: Vec<((String, String), Sum)>,
    /// Agent and sender.
    pub(crate) conversations: Vec<((String, String), Sum)>,
    /// The last ones, newest first.
    pub(crate) runs: Vec<Entry>,
}

/// Sums by one part of their cells.
struct Added<K>(BTreeMap<K, Sum>);

impl<K: Ord> Added<K> {
    fn add(&mut self, key: K, sum: &Sum) {
        self.0.entry(key).or_default().add(sum);
    }

    fn costliest(self) -> Vec<(K, Sum)> {
        let mut rows: Vec<(K, Sum)> = self.0.into_iter().collect();
        let order = |sum: &Sum| (sum.money, sum.tokens());
        rows.sort_by(|(_, a), (_, b)| {
            let (a, b) = (order(a), order(b));
            b.0.total_cmp(&a.0).then(b.1.cmp(&a.1))
        });
        rows.truncate(MAX_ROWS);
        rows
    }
}

fn both((a, b): (&str, &str)) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

/// The few rows that are told, apart from the many that were added up.
fn owned<K, O>(rows: Vec<(K, Sum)>, own: impl Fn(K) -> O) -> Vec<(O, Sum)> {
    rows.into_iter().map(|(key, sum)| (own(key), sum)).collect()
}

impl DayLedger {
    /// Reads the files of earlier days: for a thread that may wait, once today is
    /// known.
    pub(crate) fn report(&self, days: u32) -> Report {
        let now = self.now();
        let today = self.desk.with(now.date(), |day| day.sums());
        let total = today.total;
        let mut by_day = vec![(now.date(), today)];
        for back in 1..i64::from(days.clamp(1, MAX_DAYS)) {
            let Ok(date) = now.date().checked_sub(back.days()) else {
                break;
            };
            let sums = read_day(self.desk.folder(), date);
            if sums.total.calls > 0 || !sums.runs.is_empty() {
                by_day.push((date, sums));
            }
        }
        let mut agents = Added(BTreeMap::new());
        let mut models = Added(BTreeMap::new());
        let mut conversations = Added(BTreeMap::new());
        for (_, Sums { cells, .. }) in &by_day {
            for ([speaker, agent, sender, provider, model], sum) in cells.iter() {
                agents.add(speaker, sum);
                models.add((provider, model), sum);
                conversations.add((agent, sender), sum);
            }
        }
        let runs = by_day.iter().flat_map(|(_, sums)| sums.runs.iter().rev());
        Report {
            today: total,
            budget: self.node_budget(),
            opens_at: self
                .opens_at(&now)
                .strftime("%Y-%m-%dT%H:%M:%S%:z")
                .to_string(),
            days: by_day
                .iter()
                .filter(|(date, sums)| *date == now.date() || sums.total.calls > 0)
                .map(|(date, sums)| (*date, sums.total))
                .collect(),
            agents: owned(agents.costliest(), str::to_owned),
            models: owned(models.costliest(), both),
            conversations: owned(conversations.costliest(), both),
            runs: runs.take(MAX_ROWS).cloned().collect(),
        }
    }
}
