//! `config/approvals.toml`: calls that an owner approved for good (GATE-4).
//!
//! Invariant: what is in memory is on disk; a file that cannot be read is
//! never overwritten.

use crate::skills::Skills;
use crabtalk_config::{read_limited, write_atomic};
use crabtalk_domain::tool::Invocation;
use crabtalk_domain::{BoxFuture, PermissionRule};
use crabtalk_runtime::ApprovalBook;
use crabtalk_runtime::gate::{Approval, approvals};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Largest file; thousands of approvals fit.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct ApprovalFile {
    path: PathBuf,
    skills: Arc<Skills>,
    now: arc_swap::ArcSwap<Vec<Approval>>,
    /// Held over one change of the file.
    changing: Mutex<()>,
}

impl ApprovalFile {
    pub(crate) fn open(path: PathBuf, skills: Arc<Skills>) -> Result<Self, String> {
        let now = read(&path)?;
        Ok(Self {
            path,
            skills,
            now: arc_swap::ArcSwap::from_pointee(now),
            changing: Mutex::new(()),
        })
    }

    /// Reads the file again, for edits by hand.
    pub(crate) fn reload(&self) -> Result<(), String> {
        self.now.store(Arc::new(read(&self.path)?));
        Ok(())
    }
}

fn read(path: &std::path::Path) -> Result<Vec<Approval>, String> {
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
        Box::pin(async move {
            let _changing = self.changing.lock().await;
            let path = self.path.clone();
            let written = tokio::task::spawn_blocking(move || {
                let mut all = read(&path)?;
                all.push(approval);
                let text = approvals::render(&all).map_err(|e| e.to_string())?;
                write_atomic(&path, &text).map_err(|e| e.with_causes())?;
                Ok::<_, String>(all)
            });
            let all = written.await.map_err(|e| e.to_string())??;
            self.now.store(Arc::new(all));
            Ok(())
        })
    }

    fn preapproved<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Vec<PermissionRule>> {
        Box::pin(self.skills.preapproved(call))
    }
}
