//! The text of an ask: everything that an answer would allow, line by line, split into pages
//! if the screen is too small.
//!
//! Invariants: every row of foreign text is indented, including continued
//! lines, so that a model's text cannot imitate a prompt; no text is cut off.

use super::{Answer, offered};
use crabtalk_proto::{AskQuestion, AskUserEvent, visible};
use unicode_width::UnicodeWidthChar;

/// Indentation of foreign text.
const INDENT: &str = "    ";

/// Indentation of continued lines.
const BROKEN: &str = "    ... ";

/// Columns between tab stops of a terminal.
const TAB: usize = 8;

/// Minimum columns for text on a narrow terminal.
const MIN_COLUMNS: usize = 20;

/// Rows of a terminal that a page leaves free, for the prompt and the preceding
/// lines.
const SPARE_ROWS: usize = 3;

/// Minimum rows of a page.
const MIN_ROWS: usize = 3;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The full text of the requested call.
pub(crate) fn wanted(ask: &AskUserEvent, agent: &str) -> String {
    let detail = match (ask.detail.as_str(), ask.questions.first()) {
        ("", Some(question)) => question.question.as_str(),
        (detail, _) => detail,
    };
    let agent = visible(agent);
    let outside = match ask.outside {
        true => "OUTSIDE THE SANDBOX\n",
        false => "",
    };
    let mut text = format!(
        "{outside}{agent} wants to use {}{}:",
        visible(&ask.tool),
        count(detail)
    );
    indent(&mut text, detail);
    if !ask.cwd.is_empty() {
        text.push_str(&format!("\n  in {}", visible(&ask.cwd)));
    }
    if !ask.preview_kind.is_empty() {
        let what = match ask.preview_kind.as_str() {
            "diff" => "the change",
            _ => "the content",
        };
        text.push_str(&format!("\n  {what}{}:", count(&ask.preview)));
        indent(&mut text, &ask.preview);
    }
    if !ask.reason.is_empty() {
        text.push_str(&format!("\n  reason: {}", one_line(&ask.reason)));
    }
    for line in lasting(ask) {
        text.push_str(&format!("\n  {line}"));
    }
    text
}

/// One line for each lasting permission that an answer would grant.
pub(crate) fn lasting(ask: &AskUserEvent) -> Vec<String> {
    let offered = offered(ask);
    let mut lines = Vec::new();
    if let Some(rule) = &ask.always {
        let folder = match rule.cwd == ask.cwd {
            true => "this folder".to_owned(),
            false => one_line(&rule.cwd),
        };
        if offered.contains(&Answer::Always) {
            let kind = match rule.tool.as_str() {
                "bash" => "command",
                "edit" => "edit",
                _ => "call",
            };
            // An exact edit is a file and a hash, which mean nothing to a person.
            let exact = match rule.exact == ask.detail || kind == "edit" {
                true => String::new(),
                false => format!(": {}", one_line(&rule.exact)),
            };
            lines.push(format!(
                "Always: allow this exact {kind} in {folder}{exact}"
            ));
        }
        if offered.contains(&Answer::Prefix) {
            let prefix = one_line(&rule.prefix);
            lines.push(format!(
                "Prefix: allow any `{prefix} ..` command in {folder}, in the sandbox"
            ));
        }
    }
    if offered.contains(&Answer::Conversation) {
        let line = "Conversation: later commands of it reach these hosts, too";
        lines.push(line.to_owned());
    }
    lines
}

/// The number of lines of a multi-line text.
fn count(text: &str) -> String {
    match text.lines().count() {
        0 | 1 => String::new(),
        lines => format!(" ({lines} lines)"),
    }
}

fn indent(text: &mut String, block: &str) {
    for line in visible(block).lines() {
        text.push('\n');
        text.push_str(INDENT);
        text.push_str(line);
    }
}

/// Escapes line ends in a text with foreign parts.
fn one_line(text: &str) -> String {
    visible(text).lines().collect::<Vec<_>>().join(" ")
}

/// A question with its options.
pub(crate) fn question_text(question: &AskQuestion, agent: &str) -> String {
    let asked = visible(&question.question);
    let mut text = match question.header.as_str() {
        "" => format!("{agent} asks: {asked}\n"),
        header => format!("{agent} asks ({}): {asked}\n", visible(header)),
    };
    for (i, option) in question.options.iter().enumerate() {
        let description = match option.description.as_str() {
            "" => String::new(),
            description => format!(" - {}", visible(description)),
        };
        let label = visible(&option.label);
        text.push_str(&format!("  {}. {label}{description}\n", i + 1));
    }
    if question.multi_select {
        text.push_str("  (several: separate them by commas)\n");
    }
    text
}

/// Splits a text, at line ends, into pieces that fit a terminal.
pub(crate) fn pages(text: &str, size: Option<Size>) -> Vec<String> {
    let Some(size) = size else {
        return vec![format!("{text}\n")];
    };
    let rows: Vec<String> = text
        .lines()
        .flat_map(|line| rows(line, size.columns))
        .collect();
    let room = size.rows.saturating_sub(SPARE_ROWS).max(MIN_ROWS);
    rows.chunks(room)
        .map(|page| page.join("\n") + "\n")
        .collect()
}

/// Breaks a line like a terminal, marking continued lines.
fn rows(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(MIN_COLUMNS);
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for c in line.chars() {
        let width = match c {
            '\t' => TAB - used % TAB,
            c => c.width().unwrap_or(0),
        };
        if used + width > columns {
            rows.push(std::mem::replace(&mut row, BROKEN.to_owned()));
            used = BROKEN.len();
        }
        row.push(c);
        used += width;
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_into_indented_rows() {
        let text = format!("{INDENT}{}Allow this? [y]es > y", "x".repeat(26));
        let size = Some(Size {
            columns: 30,
            rows: 24,
        });
        let all = pages(&text, size).concat();
        for row in all.lines() {
            assert!(row.starts_with(INDENT), "{all}");
            assert!(row.len() <= 30, "{all}");
        }
        let joined: String = all
            .lines()
            .map(|row| row.strip_prefix(BROKEN).unwrap_or(row))
            .collect();
        assert_eq!(joined, text, "nothing is lost");
    }

    #[test]
    fn wide_characters_and_tabs_count_their_columns() {
        assert_eq!(rows(&"\u{6f22}".repeat(10), 20).len(), 1);
        assert_eq!(rows(&"\u{6f22}".repeat(11), 20).len(), 2);
        assert_eq!(rows("a\tb\tc", 20), ["a\tb\tc"]);
        assert_eq!(rows("a\tb\tcdefg", 20).len(), 2);
    }

    #[test]
    fn long_text_comes_in_pages() {
        let text = (1..=25)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(pages(&text, None).len(), 1);
        let pages = pages(
            &text,
            Some(Size {
                columns: 80,
                rows: 13,
            }),
        );
        assert_eq!(pages.len(), 3);
        assert!(pages[0].ends_with("\n10\n") && pages[2].ends_with("\n25\n"));
    }
}
