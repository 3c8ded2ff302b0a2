//! Reserves model calls before they are made and books them afterwards (MODEL-7).
//!
//! Invariants: every call has a reservation; every answer that began is booked once, also
//! when it is cancelled or cut off, with an estimate if the provider reports no usage.

use crate::inner::Inner;
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Request, Response};
use crabtalk_domain::{
    AgentConfig, CallTotal, ConversationKey, Cost, History, Ledger, Reservation, Spent, Usage,
    estimate_tokens,
};
use std::sync::{Arc, Mutex, PoisonError};

/// Tokens to reserve for an answer: longer than most.
const RESERVED_COMPLETION: u64 = 2_048;

/// The total of a run's model calls so far.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<CallTotal>);

impl Tally {
    fn add(&self, usage: &Usage, cost: Cost) {
        let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        total.add(usage, cost);
    }

    pub(crate) fn total(&self) -> CallTotal {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The payer of a call.
#[derive(Clone, Copy)]
pub(crate) struct Account<'a> {
    pub(crate) ledger: &'a dyn Ledger,
    pub(crate) key: &'a ConversationKey,
    pub(crate) run: u64,
    pub(crate) agent: &'a AgentConfig,
    pub(crate) tally: &'a Tally,
}

impl<'a> Account<'a> {
    /// Begins a call, if the ledger allows it.
    pub(crate) async fn open(self, request: &Request) -> Result<Bill<'a>, Error> {
        let estimate = Usage {
            prompt_tokens: request.history.estimated_tokens() + estimate_tokens(&request.system),
            completion_tokens: RESERVED_COMPLETION,
            ..Usage::default()
        };
        let reservation = self.ledger.reserve(self.agent, estimate).await?;
        Ok(Bill {
            account: self,
            reservation: Some(reservation),
            system: Arc::clone(&request.system),
            history: request.history.clone(),
            response: Response::default(),
        })
    }
}

/// An answer that is being read; it is booked when it is taken or dropped.
pub(crate) struct Bill<'a> {
    account: Account<'a>,
    /// `None` once the call is booked or released.
    reservation: Option<Reservation>,
    system: Arc<str>,
    history: History,
    response: Response,
}

impl Bill<'_> {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.response.push(chunk);
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.response.stop.is_some()
    }

    pub(crate) fn into_response(mut self) -> Response {
        self.book();
        std::mem::take(&mut self.response)
    }

    fn book(&mut self) {
        let Some(reservation) = self.reservation.take() else {
            return;
        };
        let Response {
            provider, model, ..
        } = &self.response;
        // No provider has answered, so nothing was spent.
        if provider.is_empty() {
            let account = &self.account;
            return account.ledger.release(account.agent, reservation);
        }
        let usage = self.response.usage.unwrap_or_else(|| self.estimate());
        let spent = Spent {
            key: self.account.key,
            run: self.account.run,
            agent: self.account.agent,
            provider,
            model,
            usage: &usage,
        };
        let cost = self.account.ledger.record(reservation, spent);
        self.account.tally.add(&usage, cost);
    }

    /// Estimates usage for providers that report none, so that budgets hold.
    fn estimate(&self) -> Usage {
        let thinking = self.response.thinking.iter().map(|t| t.text.as_str());
        let calls = self
            .response
            .tool_calls
            .iter()
            .map(|c| c.arguments.as_str());
        let said = thinking
            .chain(calls)
            .chain([self.response.content.as_str()]);
        Usage {
            prompt_tokens: self.history.estimated_tokens() + estimate_tokens(&self.system),
            completion_tokens: said.map(estimate_tokens).sum(),
            ..Usage::default()
        }
    }
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        self.book();
    }
}

/// Calls the model and returns the whole answer.
pub(crate) async fn send(
    rt: &Inner,
    account: Account<'_>,
    request: Request,
) -> Result<Response, Error> {
    let mut bill = account.open(&request).await?;
    let mut stream = rt.listen(request);
    while let Some(chunk) = stream.next().await {
        bill.push(chunk?);
        if bill.is_complete() {
            return Ok(bill.into_response());
        }
    }
    let message = "the model's answer ended early";
    Err(Error::new(ErrorKind::Malformed, message))
}
