//! Tool calls: a row while active, then their results.
//!
//! Invariant: long results are shortened with a count of omitted lines; Ctrl-T shows
//! them in full.

use super::MARGIN;
use crate::text::{ago_millis, ago_secs, call_summary, counted, image_note, summary};
use crate::todo;
use crabtalk_proto::{ToolCallInfo, ToolProgressEvent, ToolResultEvent};
use crabtalk_render::{Line, Span, cut, diff, output, shorten, theme};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;
use unicode_width::UnicodeWidthStr;

/// Maximum lines of a result.
const OUTPUT_LINES: usize = 4;

/// Maximum characters of a progress message.
const PROGRESS_CHARS: usize = 24;

/// Maximum lines of a diff.
const DIFF_LINES: usize = 24;

/// The tool with live output.
const COMMAND: &str = "bash";

/// Maximum lines of live output.
const TAIL_LINES: usize = 3;

/// Maximum size of a file that is searched for the changed line.
const MAX_FILE: u64 = 1024 * 1024;

/// Maximum bytes of tool results kept for Ctrl-T.
const MAX_KEPT: usize = 1024 * 1024;

/// Shown for a call without a result event.
const UNHEARD: &str = ": result unknown";

/// An active call.
struct Running {
    call: ToolCallInfo,
    since: Instant,
    /// Its progress message.
    progress: String,
    /// The last lines of a command's output.
    tail: Vec<String>,
}

/// Calls of the current step.
#[derive(Default)]
pub(in super::super) struct Tools {
    running: Vec<Running>,
    /// Diffs shown with approval requests, by file.
    previews: Vec<(String, String)>,
    /// The agent's folder.
    pub(in super::super) cwd: PathBuf,
    /// Full results of the last calls.
    pub(in super::super) answers: String,
}

impl Tools {
    pub(super) fn start(&mut self, calls: &[ToolCallInfo], since: Instant) {
        self.answers.clear();
        self.running.extend(calls.iter().map(|call| Running {
            call: call.clone(),
            since,
            progress: String::new(),
            tail: Vec::new(),
        }));
    }

    /// Records a diff shown with an approval request.
    pub(in super::super) fn preview(&mut self, path: &str, change: &str) {
        self.previews.push((path.to_owned(), change.to_owned()));
    }

    /// Handles progress.
    pub(super) fn progress(&mut self, event: &ToolProgressEvent) {
        let mut running = self.running.iter_mut();
        let Some(running) = running.find(|r| r.call.call_id == event.call_id) else {
            return;
        };
        if running.call.name == COMMAND {
            running.tail = output(&event.message).lines().map(str::to_owned).collect();
            return;
        }
        let done = match event.total {
            Some(total) if total > 0.0 => format!("{:.0}% ", 100.0 * event.progress / total),
            _ => String::new(),
        };
        let said: String = summary(&event.message)
            .chars()
            .take(PROGRESS_CHARS)
            .collect();
        running.progress = format!("{done}{said}{}", if said.is_empty() { "" } else { " " });
    }

    pub(super) fn forget(&mut self) {
        self.running.clear();
        self.previews.clear();
    }

    /// Lines for calls without result events.
    pub(super) fn cut_off(&mut self, width: usize) -> Vec<Line> {
        let mut running = std::mem::take(&mut self.running);
        running.retain(|running| running.call.name != todo::TOOL);
        self.previews.clear();
        let line = |running: Running| {
            let room = (width + MARGIN.len()).saturating_sub(UNHEARD.len());
            let title = title("?", theme::DIM, &running.call);
            shorten(&title, room).with(UNHEARD, theme::DIM)
        };
        running.into_iter().map(line).collect()
    }

    /// Rows of active calls with the end of their output.
    pub(super) fn rows(&self, width: usize, now: Instant, spinner: &str) -> Vec<Line> {
        self.running
            .iter()
            .filter(|running| running.call.name != todo::TOOL)
            .flat_map(|running| {
                let took = ago_secs(now.duration_since(running.since));
                let line = title(spinner, theme::ASKS, &running.call);
                let end = format!(" \u{b7} {}{took}", running.progress);
                let room = (width + MARGIN.len()).saturating_sub(end.width());
                let first = shorten(&line, room).with(end, theme::DIM);
                let last = running.tail.len().saturating_sub(TAIL_LINES);
                let said = running.tail[last..].iter().map(|said| {
                    let said = Line::styled(format!("{MARGIN}{said}"), theme::DIM);
                    shorten(&said, width)
                });
                std::iter::once(first).chain(said).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Lines of a finished call; `None` for an unknown call and a todo list.
    pub(super) fn result(&mut self, result: &ToolResultEvent, width: usize) -> Option<Vec<Line>> {
        let at = self
            .running
            .iter()
            .position(|running| running.call.call_id == result.call_id)?;
        let call = self.running.remove(at).call;
        if call.name == todo::TOOL && !result.is_error {
            return None;
        }
        if self.answers.len() < MAX_KEPT {
            let answer = output(&result.output);
            self.answers.push_str(&format!(
                "{} {}\n{answer}\n\n",
                call.name,
                call_summary(&call.arguments)
            ));
        }
        let (mark, style) = match result.is_error {
            true => ("\u{2717}", theme::BAD),
            false => ("\u{25cf}", theme::GOOD),
        };
        let end = format!(" \u{b7} {}", ago_millis(result.duration_ms));
        let room = (width + MARGIN.len()).saturating_sub(end.len());
        let first = shorten(&title(mark, style, &call), room).with(end, theme::DIM);
        let mut lines = vec![first];
        let change = match result.is_error {
            true => None,
            false => self.change(&call, width.saturating_sub(MARGIN.len())),
        };
        let (body, most) = match change {
            Some(change) => (change, DIFF_LINES),
            None => (answer(&call, result, width), OUTPUT_LINES),
        };
        lines.extend(folded(body, most));
        for image in &result.images {
            lines.push(Line::styled(
                format!("{MARGIN}{}", image_note(image)),
                theme::DIM,
            ));
        }
        Some(lines)
    }

    /// The diff of an edit or write.
    fn change(&mut self, call: &ToolCallInfo, width: usize) -> Option<Vec<Line>> {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let text = |key: &str| arguments.get(key)?.as_str();
        let path = text("path")?;
        if !matches!(call.name.as_str(), "edit" | "write") {
            return None;
        }
        let shown = self
            .previews
            .iter()
            .position(|(file, _)| file.ends_with(path));
        if let Some(at) = shown {
            let (_, change) = self.previews.remove(at);
            return Some(diff::unified(&change, path, width));
        }
        if call.name == "write" {
            return Some(diff::whole(text("content")?, path, width));
        }
        let (old, new) = (text("old_string")?, text("new_string")?);
        let first = self.line_of(new, path);
        Some(diff::between(old, new, path, first, width))
    }

    /// Line number of a text in a file, if readable here.
    fn line_of(&self, text: &str, path: &str) -> usize {
        let file = self.cwd.join(Path::new(path));
        let content = crabtalk_files::read_text(&file, MAX_FILE).unwrap_or_default();
        let before = content.split(text).next().unwrap_or_default();
        match before.len() == content.len() {
            true => 1,
            false => before.matches('\n').count() + 1,
        }
    }
}

/// Formats `mark name arguments`.
fn title(mark: &str, style: anstyle::Style, call: &ToolCallInfo) -> Line {
    Line::styled(format!("{mark} "), style)
        .with(&call.name, theme::BOLD)
        .with(" ", theme::PLAIN)
        .with(call_summary(&call.arguments), theme::PLAIN)
}

/// The first lines, with the number of omitted ones.
fn folded(lines: Vec<Line>, most: usize) -> Vec<Line> {
    let margin = [Span::new(MARGIN, theme::PLAIN)];
    let more = lines.len().saturating_sub(most);
    // One omitted line is shown instead of counted.
    let shown = if more > 1 { most } else { lines.len() };
    let mut folded: Vec<Line> = lines
        .into_iter()
        .take(shown)
        .map(|line| line.behind(&margin))
        .collect();
    if more > 1 {
        let rest = format!("{MARGIN}\u{2026} {more} more lines (Ctrl-T shows them)");
        folded.push(Line::styled(rest, theme::DIM));
    }
    folded
}

/// Dimmed lines of a result; reads show only the length.
fn answer(call: &ToolCallInfo, result: &ToolResultEvent, width: usize) -> Vec<Line> {
    let text = output(&result.output);
    let text = text.trim_end();
    if call.name == "read" && !result.is_error {
        let lines = counted(text.lines().count(), "line");
        return vec![Line::styled(lines, theme::DIM)];
    }
    if call.name == "delegate"
        && let Some(lines) = members(text, width)
    {
        return lines;
    }
    let style = if result.is_error {
        theme::BAD
    } else {
        theme::DIM
    };
    text.lines()
        .flat_map(|line| {
            cut(
                &Line::styled(line, style),
                width.saturating_sub(MARGIN.len()),
            )
        })
        .collect()
}

/// A line for each member's answer or error.
fn members(output: &str, width: usize) -> Option<Vec<Line>> {
    let results: Vec<Value> = serde_json::from_str(output).ok()?;
    let line = |result: &Value| {
        let (mark, style, said) = match (result["answer"].as_str(), result["error"].as_str()) {
            (Some(answer), _) => ("\u{2713}", theme::GOOD, answer),
            (None, error) => ("\u{2717}", theme::BAD, error?),
        };
        let line = Line::styled(format!("{mark} "), style)
            .with(result["agent"].as_str()?, theme::BOLD)
            .with(format!(" {}", summary(said)), theme::DIM);
        Some(shorten(&line, width.saturating_sub(MARGIN.len())))
    };
    results.iter().map(line).collect()
}
