//! `config/approvals.toml`: calls that an owner approved permanently (GATE-4).
//!
//! Invariants: memory equals the file; a file that cannot be read is never
//! overwritten.

use crate::compose::Report;
use crate::error::Error;
use crate::skills::Skills;
use crabtalk_config::{read_limited, write_atomic};
use crabtalk_domain::tool::Invocation;
use crabtalk_domain::{BoxFuture, PermissionRule};
use crabtalk_gate::Approval;
use crabtalk_gate::approvals;
use crabtalk_runtime::ApprovalBook;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Largest file; thousands of approvals fit.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct ApprovalFile {
    path: PathBuf,
    skills: Arc<Skills>,
    now: arc_swap::ArcSwap<Vec<Approval>>,
    /// Locked during a change of the file.
    changing: Mutex<()>,
}

impl ApprovalFile {
    /// Takes the file's approvals from the start. A broken file approves nothing, stays
    /// unchanged and is reported.
    pub(crate) fn new(
        path: PathBuf,
        read: Result<Vec<Approval>, String>,
        skills: Arc<Skills>,
        report: &mut Report,
    ) -> Self {
        let now = read.unwrap_or_else(|error| {
            report.errors.push(error);
            report.kept.push("no permanent approval is in force".into());
            Vec::new()
        });
        Self {
            path,
            skills,
            now: arc_swap::ArcSwap::from_pointee(now),
            changing: Mutex::new(()),
        }
    }

    /// Reads the file again. A broken file changes nothing and is reported.
    pub(crate) async fn reload(&self, report: &mut Report) {
        let _changing = self.changing.lock().await;
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        match read.map_err(|e| e.to_string()).flatten() {
            Ok(now) => self.now.store(Arc::new(now)),
            Err(error) => {
                report.errors.push(error);
                report
                    .kept
                    .push("permanent approvals stay unchanged".into());
            }
        }
    }

    /// The approvals in force, in the file's order.
    pub(crate) fn listed(&self) -> Arc<Vec<Approval>> {
        self.now.load_full()
    }

    /// Removes the approval at `index`, from 1, if it allows `exact`.
    pub(crate) async fn remove(
        &self,
        index: u32,
        exact: Option<String>,
    ) -> Result<Approval, Error> {
        self.change(move |all| {
            let none = || Error::NotFound(format!("approval {index} does not exist; list them"));
            let at = (index as usize).checked_sub(1).ok_or_else(none)?;
            let found = all.get(at).ok_or_else(none)?;
            if exact.is_some_and(|exact| exact != found.exact) {
                return Err(Error::Conflict(format!(
                    "approval {index} has changed since it was listed; list them again"
                )));
            }
            approvals::remove(all, at).map_err(|_| none())
        })
        .await
    }

    /// Changes the file and the approvals in force.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Vec<Approval>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _changing = self.changing.lock().await;
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut all = read(&path).map_err(Error::Failed)?;
            let changed = change(&mut all)?;
            let text = approvals::render(&all).map_err(|e| Error::Failed(e.to_string()))?;
            write_atomic(&path, &text)?;
            Ok::<_, Error>((changed, all))
        });
        let (changed, all) = written.await??;
        self.now.store(Arc::new(all));
        Ok(changed)
    }
}

/// Reads the file. Blocks.
pub(crate) fn read(path: &std::path::Path) -> Result<Vec<Approval>, String> {
    let text = read_limited(path, MAX_BYTES)
        .map_err(|e| e.with_causes())?
        .unwrap_or_default();
    approvals::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

impl ApprovalBook for ApprovalFile {
    fn list(&self) -> Arc<Vec<Approval>> {
        self.now.load_full()
    }

    fn add(&self, approval: Approval) -> BoxFuture<'_, Result<(), String>> {
        let added = self.change(|all| {
            if !all.iter().any(|known| known.is_same(&approval)) {
                all.push(approval);
            }
            Ok(())
        });
        Box::pin(async { added.await.map_err(|error| error.to_string()) })
    }

    fn preapproved<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Vec<PermissionRule>> {
        Box::pin(async move { self.skills.preapproved(call).await })
    }
}
