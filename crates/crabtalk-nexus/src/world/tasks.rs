//! The queue of tasks, and how long what is done stays known.
//!
//! Invariants: an open task is never forgotten; neither is the last one, so that no
//! number is used again.

use crate::clock::Ms;
use crate::name::{Name, Topic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Tasks that are done and still known: more than a person looks back at. The log has
/// all of them.
const MAX_DONE: usize = 1000;

/// Bytes of what was to be done and what was answered.
const MAX_DONE_BYTES: usize = 4 * 1024 * 1024;

/// A task of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Who shall do it; anybody if absent.
    pub to: Option<Name>,
    pub topic: Topic,
    /// What is to be done.
    pub body: String,
    /// When it was added.
    pub at: Ms,
    pub state: TaskState,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum TaskState {
    Open,
    Assigned {
        agent: Name,
        at: Ms,
        /// Whether it was asked after.
        reminded: bool,
    },
    Done {
        agent: Name,
        at: Ms,
        /// What the answer says.
        answer: String,
    },
}

/// Forgets what was done before the latest that are kept.
pub(super) fn forget(tasks: &mut BTreeMap<u64, Task>) {
    let mut done: Vec<(Ms, u64, usize)> = tasks
        .iter()
        .filter_map(|(id, task)| match &task.state {
            TaskState::Open | TaskState::Assigned { .. } => None,
            TaskState::Done { at, answer, .. } => Some((*at, *id, task.body.len() + answer.len())),
        })
        .collect();
    done.sort_unstable_by(|a, b| b.cmp(a));
    let last = tasks.keys().next_back().copied();
    let mut bytes = 0;
    for (place, (_, id, length)) in done.into_iter().enumerate() {
        bytes += length;
        let is_kept = place < MAX_DONE && bytes <= MAX_DONE_BYTES;
        if !is_kept && last != Some(id) {
            tasks.remove(&id);
        }
    }
}
