//! The files that a daemon needs before it serves anybody, read in one go
//! beside everything else that a start does.
//!
//! Invariants: what a crash left half written is gone before anything is read;
//! what commands did to the configuration is undone before anything is read of
//! it; a disk that does not answer is told, and not waited for without end.

use crate::approvals;
use crate::compose::{Composed, InForce, compose, within_patience};
use crate::leftovers;
use anyhow::Context;
use crabtalk_config::Home;
use crabtalk_gate::Approval;
use std::panic::{self, AssertUnwindSafe};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub(crate) struct Found {
    pub(crate) composed: Composed,
    /// What is approved for good, or why nobody knows.
    pub(crate) approvals: Result<Vec<Approval>, String>,
}

/// A look at the files that goes on in the pool's first thread.
pub(crate) struct FirstLook(JoinHandle<Result<Found, String>>);

impl FirstLook {
    /// Begins to look.
    ///
    /// # Errors
    /// When no thread can be started: then nothing else could be either.
    pub(crate) fn begin(home: &Home, runtime: &Runtime) -> anyhow::Result<Self> {
        let home = home.clone();
        let begin = move || runtime.spawn_blocking(move || look(&home));
        // The pool panics without a thread, and never does so again once it has one.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| ()));
        let begun = panic::catch_unwind(AssertUnwindSafe(begin)).ok();
        panic::set_hook(hook);
        begun
            .map(Self)
            .context("cannot start a thread; raise the user's limit of processes (`ulimit -u`)")
    }

    /// What was found.
    ///
    /// # Errors
    /// When the configuration cannot be taken, or the disk does not answer.
    pub(crate) async fn found(self, home: &Home) -> anyhow::Result<Found> {
        let found = within_patience(home, self.0).await;
        let found = found.map_err(anyhow::Error::msg)?;
        let found = found.context("reading the configuration panicked")?;
        found.map_err(anyhow::Error::msg)
    }
}

fn look(home: &Home) -> Result<Found, String> {
    leftovers::sweep(home);
    let composed = compose(home, &InForce::default())?;
    Ok(Found {
        composed,
        approvals: approvals::read(&home.approvals_file()),
    })
}
