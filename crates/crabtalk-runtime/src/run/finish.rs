//! However a run stops, what it leaves is valid and its readers are told.

use super::repeats::REPEATS;
use super::{Run, Stop};
use crate::error::{storage_code, with_source};
use crate::events::RunLog;
use crate::history::CANCELLED;
use crate::registry::Shared;
use crabtalk_domain::model::{Error, ErrorKind};
use crabtalk_domain::storage::{self, MetaRecord, Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentEvent, Cost, End, Ended, Message, Usage};
use std::sync::Arc;

impl Stop {
    pub(super) fn filtered(model: &str) -> Self {
        let message = format!("{model}'s content filter stopped the answer; rephrase the request");
        Self::Model(Error::new(ErrorKind::Filtered, message))
    }

    /// Code and message of the End (WIRE-3).
    fn end(&self) -> (u32, String) {
        match self {
            Self::Model(error) => (error.kind.code(), error.message.clone()),
            Self::Storage(error) => (storage_code(error), with_source(error)),
            Self::MaxIterations(limit) => (
                508,
                format!(
                    "the run took {limit} steps, the limit (max_iterations); say \"go on\" to continue"
                ),
            ),
            Self::OnlyToolCalls(guest) => (
                422,
                format!("the guest {guest} wanted to call a tool, which guests cannot"),
            ),
            Self::Repeated(tool) => (
                422,
                format!(
                    "the agent called {tool} {REPEATS} times with the same arguments and got the same result each time; tell it what to do differently"
                ),
            ),
            Self::Empty(model) => (502, format!("{model} gave an empty answer; try again")),
            Self::Cancelled => (499, "cancelled".into()),
            Self::ShuttingDown => (503, "the daemon is shutting down".into()),
        }
    }
}

/// Takes a run out of flight; whoever attaches from now on reads how it ended.
pub(super) fn release(shared: &Shared, log: &Arc<RunLog>) {
    let mut live = shared.live();
    live.current = None;
    live.steers = None;
    live.last = Some(Arc::clone(log));
}

impl Run<'_> {
    /// Closes what is open, records the end, and tells it. Returns whether
    /// memory and disk are known to agree.
    pub(super) async fn finish(mut self, outcome: Result<(), Stop>) -> bool {
        let (mut code, mut message) = match &outcome {
            Ok(()) => (0, String::new()),
            Err(stop) => stop.end(),
        };
        let mut failure = match outcome {
            Err(Stop::Storage(error)) => Some(error),
            Ok(()) | Err(_) => None,
        };
        if failure.is_none()
            && let Err(error) = self.close(code).await
        {
            failure = Some(error);
        }
        if let Some(error) = &failure {
            (code, message) = (storage_code(error), with_source(error));
            tracing::warn!(conversation = %self.shared.key, run = self.number, %error, "the log failed");
        }
        let log = self
            .shared
            .live()
            .current
            .as_ref()
            .map(|c| Arc::clone(&c.log));
        if let Some(log) = &log {
            release(self.shared, log);
        }
        let total = self.tally.total();
        self.rt.ledger.close(Ended {
            key: &self.request.key,
            run: self.number,
            code,
            total: &total,
        });
        self.log_line(code, &total.cost);
        let usage = (self.usage != Usage::default()).then_some(self.usage);
        self.publisher.publish(AgentEvent::End(End {
            agent: self.speaker.name.to_string(),
            error: message,
            code,
            provider: self.provider,
            model: self.model,
            usage,
            cost: total.cost,
        }));
        failure.is_none()
    }

    /// Gives every open call a result, keeps steers that came too late for a
    /// step, and writes the end.
    async fn close(&mut self, code: u32) -> Result<(), storage::Error> {
        let now = self.rt.now();
        let mut records = Vec::new();
        if let Some(calls) = self.calls.as_mut() {
            for (call, result) in calls.calls.iter().zip(calls.results.iter_mut()) {
                if result.is_none() {
                    let mut synthetic = Message::tool(call.id.clone(), CANCELLED, true);
                    synthetic.at.clone_from(&now);
                    let synthetic = Arc::new(synthetic);
                    records.push(Record::Message(Arc::clone(&synthetic)));
                    *result = Some(synthetic);
                }
            }
        }
        let late = self.shared.live().steers.take().unwrap_or_default();
        let late: Vec<Arc<Message>> = late
            .into_iter()
            .map(|content| {
                let mut message = Message::user(content);
                message.at.clone_from(&now);
                Arc::new(message)
            })
            .collect();
        records.extend(late.iter().cloned().map(Record::Message));
        records.push(self.uptime());
        let end = RunRecord {
            id: self.number,
            phase: RunPhase::End,
            origin: String::new(),
            request_id: String::new(),
            guest: String::new(),
            cwd: String::new(),
            code,
            at: now,
        };
        records.push(Record::Run(end.clone()));
        let position = self.shared.append(&records)?;
        self.open.last_end = Some(end);
        self.close_calls();
        for message in late {
            self.announcer
                .next(vec![AgentEvent::Steered(message.content.clone())]);
            self.open.push(self.shared, message);
        }
        let synced = self.shared.synced_at_end(position);
        self.announcer.after(synced, Vec::new());
        self.announcer.flush().await
    }

    fn uptime(&self) -> Record {
        // Written even when it has not grown: lists read state from the end.
        let secs = (self.started.elapsed().as_millis() as u64 + 500) / 1000;
        let mut live = self.shared.live();
        live.meta.uptime_secs += secs;
        let uptime_secs = Some(live.meta.uptime_secs);
        Record::Meta(MetaRecord {
            uptime_secs,
            ..MetaRecord::default()
        })
    }

    /// OPS-3: one line per run.
    fn log_line(&self, code: u32, cost: &Cost) {
        tracing::info!(
            agent = %self.request.key.agent,
            sender = %self.request.key.sender,
            speaker = %self.speaker.name,
            run = self.number,
            origin = %self.request.origin,
            model = %self.model,
            prompt_tokens = self.usage.prompt_tokens,
            completion_tokens = self.usage.completion_tokens,
            money = cost.money,
            duration_ms = self.started.elapsed().as_millis() as u64,
            code,
            "run"
        );
    }
}
