//! `/rewind` and `/resume`: returns to an earlier message or archive.
//!
//! Invariant: lines on the screen are never removed; a line says where the
//! history continues.

use super::Live;
use super::calls::{Pair, last_messages};
use super::choice::{Choice, Purpose, Said};
use super::picker::Picker;
use crate::switch::Place;
use crate::text::{counted, summary};
use crabtalk_client::{Client, Error};
use crabtalk_proto::{
    ArchiveContent, GetArchiveMsg, GetHistoryMsg, HistoryEntry, ListChangesMsg, ReopenMsg,
    RewindMsg, RewindResponse, RunChanges, UndoMsg, UndoReport,
};
use std::cmp::Reverse;
use std::path::Path;

/// Entries read to find earlier messages.
const MAX_ENTRIES: usize = 2_000;

/// Entries per request.
const PAGE: u32 = 500;

/// Runs whose file changes are requested.
const MAX_RUNS: u32 = 200;

/// Messages shown of a reopened archive.
const SHOWN: u32 = 30;

/// How the chat starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Start {
    /// With the current conversation.
    Here,
    /// With the list of `/resume`.
    Choose,
    /// With an archive of the conversation as its history.
    Archive(u32),
}

/// A rewind, with the file changes of the runs that it removed from the history.
struct Rewound {
    answer: RewindResponse,
    changes: Vec<RunChanges>,
}

/// The user's messages in the history, newest first.
async fn said(client: Client, pair: Pair) -> Result<Vec<Said>, Error> {
    let (mut before, mut entries) = (None, Vec::new());
    loop {
        let request = GetHistoryMsg {
            before,
            ..last_messages(pair.clone(), PAGE)
        };
        let page = client.call(request).await?;
        let more = page.more && !page.entries.is_empty();
        before = page.entries.first().map(|entry| entry.index);
        entries.extend(page.entries.into_iter().rev());
        if !more || entries.len() >= MAX_ENTRIES {
            return Ok(visible(entries));
        }
    }
}

/// The user's messages in a list of entries, newest first, without those removed by a rewind.
fn visible(entries: Vec<HistoryEntry>) -> Vec<Said> {
    let mut end = u64::MAX;
    let mut said = Vec::new();
    for entry in entries {
        if entry.index >= end {
            continue;
        }
        end = entry.rewound_to.unwrap_or(end);
        let is_own = entry.role == "user" && !entry.compact && entry.index < end;
        if is_own && !entry.content.trim().is_empty() {
            said.push(Said {
                index: entry.index,
                content: entry.content,
                at: entry.timestamp,
            });
        }
    }
    said
}

async fn rewind(client: Client, pair: Pair, index: u64) -> Result<Rewound, Error> {
    let request = RewindMsg {
        agent: pair.agent.clone(),
        sender: pair.sender.clone(),
        index,
    };
    let answer = client.call(request).await?;
    let request = ListChangesMsg {
        agent: pair.agent,
        sender: pair.sender,
        run: None,
        limit: MAX_RUNS,
        diffs: false,
    };
    // A token may be allowed to talk but not to list changes.
    let mut changes = client.call(request).await.unwrap_or_default().runs;
    let hidden = answer.first_run.max(1)..=answer.last_run;
    changes.retain(|run| hidden.contains(&run.run) && !run.undone && !run.files.is_empty());
    changes.sort_by_key(|run| Reverse(run.run));
    Ok(Rewound { answer, changes })
}

/// Undoes the changes of runs, latest first.
async fn undo(client: Client, pair: Pair, runs: Vec<RunChanges>) -> Vec<Result<UndoReport, Error>> {
    let mut reports = Vec::new();
    for run in runs {
        let request = UndoMsg {
            agent: pair.agent.clone(),
            sender: pair.sender.clone(),
            run: Some(run.run),
            dry_run: false,
            partly: false,
        };
        reports.push(client.call(request).await);
    }
    reports
}

async fn reopen(client: Client, pair: Pair, archive: u32) -> Result<ArchiveContent, Error> {
    let request = ReopenMsg {
        agent: pair.agent.clone(),
        sender: pair.sender.clone(),
        index: archive,
    };
    client.call(request).await?;
    let request = GetArchiveMsg {
        agent: pair.agent,
        sender: pair.sender,
        index: archive,
        before: None,
        limit: SHOWN,
    };
    client.call(request).await
}

impl Live<'_> {
    pub(super) fn start_with(&mut self, start: Start) {
        match start {
            Start::Here => {}
            Start::Choose => self.resume_command(""),
            Start::Archive(archive) => self.reopen(archive),
        }
    }

    /// Handles `/rewind`: opens the picker with the user's earlier messages.
    pub(super) fn rewind_command(&mut self, search: &str) {
        if self.is_busy("/rewind") {
            return;
        }
        self.picker = Some(Picker::new(Purpose::Rewind, search));
        let said = said(self.client.clone(), self.pair.clone());
        self.call(said, |live, said| live.show_said(said));
    }

    /// Handles `/resume`: opens the picker with archives and the conversations of this folder.
    pub(super) fn resume_command(&mut self, search: &str) {
        if self.is_busy("/resume") {
            return;
        }
        self.pick_place(Purpose::Resume, search);
    }

    /// Whether a run is active; if so, reports it.
    fn is_busy(&mut self, command: &str) -> bool {
        let is_busy = self.runs.is_running();
        if is_busy {
            let said = format!("a run is active: interrupt it with Esc, then type {command}");
            self.transcript.problem(&said);
        }
        is_busy
    }

    fn is_own(&self, place: &Place) -> bool {
        place.agent == self.learned.agent && place.sender == self.learned.sender
    }

    /// Whether `/resume` lists a place: an archive of this conversation, or another
    /// conversation of this folder with its archives.
    pub(super) fn is_resumable(&self, place: &Place) -> bool {
        match self.is_own(place) {
            true => place.archive.is_some(),
            false => !place.folder.is_empty() && self.cwd == Path::new(&place.folder),
        }
    }

    fn show_said(&mut self, said: Result<Vec<Said>, Error>) {
        let choices = said.map(|said| said.into_iter().map(Choice::Said).collect());
        self.fill_picker(&[Purpose::Rewind], choices);
    }

    /// Handles a choice of `/rewind` or `/resume`.
    pub(super) fn return_to(&mut self, choice: Choice) {
        let (client, pair) = (self.client.clone(), self.pair.clone());
        match choice {
            Choice::Said(said) => {
                let rewound = rewind(client, pair, said.index);
                self.call(rewound, |live, rewound| live.show_rewound(rewound));
            }
            Choice::Undo(runs) => self.call(undo(client, pair, runs), |live, reports| {
                reports
                    .into_iter()
                    .for_each(|report| live.show_undone(report));
            }),
            Choice::Keep => self.transcript.note("the file changes are kept"),
            Choice::Place(place) => self.resume_place(place),
        }
    }

    fn resume_place(&mut self, mut place: Place) {
        let archive = place.archive.take();
        if !self.is_own(&place) {
            self.go_to(place);
        }
        if let Some(archive) = archive {
            self.reopen(archive);
        }
    }

    /// Makes an archive of this conversation the history again.
    fn reopen(&mut self, archive: u32) {
        let reopened = reopen(self.client.clone(), self.pair.clone(), archive);
        self.call(reopened, |live, archive| live.show_reopened(archive));
    }

    fn show_rewound(&mut self, rewound: Result<Rewound, Error>) {
        let Some(Rewound { answer, changes }) = self.answered_by(rewound) else {
            return;
        };
        self.figures.context = 0;
        self.read_figures();
        self.transcript.forget_todo();
        let said = format!("Rewound to: {}", summary(&answer.content));
        self.transcript.note(&said);
        self.composer.set(&answer.content);
        if changes.is_empty() {
            return;
        }
        let mut said = format!("{} after it changed files:", counted(changes.len(), "run"));
        for file in changes.iter().flat_map(|run| &run.files) {
            said.push_str(&format!("\n{} {}", file.kind, file.path));
        }
        self.transcript.note(&said);
        let mut picker = Picker::new(Purpose::Undo, "");
        picker.fill(vec![Choice::Keep, Choice::Undo(changes)]);
        self.picker = Some(picker);
    }

    fn show_reopened(&mut self, archive: Result<ArchiveContent, Error>) {
        let Some(archive) = self.answered_by(archive) else {
            return;
        };
        self.figures.context = 0;
        self.read_figures();
        self.transcript.forget_todo();
        let title = archive.info.map(|info| info.title).unwrap_or_default();
        self.transcript
            .note(&format!("Resumed: {}", summary(&title)));
        if archive.more {
            self.transcript.note("older messages: /history 50");
        }
        self.transcript.entries(&archive.entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hidden_by_rewinds_are_not_offered() {
        let entry = |index: u64, role: &str, rewound_to: Option<u64>| HistoryEntry {
            index,
            role: role.into(),
            content: index.to_string(),
            rewound_to,
            ..HistoryEntry::default()
        };
        // Newest first. After 5 the history returned to 3, after 9 to 7.
        let entries = vec![
            entry(11, "assistant", None),
            entry(10, "user", None),
            entry(9, "user", Some(7)),
            entry(8, "assistant", None),
            entry(7, "user", None),
            entry(6, "user", None),
            entry(5, "user", Some(3)),
            entry(3, "user", None),
            entry(2, "assistant", None),
            entry(1, "user", None),
        ];
        let said: Vec<u64> = visible(entries).iter().map(|said| said.index).collect();
        assert_eq!(said, [10, 6, 1]);
    }
}
