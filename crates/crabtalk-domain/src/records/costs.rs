//! The cost of model calls.

use super::Error;
use crate::{BoxFuture, CallTotal};
use jiff::civil::Date;

/// Number of days that are stored: a year and a month. Only days with calls count, so
/// that a wrong clock removes at most the oldest one.
pub const COST_DAYS: u32 = 400;

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CostOf {
    /// A call that was made.
    #[default]
    Call,
    /// A call in progress, with its estimate. Counts once the life of its daemon is over.
    Reservation(ReservedCost),
    /// A run that ended with this code; other rows have its calls.
    Run(u32),
}

/// Identifies a reservation by the daemon's life and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedCost {
    /// Start of the daemon's life, in microseconds.
    pub life: i64,
    /// The number of the reservation.
    pub number: u64,
}

/// One row of the ledger.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostRow {
    /// The local day to which the row belongs.
    pub day: Date,
    /// RFC 3339 instant of the row.
    pub at: String,
    /// The kind of the row.
    pub of: CostOf,
    /// The agent that made the call, whose budget pays.
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
    /// Totals by day, newest first.
    pub days: Vec<(Date, CallTotal)>,
    /// Totals by the agent that made the calls.
    pub agents: Vec<(String, CallTotal)>,
    /// Totals by provider and model.
    pub models: Vec<((String, String), CallTotal)>,
    /// Totals by agent and sender of the conversation.
    pub conversations: Vec<((String, String), CallTotal)>,
    /// Ended runs, newest first.
    pub runs: Vec<CostRow>,
}

/// Stores the cost of model calls. Operations take effect in the order of the calls, also
/// if a future is dropped.
pub trait Costs: Send + Sync {
    /// Adds a row; it replaces the reservation, if one is given.
    fn add(
        &self,
        row: CostRow,
        settles: Option<ReservedCost>,
    ) -> BoxFuture<'static, Result<(), Error>>;

    /// Removes the reservation of a call that was not made.
    fn release(&self, reserved: ReservedCost) -> BoxFuture<'static, Result<(), Error>>;

    /// Totals of a day by agent, without the reservations of this life. Removes the oldest
    /// days beyond [`COST_DAYS`].
    fn of_day(
        &self,
        day: Date,
        life: i64,
    ) -> BoxFuture<'static, Result<Vec<(String, CallTotal)>, Error>>;

    /// Totals of a range of days, without the reservations of this life, with at most
    /// `limit` rows of each kind except days.
    fn report(
        &self,
        from: Date,
        to: Date,
        life: i64,
        limit: u32,
    ) -> BoxFuture<'static, Result<CostReport, Error>>;
}
