//! Properties of each kind of terminal agent, as data.
//!
//! A kind says how an agent is started and taken up again, what its screen looks
//! like when it takes a message and when it asks, which keys answer, where its
//! transcript lies, and what makes it ring. Those that come with this crate are
//! files in `kind/`; the configuration may change any value of them, and add
//! kinds.
//!
//! Invariant: a new kind needs code only if its transcript has a form of its
//! own ([`crate::terminal::transcript::Form`]).

pub(crate) mod screen;

use crate::backend::Failure;
use crate::terminal::transcript::Form;
use regex_lite::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// The kinds that come with this crate.
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
    /// Whether it matches somewhere in a line.
    pub(crate) fn matches(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// Its first group in a line, or all that matches if it has none.
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
    /// What starts a new session.
    pub command: Vec<String>,
    /// What takes a session up again; the same as a new one where it is empty.
    #[serde(default)]
    pub resume: Vec<String>,
    /// Added to the environment of both.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files that its commands name, written before it starts.
    #[serde(default)]
    pub files: Vec<KindFile>,
    /// Its files and folders that it may change in the sandbox.
    #[serde(default)]
    pub writable: Vec<String>,
    /// Its files and folders that it may read there.
    #[serde(default)]
    pub readable: Vec<String>,
    /// When it takes a message.
    pub ready: Ready,
    /// Where a message is typed.
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
    /// What its hooks are called.
    #[serde(default)]
    pub hooks: HookNames,
    /// Lines of the screen that move while nothing happens.
    #[serde(default)]
    pub moving: Vec<Pattern>,
}

/// A file that a kind brings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindFile {
    /// Its name in the agent's state folder.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// When an agent takes a message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// A line that the screen shows then.
    pub shows: Pattern,
    /// Lines that it does not show then, such as questions before the composer.
    #[serde(default)]
    pub unless: Vec<Pattern>,
    /// For how long it has to look like that: such a question may come late.
    #[serde(default = "settle_ms")]
    pub settle_ms: u64,
    /// How long it may take to come to that.
    #[serde(default = "within_secs")]
    pub within_secs: u64,
}

fn settle_ms() -> u64 {
    300
}

fn within_secs() -> u64 {
    60
}

/// Where a message is typed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composer {
    /// Its first line; the group is what was typed. The last such line counts.
    pub line: Option<Pattern>,
    /// Or: it stands between the last two such lines.
    pub frame: Option<Pattern>,
    /// A line that follows what was typed.
    pub below: Option<Pattern>,
    /// The text of an empty composer.
    pub placeholder: Option<Pattern>,
    /// The column of the cursor in an empty composer.
    pub empty_column: Option<usize>,
    /// Keys that take away what was typed, pressed until nothing is left.
    #[serde(default)]
    pub clear: Vec<String>,
}

/// A prompt on its screen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptRule {
    /// The tool that wants to run, as rules name it; empty if that differs.
    #[serde(default)]
    pub tool: String,
    /// The line with the question.
    pub ask: Pattern,
    /// The line that waits for a key, below the question.
    pub choice: Pattern,
    /// How many lines may lie between the two.
    #[serde(default = "between")]
    pub between: usize,
    /// How many lines with text may follow that line: an old prompt further up
    /// the screen has more.
    #[serde(default = "below")]
    pub below: usize,
    /// Where the cursor is while it waits.
    #[serde(default)]
    pub cursor: CursorAt,
    /// The line that says what would be done; its group is that.
    pub subject: Option<Pattern>,
    /// Keys that allow it once.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Keys that allow it always, where the screen offers that.
    #[serde(default)]
    pub always: Vec<String>,
    /// The line that offers it; its group is what it would allow.
    pub offers_always: Option<Pattern>,
    /// Keys that refuse it.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Keys that refuse it with a reason, with `{reason}` in its place.
    #[serde(default)]
    pub deny_because: Vec<String>,
    /// Whether it is a question to a person and no approval.
    #[serde(default)]
    pub is_question: bool,
    /// Whether the transcript has its call before, without a result: then text that only
    /// looks like a prompt is ignored.
    #[serde(default)]
    pub call: bool,
    /// Whether it takes the place of the composer, between the last two lines of
    /// the composer's frame: text above them is output.
    #[serde(default)]
    pub framed: bool,
}

fn between() -> usize {
    40
}

fn below() -> usize {
    4
}

/// Where the cursor is while a prompt waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CursorAt {
    /// Anywhere.
    #[default]
    Any,
    /// Not shown.
    Hidden,
    /// Shown, on the line that waits.
    Choice,
}

/// Where the transcript lies.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its form.
    pub form: Form,
    /// Its files, with `*` within names.
    pub files: String,
    /// How long a message that the screen shows may take to arrive there: some
    /// programs write nothing before the first answer.
    #[serde(default = "late_secs")]
    pub late_secs: u64,
}

fn late_secs() -> u64 {
    10
}

/// What an agent is told beside messages.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Commands {
    /// Puts a summary in the place of the history.
    pub compact: Option<String>,
    /// Puts the history away.
    pub clear: Option<String>,
    /// Which of the two compresses a context, unless the configuration says it.
    pub compress: Compress,
    /// A line that the screen shows when the history was put away.
    pub cleared: Option<Pattern>,
    /// Keys that end the turn in flight.
    pub cancel: Vec<String>,
}

/// What makes a context small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// The history is put away; what the agent wrote into its files remains.
    #[default]
    Clear,
    /// A summary takes its place.
    Compact,
}

/// What its hooks are called.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookNames {
    /// A turn began.
    pub began: Vec<String>,
    /// A turn ended.
    pub ended: Vec<String>,
}

/// All kinds: those that come with this crate, changed and added to.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    kinds: BTreeMap<String, Kind>,
}

impl Kinds {
    /// The kinds that come with this crate, with what `changes` says of each
    /// laid over: tables are merged, anything else is replaced. A kind of one's
    /// own may begin as another one, by `like = "codex"`.
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
        // One may be like another one that is like a third.
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

    /// One of them.
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

/// The kind that another one begins as.
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
