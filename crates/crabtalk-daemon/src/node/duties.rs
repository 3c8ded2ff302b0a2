//! Background work of a node.

use super::Node;
use super::reload::report_skills;
use crate::compose::Report;
use crate::sweep;
use crabtalk_domain::{Clock, SystemClock};
use crabtalk_files::local_zone;
use std::time::Duration;

/// Delay before interrupted runs are settled, so that the first requests are served first.
const BEFORE_CLOSING: Duration = Duration::from_secs(1);

impl Node {
    /// Resumes interrupted runs, or closes them if `resume` is off (STORE-7), since an agent
    /// may wait for their end. Reads the end of each log.
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

    /// Logs findings about skills, in the format of a reload.
    pub(crate) async fn report_skills(&self) {
        let mut report = Report::default();
        report_skills(&self.skills, &mut report).await;
        report.log();
    }

    /// Cleans the trash and old outputs every day. Never resolves.
    pub(crate) async fn sweep(&self) {
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
