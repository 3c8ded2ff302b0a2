//! The double's transcript, and the turn that stands last in it.

use crabtalk_nexus::backend::Prompt;
use crabtalk_nexus::grammar;
use std::fs;
use std::path::Path;

/// Milliseconds of a turn.
const TURN_MS: u64 = 20_000;

/// A line of the transcript.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Line {
    /// A user turn.
    User { id: String, text: String, at: u64 },
    /// A prompt was answered.
    Pressed { id: String, allow: bool, at: u64 },
    /// The process ended in the middle of a turn.
    Died { id: String },
}

/// Reads a transcript.
pub(crate) fn lines(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let of = |line: &str| serde_json::from_str(line).unwrap();
    text.lines().map(of).collect()
}

/// The last user turn.
pub(super) struct LastTurn {
    pub(super) index: usize,
    pub(super) id: String,
    pub(super) text: String,
    /// When it ends, unless it is ended.
    pub(super) ends_at: Option<u64>,
    pub(super) prompt: Option<Prompt>,
    pub(super) denied: bool,
    pub(super) died: bool,
    pub(super) attempt: usize,
}

impl LastTurn {
    pub(super) fn waits(&self, id: &str) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| prompt.id == id)
    }
}

pub(super) fn turn_of(lines: &[Line]) -> Option<LastTurn> {
    let is_user = |line: &Line| matches!(line, Line::User { .. });
    let index = lines.iter().rposition(is_user)?;
    let Line::User { id, text, at } = lines[index].clone() else {
        return None;
    };
    let pressed = lines[index..].iter().find_map(|line| match line {
        Line::Pressed { allow, at, .. } => Some((*allow, *at)),
        Line::User { .. } | Line::Died { .. } => None,
    });
    let said = body(&text);
    let asks = said.strip_prefix("prompt ");
    let prompt = asks.filter(|_| pressed.is_none()).map(|command| Prompt {
        id: format!("p-{id}"),
        tool: "bash".into(),
        subject: command.into(),
        exact: true,
        text: format!("Run {command}?"),
        ..Prompt::default()
    });
    let from = pressed.map_or(at, |(_, at)| at);
    let deaths = |line: &&Line| matches!(line, Line::Died { .. });
    Some(LastTurn {
        index,
        ends_at: prompt.is_none().then_some(from + TURN_MS),
        prompt,
        denied: pressed.is_some_and(|(allow, _)| !allow),
        died: lines[index..].iter().any(|line| deaths(&line)),
        attempt: lines.iter().filter(deaths).count(),
        id,
        text,
    })
}

pub(super) fn body(text: &str) -> String {
    grammar::read_one(text).map_or_else(String::new, |message| message.body)
}
