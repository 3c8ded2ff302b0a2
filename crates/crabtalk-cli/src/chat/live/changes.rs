//! `/diff` and `/undo`.

use super::calls::{Done, Pair};
use super::{Live, transcript::MARGIN};
use crate::changes::{about, headline, told};
use crate::text::counted;
use crabtalk_client::{Client, Error};
use crabtalk_proto::{ChangeList, FileChange, ListChangesMsg, UndoMsg, UndoReport};
use crabtalk_render::{Line, cut, diff, theme, wrapped};

/// Maximum number of lines shown.
const MAX_LINES: usize = 400;

pub(super) async fn list(client: Client, pair: Pair, run: Option<u64>) -> Done {
    let request = ListChangesMsg {
        agent: pair.agent,
        sender: pair.sender,
        run,
        limit: 1,
        diffs: true,
    };
    Done::Changes(client.call(request).await)
}

pub(super) async fn undo(client: Client, pair: Pair, run: Option<u64>, partly: bool) -> Done {
    let request = UndoMsg {
        agent: pair.agent,
        sender: pair.sender,
        run,
        dry_run: false,
        partly,
    };
    Done::Undone(client.call(request).await)
}

impl Live<'_> {
    /// Handles `/diff [RUN]` and `/undo [RUN] [partly]`.
    pub(super) fn changes_command(&mut self, name: &str, arguments: &str) {
        let (client, pair) = (self.client.clone(), self.pair.clone());
        let (mut run, mut partly) = (None, false);
        for word in arguments.split_whitespace() {
            match (word.parse(), word) {
                (Ok(number), _) => run = Some(number),
                (Err(_), "partly") if name == "undo" => partly = true,
                (Err(_), word) => {
                    let said = format!("/{name} takes the number of a run, not {word:?}");
                    return self.transcript.problem(&said);
                }
            }
        }
        match name {
            "diff" => self.call(list(client, pair, run)),
            _ => self.call(undo(client, pair, run, partly)),
        }
    }

    /// Shows the changes of a run.
    pub(super) fn show_changes(&mut self, changes: Result<ChangeList, Error>) {
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => return self.transcript.problem(&error.to_string()),
        };
        let Some(run) = changes.runs.first() else {
            let said = "no recorded changes in this folder";
            return self.transcript.note(said);
        };
        let width = self.transcript.width().saturating_sub(MARGIN.len());
        let mut lines = vec![Line::styled(headline(run), theme::BOLD)];
        for file in &run.files {
            lines.push(Line::default());
            lines.extend(wrapped(&Line::styled(about(file), theme::HEADING), width));
            lines.extend(difference(file, width));
        }
        let more = lines.len().saturating_sub(MAX_LINES);
        if more > 0 {
            lines.truncate(MAX_LINES);
            let said = format!(
                "\u{2026} {} more; `crabtalk diff` shows all",
                counted(more, "line")
            );
            lines.push(Line::styled(said, theme::DIM));
        }
        self.transcript.lines(lines);
        for note in &run.notes {
            self.transcript.note(note);
        }
    }

    /// Shows the result of an undo.
    pub(super) fn show_undone(&mut self, undone: Result<UndoReport, Error>) {
        let report = match undone {
            Ok(report) => report,
            Err(error) => return self.transcript.problem(&error.to_string()),
        };
        let mut said = told(&report, false).join("\n");
        if report.done {
            self.transcript.note(&said);
        } else {
            said.push_str("\nnothing was changed; `/undo partly` reverts the others");
            self.transcript.problem(&said);
        }
        for note in report.changes.iter().flat_map(|changes| &changes.notes) {
            self.transcript.note(note);
        }
    }
}

/// The notes and numbered lines of a change.
fn difference(file: &FileChange, width: usize) -> Vec<Line> {
    let words = match file.diff.find("--- before\n") {
        Some(at) => &file.diff[..at],
        None => file.diff.as_str(),
    };
    let mut lines: Vec<Line> = words
        .lines()
        .flat_map(|line| cut(&Line::styled(line, theme::DIM), width))
        .collect();
    lines.extend(diff::unified(&file.diff, &file.path, width));
    lines
}
