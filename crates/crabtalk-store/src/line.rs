//! Parses the lines of a log (STORE-1) leniently: absent fields are empty, unknown fields
//! and lines are skipped.

mod lenient;

use crate::fields;
use crabtalk_domain::storage::{MetaRecord, RunPhase, RunRecord};
use crabtalk_domain::{ConversationKey, Message, Role, ToolCall, Usage};
use lenient::{Blocks, Pictures, Text};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Position of a marker, a run's end or a state change among the preceding lines, so that
/// these need not be read. Absent in old logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Stamp {
    /// Offset of the last marker before this line; 0 if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prev: Option<u64>,
    /// Number of messages in the file before this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Marker {
    pub(crate) summary: String,
    pub(crate) title: String,
    pub(crate) archived_at: String,
    pub(crate) keep: usize,
    /// Offset of the earlier marker whose archive becomes the working history, if this
    /// reopens one.
    pub(crate) reopen: Option<u64>,
    pub(crate) stamp: Stamp,
}

impl Marker {
    /// The summary as a message of the history.
    pub(crate) fn into_message(self) -> Message {
        let mut message = Message::user(self.summary);
        message.at = self.archived_at;
        message
    }
}

/// A line after the first.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    Message(Box<Message>),
    Marker(Marker),
    /// Offset of the message or marker before which the restored history ends.
    Rewind(u64, Stamp),
    Meta(Box<MetaRecord>, Stamp),
    Run(Box<RunRecord>, Stamp),
    /// A message with a role that is not used in histories, such as `system`.
    ForeignRole,
    /// A line of a later version.
    Unknown,
}

impl Line {
    /// Offset of the message or marker before which the restored history ends.
    pub(crate) fn points_back(&self) -> Option<u64> {
        match self {
            Self::Rewind(to, _) => Some(*to),
            Self::Marker(marker) => marker.reopen,
            Self::Message(_) | Self::Meta(..) | Self::Run(..) => None,
            Self::ForeignRole | Self::Unknown => None,
        }
    }

    /// Whether this is a run's start that must be followed by a message. Both are one
    /// append; only a resumed run starts without a message.
    pub(crate) fn is_run_without_message(&self) -> bool {
        matches!(self, Self::Run(run, _) if run.phase == RunPhase::Start && run.tries == 0)
    }
}

/// Line 1.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Head {
    pub(crate) agent: String,
    pub(crate) created_by: String,
    #[serde(default)]
    pub(crate) created_at: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) uptime_secs: u64,
}

impl Head {
    pub(crate) fn is_of(&self, key: &ConversationKey) -> bool {
        self.agent == key.agent.as_str() && self.created_by == key.sender.as_str()
    }

    /// The pair, if the daemon could have written these names.
    pub(crate) fn key(&self) -> Option<ConversationKey> {
        ConversationKey::new(&self.agent, &self.created_by).ok()
    }
}

/// Parses line 1; the error describes the fault.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Head, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    object(bytes)?;
    serde_json::from_slice(bytes).map_err(|e| format!("the line is not the metadata of a log: {e}"))
}

/// Parses a line after the first; the error describes the fault.
pub(crate) fn parse(bytes: &[u8]) -> Result<Line, String> {
    if let Err(reason) = object(bytes) {
        return match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => Ok(Line::Unknown),
            Err(_) => Err(reason),
        };
    }
    let raw: RawLine = match serde_json::from_slice(bytes) {
        Ok(raw) => raw,
        Err(error) if error.is_data() && is_foreign(bytes) => return Ok(Line::Unknown),
        Err(error) => return Err(error.to_string()),
    };
    let stamp = Stamp {
        prev: raw.prev,
        messages: raw.messages,
    };
    if let Some(role) = &raw.role {
        let role = match role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => return Ok(Line::ForeignRole),
        };
        if raw.auto_injected {
            return Ok(Line::Unknown);
        }
        return Ok(Line::Message(Box::new(raw.into_message(role))));
    }
    if let Some(summary) = raw.compact {
        let (title, archived_at) = (raw.title.0, raw.archived_at.0);
        return Ok(Line::Marker(Marker {
            summary,
            title,
            archived_at,
            keep: raw.keep,
            reopen: raw.reopen,
            stamp,
        }));
    }
    if let Some(to) = raw.rewind {
        return Ok(Line::Rewind(to, stamp));
    }
    if let Some(meta) = raw.meta {
        return Ok(Line::Meta(Box::new(meta), stamp));
    }
    Ok(raw
        .run
        .map_or(Line::Unknown, |run| Line::Run(Box::new(run), stamp)))
}

/// Whether a valid object is of no known kind; its fields may then have any type.
fn is_foreign(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Keys {
        role: Option<IgnoredAny>,
        compact: Option<IgnoredAny>,
        rewind: Option<IgnoredAny>,
        meta: Option<IgnoredAny>,
        run: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Keys>(bytes).is_ok_and(|keys| {
        [keys.role, keys.compact, keys.rewind, keys.meta, keys.run]
            .iter()
            .all(Option::is_none)
    })
}

/// The type of a line, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Message,
    Marker,
    Other,
}

/// Classifies a line without parsing all of it; an unreadable line is not a
/// message.
pub(crate) fn kind(bytes: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Keys<'a> {
        #[serde(borrow)]
        role: Option<Cow<'a, str>>,
        #[serde(default)]
        auto_injected: bool,
        compact: Option<IgnoredAny>,
    }
    match serde_json::from_slice::<Keys<'_>>(bytes) {
        Ok(Keys {
            role: Some(role),
            auto_injected,
            ..
        }) => {
            let known = matches!(&*role, "user" | "assistant" | "tool");
            if known && !auto_injected {
                Kind::Message
            } else {
                Kind::Other
            }
        }
        Ok(Keys {
            compact: Some(_), ..
        }) => Kind::Marker,
        _ => Kind::Other,
    }
}

/// Checks that the line is an object; an array would be parsed as its fields in
/// order.
fn object(bytes: &[u8]) -> Result<(), String> {
    match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(b'{') => Ok(()),
        Some(_) => Err("the line is not a JSON object".into()),
        None => Err("the line is empty".into()),
    }
}

/// Whether a line is empty.
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawLine {
    role: Option<String>,
    content: Text,
    tool_calls: Option<Vec<RawCall>>,
    tool_call_id: Text,
    is_error: bool,
    images: Pictures,
    thinking: Blocks,
    agent: Text,
    at: Text,
    usage: Option<Usage>,
    auto_injected: bool,
    compact: Option<String>,
    title: Text,
    archived_at: Text,
    keep: usize,
    reopen: Option<u64>,
    rewind: Option<u64>,
    prev: Option<u64>,
    messages: Option<u64>,
    #[serde(deserialize_with = "fields::meta")]
    meta: Option<MetaRecord>,
    #[serde(deserialize_with = "fields::run")]
    run: Option<RunRecord>,
}

impl RawLine {
    fn into_message(self, role: Role) -> Message {
        let mut message = Message::new(role, self.content.0);
        message.tool_calls = self
            .tool_calls
            .unwrap_or_default()
            .into_iter()
            .map(RawCall::into_call)
            .collect();
        message.tool_call_id = self.tool_call_id.0;
        message.is_error = self.is_error;
        message.thinking = self.thinking.0;
        message.agent = self.agent.0;
        message.at = self.at.0;
        message.usage = self.usage;
        if self.images.0.is_empty() {
            return message;
        }
        let (images, notes): (Vec<_>, Vec<_>) = self.images.0.into_iter().partition(Result::is_ok);
        message = message.with_images(images.into_iter().flatten().collect());
        for note in notes.into_iter().filter_map(Result::err) {
            message.push_note(&note);
        }
        message
    }
}

/// The format of CrabTalk, or that of a common provider.
#[derive(Deserialize)]
struct RawCall {
    #[serde(default)]
    id: Text,
    #[serde(default)]
    name: Text,
    #[serde(default)]
    arguments: Text,
    function: Option<RawFunction>,
}

#[derive(Deserialize)]
struct RawFunction {
    #[serde(default)]
    name: Text,
    #[serde(default)]
    arguments: Text,
}

impl RawCall {
    fn into_call(self) -> ToolCall {
        let (name, arguments) = match self.function {
            Some(function) => (function.name.0, function.arguments.0),
            None => (self.name.0, self.arguments.0),
        };
        ToolCall {
            id: self.id.0,
            name,
            arguments,
        }
    }
}
