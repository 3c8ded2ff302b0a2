//! The port through which the run loop answers for what it spends (MODEL-7).

use crate::model::Error;
use crate::{AgentConfig, BoxFuture, ConversationKey, Usage};
use std::future::ready;

/// A model call that was made, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Spent<'a> {
    /// The conversation.
    pub key: &'a ConversationKey,
    /// The run within it; compaction on demand has the last one's.
    pub run: u64,
    /// The agent that spoke; its budget pays.
    pub agent: &'a AgentConfig,
    /// The provider that answered.
    pub provider: &'a str,
    /// The model that answered.
    pub model: &'a str,
    /// Its usage.
    pub usage: &'a Usage,
}

/// What calls cost in money, as far as their prices are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// In the unit of the prices; `None` while nothing had one.
    pub money: Option<f64>,
    /// Tokens without a price.
    pub unpriced_tokens: u64,
}

impl Cost {
    /// What one call cost: money where its price is known, else tokens without one.
    pub fn of_call(usage: &Usage, money: Option<f64>) -> Self {
        Self {
            money,
            unpriced_tokens: match money {
                Some(_) => 0,
                None => usage.total_tokens(),
            },
        }
    }

    /// Adds another call's.
    pub fn add(&mut self, other: Self) {
        if let Some(more) = other.money {
            *self.money.get_or_insert(0.0) += more;
        }
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
    }
}

/// Model calls together: those of a run, an agent or a day. Calls of compaction and
/// calls that were cancelled or cut are included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallTotal {
    /// Model calls.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their money.
    pub cost: Cost,
}

impl CallTotal {
    /// Adds a call.
    pub fn add(&mut self, usage: &Usage, cost: Cost) {
        self.add_all(&Self {
            calls: 1,
            usage: *usage,
            cost,
        });
    }

    /// Adds other calls.
    pub fn add_all(&mut self, other: &Self) {
        self.calls += other.calls;
        self.usage.add(&other.usage);
        self.cost.add(other.cost);
    }

    /// Money, as far as prices are known.
    pub fn money(&self) -> f64 {
        self.cost.money.unwrap_or_default()
    }
}

/// Keeps account of model calls. `()` allows everything and forgets it.
pub trait Ledger: Send + Sync {
    /// Reserves what a call is estimated to use, before every call. A reservation
    /// that a crash leaves unsettled counts in full. Waits for a disk for a bounded
    /// time.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`](crate::model::ErrorKind::Budget), saying which budget is
    /// spent or reserved, and when it opens again.
    fn reserve<'a>(
        &'a self,
        agent: &'a AgentConfig,
        estimate: Usage,
    ) -> BoxFuture<'a, Result<Reservation, Error>>;

    /// Books a call in place of its reservation, and says what it cost; waits for
    /// nothing. Called for every call that a provider began to answer, also when it
    /// was cancelled or cut.
    fn record(&self, reservation: Reservation, spent: Spent<'_>) -> Cost;

    /// Gives back the reservation of a call that no provider answered.
    fn release(&self, _agent: &AgentConfig, _reservation: Reservation) {}
}

/// Part of a budget, set aside for one call; the default for none.
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
