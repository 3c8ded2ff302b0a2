//! Parses the text of a `SKILL.md`: frontmatter and prompt, as in agentskills.io.
//!
//! Findings fail a check and are warnings when loading. Invariant: any text gives a
//! document or a refusal.

mod field;

use crate::skills::finding::{Finding, Level, Trouble};
use crabtalk_files::Frontmatter;
use crabtalk_files::tree::{Field, Value};
use crabtalk_files::yaml::{self, Bounds};
use field::Judge;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest `SKILL.md`, all of which is sent to the model. The format recommends 5,000
/// tokens.
pub const MAX_SKILL_BYTES: u64 = 1024 * 1024;

/// Largest frontmatter: a description has 1,024 characters at most.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;

/// Limits of the YAML: six fields and some metadata need a few dozen values and two levels.
const BOUNDS: Bounds = Bounds {
    nodes: 2_000,
    depth: 16,
    aliases: 16,
};

/// Longest body in lines that the format recommends.
const ADVISED_LINES: usize = 500;

/// The content of a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Document {
    pub(crate) name: Option<String>,
    pub(crate) name_line: Option<usize>,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) compatibility: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) body: String,
}

/// The frontmatter and the body of a text, and the lines before the YAML.
struct Parts<'a> {
    front: Option<&'a str>,
    lines_before: usize,
    body: &'a str,
}

/// Parses the bytes of a `SKILL.md`. Findings name `file`.
pub(crate) fn parse(bytes: &[u8], file: &Path) -> Result<(Document, Vec<Finding>), Finding> {
    let refused = |line, trouble| Finding::new(Level::Refused, file, line, trouble);
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        refused(
            Some(line),
            Trouble::new("is not UTF-8 text", "save it as UTF-8"),
        )
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text: Cow<'_, str> = if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n").into()
    } else {
        text.into()
    };
    let mut judge = Judge::new(file);
    let parts = split(&text, &mut judge).map_err(|trouble| refused(Some(1), trouble))?;
    let mut document = Document::default();
    if let Some(front) = parts.front {
        if front.len() > MAX_FRONTMATTER_BYTES {
            return Err(refused(
                Some(1),
                Trouble::new(
                    format!(
                        "the frontmatter has {} bytes, the limit is {MAX_FRONTMATTER_BYTES}",
                        front.len()
                    ),
                    "move long values into the text below it",
                ),
            ));
        }
        judge.lines_before = parts.lines_before;
        let fields = read_yaml(front, &mut judge).map_err(|invalid| {
            refused(
                Some(parts.lines_before + line(&invalid)),
                Trouble::new(
                    format!("the frontmatter is refused: {}", invalid.message),
                    "write plain `key: value` lines, with quotes around values that hold `: `",
                ),
            )
        })?;
        judge.fields(fields, &mut document);
    }
    document.body = parts.body.trim().to_owned();
    judge.required(&mut document);
    judge_body(&document.body, &mut judge);
    Ok((document, judge.findings))
}

fn judge_body(body: &str, judge: &mut Judge<'_>) {
    let lines = body.lines().count();
    if body.is_empty() {
        judge.say(
            Level::Advice,
            None,
            "there is no text below the frontmatter",
            "write the instructions for the agent there",
        );
    } else if lines > ADVISED_LINES {
        judge.say(
            Level::Advice,
            None,
            format!("the text has {lines} lines, and all go to the model"),
            format!("stay below {ADVISED_LINES} and move details into references/"),
        );
    }
}

fn split<'a>(text: &'a str, judge: &mut Judge<'_>) -> Result<Parts<'a>, Trouble> {
    let start = text.len() - text.trim_start_matches(['\n', ' ', '\t']).len();
    let found = Frontmatter::of(&text[start..]);
    if found == Frontmatter::Missing {
        judge.say(
            Level::Wrong,
            Some(1),
            "there is no frontmatter",
            "begin with a line `---`, then `name:` and `description:`, then a line `---`",
        );
    } else if start > 0 {
        judge.say(
            Level::Wrong,
            Some(1),
            "the frontmatter does not begin on the first line",
            "put `---` on the first line",
        );
    }
    match found {
        Frontmatter::Missing => Ok(Parts {
            front: None,
            lines_before: 0,
            body: text,
        }),
        Frontmatter::Found { front, body } => Ok(Parts {
            front: Some(front),
            lines_before: 1 + text[..start].matches('\n').count(),
            body,
        }),
        Frontmatter::Unended => Err(Trouble::new(
            "the frontmatter has no end",
            "put a line `---` after its last field",
        )),
    }
}

/// Parses the frontmatter; if it is invalid, again with quotes around values that lack
/// them, a common mistake in skills of other agents.
fn read_yaml(front: &str, judge: &mut Judge<'_>) -> Result<Vec<Field>, yaml::Invalid> {
    let invalid = match fields(front) {
        Ok(fields) => return Ok(fields),
        Err(invalid) => invalid,
    };
    let Some(quoted) = quote_values(front) else {
        return Err(invalid);
    };
    let Ok(fields) = fields(&quoted) else {
        return Err(invalid);
    };
    judge.say_in_front(
        Level::Wrong,
        line(&invalid),
        format!("not valid YAML: {}", invalid.message),
        "put quotes around the value",
    );
    Ok(fields)
}

fn fields(front: &str) -> Result<Vec<Field>, yaml::Invalid> {
    let node = yaml::tree(front, BOUNDS)?;
    let Value::Table(fields) = node.value else {
        return Err(yaml::Invalid {
            at: Some(node.at),
            message: "expected `key: value` lines".to_owned(),
        });
    };
    Ok(fields)
}

fn line(invalid: &yaml::Invalid) -> usize {
    invalid.at.map_or(1, |at| at.line)
}

/// Quotes plain values that contain `: ` or end in a colon; `None` if there are none.
fn quote_values(front: &str) -> Option<String> {
    let mut changed = false;
    let lines: Vec<Cow<'_, str>> = front
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((key, value)) if needs_quotes(key, value.trim()) => {
                changed = true;
                format!("{key}: '{}'", value.trim().replace('\'', "''")).into()
            }
            Some(_) | None => line.into(),
        })
        .collect();
    changed.then(|| lines.join("\n"))
}

fn needs_quotes(key: &str, value: &str) -> bool {
    let key_like = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // Anchors, aliases, tags, flow and block values are unchanged.
    let plain = !value.starts_with([
        '\'', '"', '|', '>', '[', '{', '&', '*', '!', '#', '%', '@', '`',
    ]);
    key.chars().all(key_like) && plain && (value.contains(": ") || value.ends_with(':'))
}

#[cfg(test)]
mod tests;
