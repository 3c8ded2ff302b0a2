//! Shows file changes line by line, with line numbers and colours.
//!
//! Invariant: each changed line has a `+` or `-`; colours only repeat it.

use crate::code::Code;
use crate::line::{Line, Span};
use crate::theme::{ADDED, DIM, PLAIN, REMOVED};
use crate::wrap::cut;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// Columns of a line number; longer numbers shift the text.
const NUMBER: usize = 4;

/// The difference of two texts.
pub fn between(old: &str, new: &str, path: &str, first: usize, width: usize) -> Vec<Line> {
    let diff = TextDiff::from_lines(old, new);
    let mut writer = DiffWriter::new(path, width);
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            writer.pause();
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = change.value().trim_end_matches('\n');
            let number = |index: Option<usize>| index.map_or(0, |index| index + first);
            match change.tag() {
                ChangeTag::Equal => writer.line(' ', number(change.new_index()), text),
                ChangeTag::Delete => writer.line('-', number(change.old_index()), text),
                ChangeTag::Insert => writer.line('+', number(change.new_index()), text),
            }
        }
    }
    writer.lines
}

/// Renders a unified diff.
pub fn unified(text: &str, path: &str, width: usize) -> Vec<Line> {
    let mut writer = DiffWriter::new(path, width);
    let (mut old, mut new, mut begun) = (1, 1, false);
    for line in text.lines() {
        if let Some(hunk) = line.strip_prefix("@@ ") {
            if begun {
                writer.pause();
            }
            (old, new) = starts(hunk);
            begun = true;
        } else if !begun {
            // Skip the file names before the first hunk.
        } else if let Some(text) = line.strip_prefix('+') {
            writer.line('+', new, text);
            new += 1;
        } else if let Some(text) = line.strip_prefix('-') {
            writer.line('-', old, text);
            old += 1;
        } else if let Some(remark) = line.strip_prefix('\\') {
            writer.lines.push(Line::styled(
                format!("{:NUMBER$}  {}", "", remark.trim()),
                DIM,
            ));
        } else {
            writer.line(' ', new, line.strip_prefix(' ').unwrap_or(line));
            old += 1;
            new += 1;
        }
    }
    writer.lines
}

/// Renders a new or completely replaced file: all lines are added.
pub fn whole(text: &str, path: &str, width: usize) -> Vec<Line> {
    let mut writer = DiffWriter::new(path, width);
    for (index, line) in text.lines().enumerate() {
        writer.line('+', index + 1, line);
    }
    writer.lines
}

/// Parses the first line numbers of `-1,3 +1,4 @@`.
fn starts(hunk: &str) -> (usize, usize) {
    let mut numbers = hunk.split(' ').map(|part| {
        let digits = part.trim_start_matches(['-', '+']);
        let first = digits.split(',').next().unwrap_or_default();
        first.parse().unwrap_or(1)
    });
    (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1))
}

struct DiffWriter {
    lines: Vec<Line>,
    width: usize,
    /// Both sides are highlighted separately, so that removed lines do not affect added
    /// ones.
    old: Code,
    new: Code,
}

impl DiffWriter {
    fn new(path: &str, width: usize) -> Self {
        Self {
            lines: Vec::new(),
            width,
            old: Code::of_file(path),
            new: Code::of_file(path),
        }
    }

    fn pause(&mut self) {
        self.lines
            .push(Line::styled(format!("{:>NUMBER$}", "\u{22ee}"), DIM));
    }

    fn line(&mut self, mark: char, number: usize, text: &str) {
        let (style, code) = match mark {
            '+' => (ADDED, self.new.line(text)),
            '-' => (REMOVED, self.old.line(text)),
            _ => {
                self.old.line(text);
                (PLAIN, self.new.line(text))
            }
        };
        let number = match number {
            0 => String::new(),
            number => number.to_string(),
        };
        let before = format!("{number:>NUMBER$} ");
        let room = self.width.saturating_sub(before.len() + 2).max(8);
        // One colour per added or removed line: syntax colours would distract from the change.
        let code = match mark {
            ' ' => code,
            _ => Line::styled(code.text(), style),
        };
        for (index, part) in cut(&code, room).into_iter().enumerate() {
            let lead = match index {
                0 => Span::new(&before, DIM),
                _ => Span::new(" ".repeat(before.len()), DIM),
            };
            self.lines
                .push(part.behind(&[lead, Span::new(format!("{mark} "), style)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn change_has_numbers_and_marks() {
        let lines = between("a\nb\nc\n", "a\nB\nc\n", "f", 10, 40);
        assert_eq!(
            texts(&lines),
            ["  10   a", "  11 - b", "  11 + B", "  12   c"]
        );
        assert_eq!(lines[1].spans()[1].style(), REMOVED);
    }

    #[test]
    fn unified_diff_is_parsed() {
        let diff =
            "--- before\n+++ after\n@@ -3,2 +3,3 @@\n x\n-y\n+z\n+\x1b[2J\n@@ -20 +21 @@\n-q\n";
        assert_eq!(
            texts(&unified(diff, "f", 40)),
            [
                "   3   x",
                "   4 - y",
                "   4 + z",
                "   5 + <U+001B>[2J",
                "   \u{22ee}",
                "  20 - q"
            ]
        );
    }

    #[test]
    fn long_lines_are_broken_and_keep_their_mark() {
        let lines = whole("0123456789abcdef", "f", 20);
        assert_eq!(texts(&lines), ["   1 + 0123456789abc", "     + def"]);
    }
}
