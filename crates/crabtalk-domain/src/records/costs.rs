//! Costs of model calls.

use super::Error;
use crate::{BoxFuture, CallTotal};
use jiff::civil::Date;

/// Days with calls that are kept: a year and a month. They are counted, not dated, so
/// that a wrong clock removes at most the oldest one.
pub const COST_DAYS: u32 = 400;

/// The subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CostOf {
    /// A call that was made.
    #[default]
    Call,
    /// A call under way, with its estimate. Counts once its life is over.
    Reservation(ReservedCost),
    /// A run that ended with a code, whose calls other rows count.
    Run(u32),
}

/// Identifies a reservation by the life of the daemon that made it and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedCost {
    /// When the daemon began, in microseconds.
    pub life: i64,
    /// The number of the reservation.
    pub number: u64,
}

/// One row of the ledger.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostRow {
    /// The local day that it counts for.
    pub day: Date,
    /// When, RFC 3339.
    pub at: String,
    /// Its subject.
    pub of: CostOf,
    /// The agent that spoke, whose budget pays.
    pub speaker: String,
    /// The agent of the conversation.
    pub agent: String,
    /// The sender of the conversation.
    pub sender: String,
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The number of the run.
    pub run: u64,
    /// Its calls, tokens and money.
    pub total: CallTotal,
}

/// Sums over some days, the costliest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostReport {
    /// By day, newest first.
    pub days: Vec<(Date, CallTotal)>,
    /// By the agent that spoke.
    pub agents: Vec<(String, CallTotal)>,
    /// By provider and model.
    pub models: Vec<((String, String), CallTotal)>,
    /// By agent and sender.
    pub conversations: Vec<((String, String), CallTotal)>,
    /// Runs that ended, newest first.
    pub runs: Vec<CostRow>,
}

/// Keeps the cost of model calls. Operations take effect in the order in which they
/// are called, also where a future is dropped.
pub trait Costs: Send + Sync {
    /// Adds a row, in place of a reservation if one is named.
    fn add(
        &self,
        row: CostRow,
        settles: Option<ReservedCost>,
    ) -> BoxFuture<'static, Result<(), Error>>;

    /// Removes the reservation of a call that was not made.
    fn release(&self, reserved: ReservedCost) -> BoxFuture<'static, Result<(), Error>>;

    /// Sums of a day by agent, without the reservations of this life. Removes the
    /// oldest days beyond [`COST_DAYS`].
    fn of_day(
        &self,
        day: Date,
        life: i64,
    ) -> BoxFuture<'static, Result<Vec<(String, CallTotal)>, Error>>;

    /// Sums from one day to another, likewise, with at most `limit` rows of each kind
    /// but days.
    fn report(
        &self,
        from: Date,
        to: Date,
        life: i64,
        limit: u32,
    ) -> BoxFuture<'static, Result<CostReport, Error>>;
}
