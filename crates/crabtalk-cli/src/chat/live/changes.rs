//! `/diff` and `/undo`.

use super::calls::Pair;
use super::{Live, transcript::MARGIN};
use crate::changes::{about, headline, told};
use crate::text::counted;
use crabtalk_client::Error;
use crabtalk_proto::{ChangeList, FileChange, ListChangesMsg, UndoMsg, UndoReport};
use crabtalk_render::{Line, cut, diff, theme, wrapped};

/// Maximum number of lines shown.
const MAX_LINES: usize = 400;

impl Live<'_> {
    /// Handles `/diff [RUN]` and `/undo [RUN] [partly]`.
    pub(super) fn changes_command(&mut self, name: &str, arguments: &str) {
        let Pair { agent, sender } = self.pair.clone();
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
        if name == "diff" {
            let request = ListChangesMsg {
                agent,
                sender,
                run,
                limit: 1,
                diffs: true,
            };
            return self.request(request, |live, changes| live.show_changes(changes));
        }
        let request = UndoMsg {
            agent,
            sender,
            run,
            dry_run: false,
            partly,
        };
        self.request(request, |live, undone| live.show_undone(undone));
    }

    /// Shows the changes of a run.
    fn show_changes(&mut self, changes: Result<ChangeList, Error>) {
        let Some(changes) = self.answered_by(changes) else {
            return;
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
        let Some(report) = self.answered_by(undone) else {
            return;
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
