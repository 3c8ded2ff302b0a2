//! Records the ends of runs, and detects duplicate notifications.

use crabtalk_domain::{BoxFuture, RunEnded, RunEnds};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::watch;

/// The reported ends so far, in order. Panics at a second end of the same
/// run.
#[derive(Debug)]
pub struct HeardEnds {
    heard: Mutex<Vec<RunEnded>>,
    /// Whether reports return instead of hanging.
    listens: watch::Sender<bool>,
}

impl Default for HeardEnds {
    fn default() -> Self {
        Self {
            heard: Mutex::default(),
            listens: watch::Sender::new(true),
        }
    }
}

impl HeardEnds {
    fn heard(&self) -> MutexGuard<'_, Vec<RunEnded>> {
        self.heard.lock().expect("not poisoned")
    }

    /// Makes later reports hang, or return again.
    pub fn hang(&self, hang: bool) {
        self.listens.send_replace(!hang);
    }

    /// All reported ends.
    pub fn all(&self) -> Vec<RunEnded> {
        self.heard().clone()
    }

    /// All reported ends, one per line: agent and sender, number, code, and
    /// outcome.
    pub fn lines(&self) -> Vec<String> {
        let heard = self.heard();
        let lines = heard.iter().map(|ended| {
            let outcome = &ended.outcome;
            let cut = if outcome.interrupted { " cut off" } else { "" };
            let next = ended.carried_on_as;
            let next = next.map_or_else(String::new, |next| format!(", carried on as {next}"));
            format!("{} {} {}{cut}{next}", ended.key, outcome.run, outcome.code)
        });
        lines.collect()
    }
}

impl RunEnds for HeardEnds {
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut listens = self.listens.subscribe();
            let _ = listens.wait_for(|listens| *listens).await;
            let mut heard = self.heard();
            heard.push(ended.clone());
            let runs: HashSet<_> = heard.iter().map(|e| (&e.key, e.outcome.run)).collect();
            assert_eq!(runs.len(), heard.len(), "told twice: {ended:?}");
        })
    }
}
