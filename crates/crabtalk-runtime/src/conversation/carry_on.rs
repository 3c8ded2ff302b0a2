//! Resumes interrupted runs (STORE-7), and returns the outcome of runs.

use super::Conversation;
use crate::Error;
use crate::command::Job;
use crate::open::{CUT_OFF, interrupted};
use crate::request::RunRequest;
use crabtalk_domain::storage::{MetaRecord, Record, RunRecord};
use crabtalk_domain::{Origin, RunOutcome};
use std::path::PathBuf;
use std::sync::Arc;

impl Conversation {
    pub(super) fn has_resumable(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.resumable.is_some())
    }

    /// Resumes interrupted work before the next command. A resumed run that could not
    /// write its end is resumed again, up to the usual limit.
    pub(super) async fn carry_on(&mut self) -> Result<(), Error> {
        self.ensure_open(None).await?;
        while self.has_resumable() {
            self.resume().await?;
            // The resumed run may have dropped the memory.
            self.ensure_open(None).await?;
        }
        Ok(())
    }

    /// Resumes the run that a crash interrupted, if there is one (STORE-7). The attempt is
    /// recorded before it begins, so that a run that crashes the daemon each time is not
    /// resumed forever.
    async fn resume(&mut self) -> Result<(), Error> {
        let resumed = self.try_to_resume().await;
        if resumed.is_err() {
            // In the log the run is still open; the next reader tries
            // again.
            self.forget();
        }
        resumed
    }

    async fn try_to_resume(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.as_mut() else {
            return Ok(());
        };
        let Some(mut cut) = open.resumable.take() else {
            return Ok(());
        };
        cut.tries += 1;
        self.shared
            .append(&[Record::Meta(MetaRecord {
                last_run: Some(open.last_run),
                open_run: Some(cut.clone()),
                ..MetaRecord::default()
            })])
            .await?;
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let Some(origin) = Origin::parse(&cut.origin) else {
            // A run is never resumed with more authority than it had.
            let unknown = format!("the origin {:?} is unknown", cut.origin);
            return self.give_up(cut, &Error::BadRequest(unknown)).await;
        };
        let request = RunRequest {
            guest: text(&cut.guest),
            cwd: text(&cut.cwd).map(PathBuf::from),
            mode: cut.mode,
            request_id: text(&cut.request_id),
            origin,
            ..RunRequest::new((*self.shared.key).clone(), "")
        };
        tracing::info!(conversation = %self.shared.key, run = cut.id, tries = cut.tries, "resuming an interrupted run");
        let job = Box::new(Job::new(request, Arc::default()));
        let log = Arc::clone(&job.log);
        self.shared.take_up(&job);
        self.execute(job, Some(Box::new(cut.clone()))).await;
        match log.refusal() {
            Some(error) if !self.rt.shutdown.is_cancelled() => self.give_up(cut, &error).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Closes a run that cannot be resumed.
    async fn give_up(&mut self, cut: RunRecord, error: &Error) -> Result<(), Error> {
        let Some(open) = self.open.as_mut() else {
            return Ok(());
        };
        let reason = format!("{CUT_OFF}, and the run could not be resumed: {error}");
        let closed = interrupted(cut, reason, self.rt.now());
        self.shared.append(&[Record::Run(closed.clone())]).await?;
        open.keep_late_steers(&self.rt, &self.shared).await?;
        open.last_end = Some(closed.clone());
        open.interrupted = Some(closed.clone());
        self.tell_cut_off(Some(closed)).await;
        Ok(())
    }

    pub(super) async fn last_end(&mut self) -> Result<RunRecord, Error> {
        self.ensure_open(None).await?;
        let nothing = || Error::NothingRunning((*self.shared.key).clone());
        let open = self.open.as_ref().ok_or_else(nothing)?;
        if let Some(end) = &open.last_end {
            return Ok(end.clone());
        }
        // The end may be before a marker.
        let last = self.rt.storage.trace(&self.shared.key, open.last_run);
        let last = last.await?.and_then(|trace| trace.end);
        last.ok_or_else(nothing)
    }

    pub(super) async fn outcome(&mut self, request_id: &str) -> Result<Option<RunOutcome>, Error> {
        match self.carry_on().await {
            Err(Error::NoConversation(_)) => return Ok(None),
            carried_on => carried_on?,
        }
        let open = self.open.as_ref().ok_or(Error::ShuttingDown)?;
        let Some(run) = open.run_of(request_id) else {
            return Ok(None);
        };
        let trace = self.rt.storage.trace(&self.shared.key, run).await?;
        let end = trace.and_then(|trace| trace.end);
        // A log repaired by hand may lack the end.
        let end = end.unwrap_or_else(|| {
            let run = RunRecord {
                id: run,
                ..RunRecord::default()
            };
            interrupted(run, CUT_OFF.into(), String::new())
        });
        Ok(Some(RunOutcome::of_record(&end)))
    }
}
