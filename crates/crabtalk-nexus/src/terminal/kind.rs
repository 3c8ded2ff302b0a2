//! Properties of each kind of terminal agent, as data.
//!
//! A kind defines how an agent is started and continued, what its screen shows
//! when it accepts a message and when it asks, which keys answer, where its
//! transcript is, and how its hooks are named. The built-in kinds are
//! files in `kind/`; the configuration may change any of their values and add
//! kinds.
//!
//! Invariant: a new kind needs code only if its transcript has a new
//! form ([`crate::terminal::transcript::Form`]).

pub(crate) mod screen;

use crate::backend::Failure;
use crate::terminal::transcript::Form;
use regex_lite::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// The built-in kinds.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("claude", include_str!("kind/claude.toml")),
    ("codex", include_str!("kind/codex.toml")),
    ("crabtalk", include_str!("kind/crabtalk.toml")),
    ("gemini", include_str!("kind/gemini.toml")),
    ("pi", include_str!("kind/pi.toml")),
];

/// A regular expression in a kind's data.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Whether the pattern matches part of a line.
    pub(crate) fn matches(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// The first group of a match in a line, or the whole match if it has no group.
    pub(crate) fn group<'a>(&self, line: &'a str) -> Option<&'a str> {
        let found = self.0.captures(line)?;
        found
            .get(1)
            .or_else(|| found.get(0))
            .map(|group| group.as_str())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_str().fmt(f)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Regex::new(&text).map(Self).map_err(|error| {
            serde::de::Error::custom(format!("{text:?} is not a valid pattern: {error}"))
        })
    }
}

/// A kind of terminal agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The command of a new session.
    pub command: Vec<String>,
    /// The command that continues a session; if empty, `command`.
    #[serde(default)]
    pub resume: Vec<String>,
    /// Variables for both commands.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files that the commands refer to, written before the start.
    #[serde(default)]
    pub files: Vec<KindFile>,
    /// Files and folders of the program that it may change in the sandbox.
    #[serde(default)]
    pub writable: Vec<String>,
    /// Files and folders of the program that it may read in the sandbox.
    #[serde(default)]
    pub readable: Vec<String>,
    /// How to detect that it accepts messages.
    pub ready: Ready,
    /// The input field for messages.
    #[serde(default)]
    pub composer: Composer,
    /// Its prompts.
    #[serde(default)]
    pub prompts: Vec<PromptRule>,
    /// Its transcript.
    pub transcript: Option<Place>,
    /// Its commands.
    #[serde(default)]
    pub commands: Commands,
    /// The names of its hooks.
    #[serde(default)]
    pub hooks: HookNames,
    /// Lines of the screen that change without activity.
    #[serde(default)]
    pub moving: Vec<Pattern>,
}

/// A file of a kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindFile {
    /// Its name in the agent's state folder.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// How to detect that an agent accepts messages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// A line that the screen must show.
    pub shows: Pattern,
    /// Lines that the screen must not show, such as questions before the composer.
    #[serde(default)]
    pub unless: Vec<Pattern>,
    /// How long the screen must meet this, since such a question may appear late.
    #[serde(default = "settle_ms")]
    pub settle_ms: u64,
    /// Timeout of readiness.
    #[serde(default = "within_secs")]
    pub within_secs: u64,
}

fn settle_ms() -> u64 {
    300
}

fn within_secs() -> u64 {
    60
}

/// The input field for messages.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composer {
    /// Its first line; the group is the draft. The last matching line counts.
    pub line: Option<Pattern>,
    /// Alternatively, the lines above and below it; the last two matching lines count.
    pub frame: Option<Pattern>,
    /// A line after the draft.
    pub below: Option<Pattern>,
    /// The text of an empty composer.
    pub placeholder: Option<Pattern>,
    /// The column of the cursor in an empty composer.
    pub empty_column: Option<usize>,
    /// Keys that clear the draft, pressed until it is empty.
    #[serde(default)]
    pub clear: Vec<String>,
}

/// A prompt on its screen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptRule {
    /// The name of the tool in rules; empty if it varies.
    #[serde(default)]
    pub tool: String,
    /// The line with the question.
    pub ask: Pattern,
    /// The line with the choices, below the question.
    pub choice: Pattern,
    /// Maximum number of lines between the two.
    #[serde(default = "between")]
    pub between: usize,
    /// Maximum number of lines with text after the choices; an old prompt further up
    /// the screen has more.
    #[serde(default = "below")]
    pub below: usize,
    /// The position of the cursor while the prompt is open.
    #[serde(default)]
    pub cursor: CursorAt,
    /// The line with the subject, which is the pattern's group.
    pub subject: Option<Pattern>,
    /// Keys that allow it once.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Keys that allow it always, if the screen offers that.
    #[serde(default)]
    pub always: Vec<String>,
    /// The line that offers it; the group is what it would allow.
    pub offers_always: Option<Pattern>,
    /// Keys that deny it.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Keys that deny it with a reason; `{reason}` is replaced.
    #[serde(default)]
    pub deny_because: Vec<String>,
    /// Whether it is a question to a person instead of an approval.
    #[serde(default)]
    pub is_question: bool,
    /// Whether the transcript records the call before the prompt; if so, text that only looks
    /// like a prompt is ignored.
    #[serde(default)]
    pub call: bool,
    /// Whether the prompt replaces the composer, between the last two lines of
    /// the composer's frame; text above them is output.
    #[serde(default)]
    pub framed: bool,
}

fn between() -> usize {
    40
}

fn below() -> usize {
    4
}

/// The position of the cursor while a prompt is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CursorAt {
    /// Anywhere.
    #[default]
    Any,
    /// Not shown.
    Hidden,
    /// Shown on the line with the choices.
    Choice,
}

/// The path and form of the transcript.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its form.
    pub form: Form,
    /// The path of its files, with `*` in names.
    pub files: String,
    /// How long after a message is on the screen it may appear in the transcript: some
    /// programs write nothing before the first answer.
    #[serde(default = "late_secs")]
    pub late_secs: u64,
}

fn late_secs() -> u64 {
    10
}

/// Commands for an agent other than messages.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Commands {
    /// The command that replaces the history by a summary.
    pub compact: Option<String>,
    /// The command that clears the history.
    pub clear: Option<String>,
    /// Which of the two compresses a context by default.
    pub compress: Compress,
    /// A line that the screen shows after the history was cleared.
    pub cleared: Option<Pattern>,
    /// Keys that cancel the turn in flight.
    pub cancel: Vec<String>,
}

/// How a context is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// The history is cleared; the agent's files remain.
    #[default]
    Clear,
    /// A summary replaces the history.
    Compact,
}

/// The names of a kind's hooks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookNames {
    /// Hooks at the beginning of a turn.
    pub began: Vec<String>,
    /// Hooks at the end of a turn.
    pub ended: Vec<String>,
}

/// All kinds: the built-in ones with the configured changes and additions.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    kinds: BTreeMap<String, Kind>,
}

impl Kinds {
    /// Merges `changes` into the built-in kinds: tables are merged,
    /// other values are replaced. A new kind may be based on another one
    /// by `like = "codex"`.
    pub fn new(changes: &Table) -> Result<Self, Failure> {
        let mut tables = BTreeMap::new();
        for (name, text) in BUILT_IN {
            let table: Table = text.parse().map_err(|error| wrong(name, error))?;
            tables.insert((*name).to_owned(), table);
        }
        let mut waiting: Vec<(&String, Table)> = Vec::new();
        for (name, change) in changes {
            let Value::Table(change) = change else {
                return Err(wrong(name, "has to be a table"));
            };
            if change.contains_key("like") {
                waiting.push((name, change.clone()));
                continue;
            }
            let base = tables.remove(name).unwrap_or_default();
            tables.insert(name.clone(), merged(base, change.clone()));
        }
        // A kind may be based on one that is itself based on another.
        while let Some(at) = waiting
            .iter()
            .position(|(_, change)| tables.contains_key(like(change)))
        {
            let (name, mut change) = waiting.swap_remove(at);
            let base = tables.get(like(&change)).cloned().unwrap_or_default();
            change.remove("like");
            tables.insert(name.clone(), merged(base, change));
        }
        if let Some((name, change)) = waiting.first() {
            let like = like(change);
            return Err(wrong(
                name,
                format!("is like {like:?}, which is not a known kind"),
            ));
        }
        let kind = |(name, table): (String, Table)| match Kind::deserialize(table) {
            Ok(kind) if kind.command.is_empty() => Err(wrong(&name, "`command` is empty")),
            Ok(kind) => Ok((name, kind)),
            Err(error) => Err(wrong(&name, error)),
        };
        Ok(Self {
            kinds: tables.into_iter().map(kind).collect::<Result<_, _>>()?,
        })
    }

    /// Finds a kind by name.
    pub fn get(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name)
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }
}

fn wrong(kind: &str, said: impl fmt::Display) -> Failure {
    Failure::Failed(format!("kind {kind:?}: {}", said.to_string().trim_end()))
}

/// The kind on which another one is based.
fn like(change: &Table) -> &str {
    change
        .get("like")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn merged(mut base: Table, change: Table) -> Table {
    for (name, value) in change {
        let value = match (base.remove(&name), value) {
            (Some(Value::Table(base)), Value::Table(change)) => Value::Table(merged(base, change)),
            (_, value) => value,
        };
        base.insert(name, value);
    }
    base
}

#[cfg(test)]
mod tests;
