//! The files that a daemon needs before it serves anybody, read in one go
//! beside everything else that a start does.
//!
//! Invariants: what a crash left half written is gone before anything is read;
//! what commands did to the configuration is undone before anything is read of
//! it; a disk that does not answer is told, and not waited for without end.

use crate::accepted::Accepted;
use crate::approvals;
use crate::compose::{Composed, InForce, compose, within_patience};
use crate::leftovers;
use anyhow::Context;
use crabtalk_config::Home;
use crabtalk_runtime::gate::Approval;
use std::thread::{Builder, JoinHandle};
use tokio::sync::oneshot;

pub(crate) struct Found {
    pub(crate) accepted: Accepted,
    pub(crate) composed: Composed,
    /// What is approved for good, or why nobody knows.
    pub(crate) approvals: Result<Vec<Approval>, String>,
}

/// A look at the files that goes on in a thread of its own.
pub(crate) struct FirstLook {
    thread: JoinHandle<()>,
    found: oneshot::Receiver<Result<Found, String>>,
}

impl FirstLook {
    /// Begins to look.
    ///
    /// # Errors
    /// When no thread can be started: then nothing else could be either.
    pub(crate) fn begin(home: &Home) -> anyhow::Result<Self> {
        let home = home.clone();
        let (tell, found) = oneshot::channel();
        let thread = Builder::new()
            .name("first-look".into())
            .spawn(move || {
                // Whoever waited may have given up.
                let _ = tell.send(look(&home));
            })
            .context("cannot start a thread; raise the user's limit of processes (`ulimit -u`)")?;
        Ok(Self { thread, found })
    }

    /// What was found.
    ///
    /// # Errors
    /// When the configuration cannot be taken, or the disk does not answer.
    pub(crate) async fn found(&mut self, home: &Home) -> anyhow::Result<Found> {
        let found = within_patience(home, &mut self.found).await;
        let found = found.map_err(anyhow::Error::msg)?;
        // Whoever reads tells, unless it panics.
        let found = found.context("reading the configuration panicked")?;
        found.map_err(anyhow::Error::msg)
    }

    /// Waits for the end of its thread, which has nothing to wait for once it has
    /// told.
    pub(crate) fn end(self) {
        // What it told is there, however it ended.
        let _ = self.thread.join();
    }
}

fn look(home: &Home) -> Result<Found, String> {
    leftovers::sweep(home);
    // Before anything is read of what it watches over.
    let accepted = Accepted::open(home.root());
    let composed = compose(home, &InForce::default())?;
    Ok(Found {
        accepted,
        composed,
        approvals: approvals::read(&home.approvals_file()),
    })
}
