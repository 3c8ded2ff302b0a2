//! The port for the accounting of model calls (MODEL-7).

use crate::model::Error;
use crate::{AgentConfig, BoxFuture, ConversationKey, Usage};
use std::future::ready;

/// A completed or interrupted model call, to be booked.
#[derive(Debug, Clone, Copy)]
pub struct Spent<'a> {
    /// The conversation of the call.
    pub key: &'a ConversationKey,
    /// The number of the run; for a compaction on demand, that of the last run.
    pub run: u64,
    /// The agent that made the call, whose budget pays.
    pub agent: &'a AgentConfig,
    /// The provider that answered.
    pub provider: &'a str,
    /// The model that answered.
    pub model: &'a str,
    /// The tokens of the call.
    pub usage: &'a Usage,
}

/// The cost of calls, as far as prices are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// In the unit of the prices; `None` if no call had a price.
    pub money: Option<f64>,
    /// Tokens of calls without a price.
    pub unpriced_tokens: u64,
}

impl Cost {
    /// The cost of one call: money if its price is known, else unpriced tokens.
    pub fn of_call(usage: &Usage, money: Option<f64>) -> Self {
        Self {
            money,
            unpriced_tokens: match money {
                Some(_) => 0,
                None => usage.total_tokens(),
            },
        }
    }

    /// Adds the cost of other calls.
    pub fn add(&mut self, other: Self) {
        if let Some(more) = other.money {
            *self.money.get_or_insert(0.0) += more;
        }
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
    }
}

/// The total of some model calls, including compactions and calls that were cancelled
/// or cut off.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallTotal {
    /// Number of calls.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their money.
    pub cost: Cost,
}

impl CallTotal {
    /// Adds one call.
    pub fn add(&mut self, usage: &Usage, cost: Cost) {
        self.add_all(&Self {
            calls: 1,
            usage: *usage,
            cost,
        });
    }

    /// Adds another total.
    pub fn add_all(&mut self, other: &Self) {
        self.calls += other.calls;
        self.usage.add(&other.usage);
        self.cost.add(other.cost);
    }

    /// The money of calls with a price.
    pub fn money(&self) -> f64 {
        self.cost.money.unwrap_or_default()
    }
}

/// Accounts for model calls. `()` allows every call and records nothing.
pub trait Ledger: Send + Sync {
    /// Reserves the estimated tokens of a call before it is made. A reservation that a
    /// crash leaves unsettled counts in full. The wait for the disk is bounded.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`](crate::model::ErrorKind::Budget) names the exhausted budget and
    /// when it opens again.
    fn reserve<'a>(
        &'a self,
        agent: &'a AgentConfig,
        estimate: Usage,
    ) -> BoxFuture<'a, Result<Reservation, Error>>;

    /// Replaces a reservation by the call and returns its cost, without waiting. Called
    /// for every call that a provider began to answer, also if it was cancelled or cut off.
    fn record(&self, reservation: Reservation, spent: Spent<'_>) -> Cost;

    /// Releases the reservation of a call that no provider answered.
    fn release(&self, _agent: &AgentConfig, _reservation: Reservation) {}
}

/// Identifies a reserved part of a budget; the default reserves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reservation(pub u64);

impl Ledger for () {
    fn reserve<'a>(
        &'a self,
        _: &'a AgentConfig,
        _: Usage,
    ) -> BoxFuture<'a, Result<Reservation, Error>> {
        Box::pin(ready(Ok(Reservation::default())))
    }

    fn record(&self, _: Reservation, spent: Spent<'_>) -> Cost {
        Cost::of_call(spent.usage, None)
    }
}
