//! Requests about runs' changes to files, and their undo.
//!
//! Invariants: only an owner undoes changes, or a token that acts for one; changes are not
//! undone while a run of the conversation is in flight.

use super::Session;
use crate::error::Error;
use crabtalk_proto::*;
use crabtalk_tools::RunChanges as Changes;

/// Default number of runs in a list.
const DEFAULT_RUNS: usize = 20;

/// Maximum number of runs of a list.
const MAX_RUNS: usize = 200;

fn on_the_wire(changes: Changes) -> RunChanges {
    let file = |file: crabtalk_tools::FileChange| FileChange {
        path: file.path.to_string_lossy().into_owned(),
        kind: file.kind.as_str().to_owned(),
        diff: file.diff,
        problem: file.problem,
    };
    RunChanges {
        run: changes.run,
        files: changes.files.into_iter().map(file).collect(),
        notes: changes.notes,
        undone: changes.undone,
    }
}

impl Session {
    pub(super) async fn changes(&self, request: ListChangesMsg) -> Result<ChangeList, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let most = super::as_many(request.limit, DEFAULT_RUNS, MAX_RUNS);
        let tools = &self.node.tools;
        let runs = tools
            .changes(&key, request.run, most, request.diffs)
            .await?;
        Ok(ChangeList {
            runs: runs.into_iter().map(on_the_wire).collect(),
        })
    }

    pub(super) async fn take_back(&self, request: UndoMsg) -> Result<UndoReport, Error> {
        if !self.acts_for_owner() {
            return Err(Error::Forbidden(
                "only an owner can undo changes, or a token that acts for one".into(),
            ));
        }
        let key = self.key(&request.agent, &request.sender)?;
        let live = self.node.runtime.live_all();
        let runs = live.iter().any(|live| live.key == key && live.running);
        if runs && !request.dry_run {
            return Err(Error::Conflict(format!(
                "a run of {key} is running and may change the same files: wait for it, or cancel it"
            )));
        }
        let tools = &self.node.tools;
        let undone = tools.undo(&key, request.run, !request.dry_run, request.partly);
        let undone = undone.await?;
        Ok(UndoReport {
            done: undone.done,
            changes: Some(on_the_wire(undone.changes)),
        })
    }
}
