//! Todo lists of agents: formats calls of the tool `todo`.

use crate::text::{clean, summary};
use crabtalk_render::{Line, Span, shorten, theme, wrapped};
use serde::Deserialize;

/// Name of the tool.
pub(crate) const TOOL: &str = "todo";

/// Maximum characters of an item in a line with several changes.
const TOLD_CHARS: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Pending,
    InProgress,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Item {
    text: String,
    #[serde(default)]
    status: Status,
}

/// A list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct Todo {
    items: Vec<Item>,
}

impl Todo {
    /// Parses the list in the arguments of a call.
    pub(crate) fn parse(arguments: &str) -> Option<Self> {
        serde_json::from_str(arguments).ok()
    }

    /// Whether all items are done.
    pub(crate) fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.status == Status::Done)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The count, as in `1 of 3 done`.
    pub(crate) fn count(&self) -> String {
        let done = self.items.iter().filter(|i| i.status == Status::Done);
        format!("{} of {} done", done.count(), self.items.len())
    }

    fn with(&self, status: Status) -> impl Iterator<Item = &str> {
        let items = self.items.iter().filter(move |i| i.status == status);
        items.map(|item| item.text.as_str())
    }

    /// The difference from an earlier list, in one line.
    pub(crate) fn change(&self, before: &Self) -> String {
        let was_done = |text: &&str| before.with(Status::Done).any(|known| known == *text);
        let done: Vec<String> = self
            .with(Status::Done)
            .filter(|text| !was_done(text))
            .map(told)
            .collect();
        let now: Vec<String> = self.with(Status::InProgress).map(told).collect();
        let mut line = self.count();
        for (name, items) in [("done", done), ("now", now)] {
            if !items.is_empty() {
                line.push_str(&format!(" \u{b7} {name}: {}", items.join("; ")));
            }
        }
        line
    }

    /// The list for a terminal, wrapped.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let items = self.items.iter().flat_map(|item| {
            let (mark, mark_style, style) = styles(item.status);
            let mut lead = Span::new(format!("  {mark} "), mark_style);
            let text = Line::styled(summary_of(&item.text), style);
            let parts = wrapped(&text, width.saturating_sub(4)).into_iter();
            let line = move |part: Line| {
                let next = Span::new("    ", theme::PLAIN);
                part.behind(&[std::mem::replace(&mut lead, next)])
            };
            parts.map(line).collect::<Vec<_>>()
        });
        std::iter::once(self.heading()).chain(items).collect()
    }

    /// The list in at most `most` rows, including the first unfinished item.
    pub(crate) fn rows(&self, width: usize, most: usize) -> Vec<Line> {
        let most = most.max(2);
        let row = |item: &Item| {
            let (mark, mark_style, style) = styles(item.status);
            let line = Line::styled(format!("  {mark} "), mark_style);
            shorten(&line.with(summary_of(&item.text), style), width)
        };
        let fits = self.items.len() < most;
        let shown = if fits { self.items.len() } else { most - 2 };
        let open = |item: &Item| item.status != Status::Done;
        let first = self.items.iter().position(open).unwrap_or(0);
        let first = first
            .saturating_sub(1)
            .min(self.items.len().saturating_sub(shown));
        let first = if fits { 0 } else { first };
        let mut rows = vec![self.heading()];
        rows.extend(self.items.iter().skip(first).take(shown).map(row));
        if !fits {
            let more = format!("  \u{2026} {} more", self.items.len() - shown);
            rows.push(Line::styled(more, theme::DIM));
        }
        rows
    }

    fn heading(&self) -> Line {
        Line::styled("Todo", theme::BOLD).with(format!(" \u{b7} {}", self.count()), theme::DIM)
    }

    /// Plain lines for a history.
    pub(crate) fn plain(&self) -> impl Iterator<Item = String> {
        let line = |item: &Item| format!("{} {}", styles(item.status).0, summary_of(&item.text));
        self.items.iter().map(line)
    }

    /// A task list in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |item: &Item| {
            let mark = if item.status == Status::Done {
                'x'
            } else {
                ' '
            };
            format!("  - [{mark}] {}\n", summary_of(&item.text))
        };
        self.items.iter().map(line).collect()
    }
}

/// Mark, its style, and the style of the text.
fn styles(status: Status) -> (&'static str, anstyle::Style, anstyle::Style) {
    match status {
        Status::Pending => ("\u{25cb}", theme::DIM, theme::PLAIN),
        Status::InProgress => ("\u{25b8}", theme::HEADING, theme::HEADING),
        Status::Done => ("\u{2713}", theme::GOOD, theme::DIM),
    }
}

/// The text of an item on one line.
fn summary_of(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of an item in a line with other items.
fn told(text: &str) -> String {
    let text = summary(text);
    match text.char_indices().nth(TOLD_CHARS) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[(&str, &str)]) -> Todo {
        let items: Vec<_> = items
            .iter()
            .map(|(text, status)| serde_json::json!({"text": text, "status": status}))
            .collect();
        Todo::parse(&serde_json::json!({ "items": items }).to_string()).unwrap()
    }

    fn text(lines: Vec<Line>) -> String {
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn changes_are_told_in_one_line() {
        let first = list(&[("read", "in_progress"), ("write", "pending")]);
        let next = list(&[("read", "done"), ("write", "in_progress")]);
        let over = list(&[("read", "done"), ("write", "done")]);
        for (list, before, want) in [
            (&first, &Todo::default(), "0 of 2 done \u{b7} now: read"),
            (
                &next,
                &first,
                "1 of 2 done \u{b7} done: read \u{b7} now: write",
            ),
            (&next, &next, "1 of 2 done \u{b7} now: write"),
            (&over, &next, "2 of 2 done \u{b7} done: write"),
        ] {
            assert_eq!(list.change(before), want);
        }
        assert!(Todo::parse("{}").is_none() && Todo::parse(r#"{"command":"ls"}"#).is_none());
    }

    #[test]
    fn long_lists_show_the_current_item() {
        let items: Vec<(String, &str)> = (0..9)
            .map(|n| (format!("item {n}"), if n < 6 { "done" } else { "pending" }))
            .collect();
        let items: Vec<(&str, &str)> = items.iter().map(|(t, s)| (t.as_str(), *s)).collect();
        let long = list(&items);
        assert_eq!(
            text(long.rows(40, 5)),
            "Todo \u{b7} 6 of 9 done\n  \u{2713} item 5\n  \u{25cb} item 6\n  \u{25cb} item 7\n  \
             \u{2026} 6 more\n"
        );
        assert_eq!(long.rows(40, 10).len(), 10);
        for width in [10, 40] {
            let wide = list(&[(&"word ".repeat(40), "in_progress")]);
            assert!(wide.lines(width).iter().skip(1).all(|l| l.width() <= width));
            assert_eq!(wide.rows(width, 2).len(), 2);
        }
    }
}
