//! Compacts during a run (RUN-4).

use super::{Run, Stop};
use crate::compaction::{self, Plan};
use crate::{Error, framing, router};
use std::sync::Arc;

impl Run<'_> {
    /// Compacts if the history exceeds its budget. `reported` is the provider's token count
    /// for the last step.
    pub(super) async fn make_room(&mut self, reported: u64) -> Result<(), Stop> {
        let estimate = self.open.history.estimated_tokens();
        if !self.budget.is_exceeded(estimate, reported) {
            return Ok(());
        }
        if !Box::pin(self.compact()).await? {
            self.budget.back_off(estimate, reported);
        }
        Ok(())
    }

    /// Compacts; returns `false` if that failed and the history is unchanged.
    pub(super) async fn compact(&mut self) -> Result<bool, Stop> {
        self.announcer.flush().await?;
        let answered =
            self.open.history.last().is_some_and(|m| {
                m.role == crabtalk_domain::Role::Assistant && m.tool_calls.is_empty()
            });
        let plan = if answered {
            Plan::all()
        } else {
            Plan::in_run(&self.open.history, self.budget.keep_tokens())
        };
        let primary = Arc::clone(&self.primary);
        let name = self.request.key.agent.as_str();
        let system = framing::system_prompt(&primary.prompt, None, name, self.open.has_guests);
        let job = compaction::Job {
            agent: &primary,
            system: system.into(),
            tools: Arc::clone(
                &router::tools(self.rt, &primary, &self.rt.catalog.load_full()).offered,
            ),
            focus: None,
            min_replaced: 0,
            tally: &self.tally,
        };
        let started = Some(self.started_as.clone());
        let done = compaction::compact(self.rt, self.shared, self.open, &job, plan, started).await;
        self.publisher.publish(compaction::event(&done));
        match done {
            Ok(_) => {
                // The injected context now follows the summary.
                self.injected_at = 1;
                self.context = self.shared.live().meta.context;
                Ok(true)
            }
            Err(Error::Storage(error)) => Err(error.into()),
            Err(error) => {
                tracing::warn!(conversation = %self.shared.key, %error, "cannot compact the history");
                Ok(false)
            }
        }
    }
}
