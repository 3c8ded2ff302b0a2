//! What a node does beside answering clients.

use super::Node;
use super::reload::tell_of_skills;
use crate::compose::Report;
use crate::{leftovers, sweep};
use crabtalk_domain::{Clock, SystemClock};
use crabtalk_files::local_zone;
use std::time::{Duration, SystemTime};

/// Until interrupted runs are closed: the first requests go first.
const BEFORE_CLOSING: Duration = Duration::from_secs(1);

impl Node {
    /// Carries on the runs that a crash cut off, or closes them where that is not wanted
    /// (STORE-7): an agent may be waiting for their end. Reads the end of each log.
    pub(crate) async fn settle_interrupted_runs(&self) {
        if !self.runtime.catalog().resume {
            tokio::time::sleep(BEFORE_CLOSING).await;
        }
        let listed = self.runtime.storage().list(None, None).await;
        let listed = listed.unwrap_or_else(|error| {
            tracing::warn!(%error, "interrupted runs wait until their conversations are used");
            Vec::new()
        });
        for summary in listed {
            if summary.superseded || !summary.has_open_run {
                continue;
            }
            if let Err(error) = self.runtime.resume(&summary.key) {
                tracing::warn!(conversation = %summary.key, %error, "cannot settle an interrupted run");
            }
        }
    }

    /// Says to the log what there is to say of skills, as a reload does. A look
    /// at all of them takes a while, and nobody waits for it.
    pub(crate) async fn tell_of_skills(&self) {
        let mut report = Report::default();
        tell_of_skills(&self.skills, &mut report).await;
        report.log();
    }

    /// Sweeps what a crash left in indexes once, and the trash and old outputs
    /// now and every day. Never resolves.
    pub(crate) async fn sweep(&self) {
        let (home, started) = (
            self.home.clone(),
            SystemTime::now() - self.started.elapsed(),
        );
        let left = move || leftovers::sweep_the_many(&home, started);
        if let Err(error) = tokio::task::spawn_blocking(left).await {
            tracing::warn!(%error, "what a crash left half written stays for now");
        }
        loop {
            let (home, days) = (self.home.clone(), self.config().storage.trash_days);
            let today = SystemClock.now().to_zoned(local_zone()).date();
            let sweep = move || sweep::sweep(&home, today, days.into());
            if let Err(error) = tokio::task::spawn_blocking(sweep).await {
                tracing::warn!(%error, "the trash was not swept");
            }
            tokio::time::sleep(sweep::BETWEEN).await;
        }
    }
}
