//! Executes the calls of a step in parallel (RUN-1).

use super::{Run, Stop};
use crate::router::{self, CallContext, Effect, Outcome, Pauses, Toolset};
use crabtalk_domain::storage::{MetaRecord, Record};
use crabtalk_domain::tool::ToolOutput;
use crabtalk_domain::{AgentEvent, Message};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

impl Run<'_> {
    /// Results are announced as they arrive and enter the history in the order of their
    /// calls.
    pub(super) async fn run_tools(&mut self, tools: Arc<Toolset>) -> Result<(), Stop> {
        let calls = self
            .calls
            .as_ref()
            .map(|c| c.calls.clone())
            .unwrap_or_default();
        let context = Arc::new(CallContext {
            rt: Arc::clone(self.rt),
            key: self.request.key.clone(),
            origin: self.request.origin.clone(),
            run: self.number,
            agent: Arc::clone(&self.speaker),
            cwd: self.cwd.clone(),
            standing: self.standing,
            mode: self.mode,
            audience: Arc::clone(&self.audience),
            waiting: Mutex::default(),
            tools,
            pauses: Pauses::default(),
        });
        let mut running: FuturesUnordered<_> = calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| {
                let context = Arc::clone(&context);
                async move {
                    let started = Instant::now();
                    let outcome = router::execute(&context, &call).await;
                    let waited = context.pauses.of(&call.id);
                    (index, outcome, started.elapsed().saturating_sub(waited))
                }
            })
            .collect();
        loop {
            tokio::select! {
                biased;
                flushed = self.announcer.flush(), if !self.announcer.is_empty() => flushed?,
                Some((index, outcome, took)) = running.next() => {
                    self.keep_result(index, outcome, took).await?;
                }
                else => break,
            }
        }
        let repeated = self.calls.as_ref().and_then(|c| self.repeats.find(c));
        self.close_calls();
        self.announcer.next(vec![AgentEvent::ToolsComplete]);
        repeated.map_or(Ok(()), |tool| Err(Stop::Repeated(tool)))
    }

    async fn keep_result(
        &mut self,
        index: usize,
        outcome: Outcome,
        took: Duration,
    ) -> Result<(), Stop> {
        let Outcome { output, effect } = outcome;
        let output = match effect {
            Some(effect) => self.apply(effect, output).await,
            None => output,
        };
        let Some(calls) = self.calls.as_mut() else {
            return Ok(());
        };
        let call_id = calls.calls[index].id.clone();
        let mut message = Message::result(call_id.clone(), output);
        message.at = self.rt.now();
        let message = Arc::new(message);
        let position = self
            .shared
            .append(&[Record::Message(Arc::clone(&message))])
            .await?;
        let event = AgentEvent::ToolResult {
            call_id,
            output: message.content.clone(),
            duration_ms: took.as_millis() as u64,
            is_error: message.is_error,
            images: message.images.clone(),
        };
        calls.results[index] = Some(message);
        self.announcer
            .after(self.shared.synced(position), vec![event]);
        Ok(())
    }

    /// Applies the change that a call requests.
    async fn apply(&mut self, effect: Effect, output: ToolOutput) -> ToolOutput {
        let Effect::Title(title) = effect;
        let record = MetaRecord {
            title: Some(title.clone()),
            ..MetaRecord::default()
        };
        match self.shared.append(&[Record::Meta(record)]).await {
            Ok(_) => {
                self.shared.live().meta.title = title;
                output
            }
            Err(error) => ToolOutput::error(crate::error::with_source(&error)),
        }
    }

    /// Moves the step's results into the history, in the order of the calls.
    pub(super) fn close_calls(&mut self) {
        let Some(calls) = self.calls.take() else {
            return;
        };
        for result in calls.results.into_iter().flatten() {
            self.open.push(self.shared, result);
        }
    }
}
