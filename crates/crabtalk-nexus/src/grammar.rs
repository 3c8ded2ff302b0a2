//! The message line: `@FROM → @TO [TOPIC]: text`.
//!
//! Invariants: the printed form of every message from [`Message::new`] is parsed back
//! unchanged; no forwarded body has a line that could be parsed as a
//! header; reading never fails, for any output.

use crate::name::{Name, Topic};
use anstream::adapter::strip_str;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Maximum bytes of a message's body; a longer text belongs into a file.
pub const MAX_BODY: usize = 64 * 1024;

/// Characters that may precede a header: terminals begin an answer
/// with one of them.
const BULLETS: [char; 12] = ['•', '●', '⏺', '○', '◦', '▪', '·', '✦', '›', '-', '*', '+'];

/// The priority of a message.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Before all other messages; written `!`.
    Urgent,
    /// In order.
    #[default]
    Normal,
    /// After all other messages; written `-`.
    Low,
}

/// The sender, recipients and topic of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The sender.
    pub from: Name,
    /// The recipients, at least one.
    pub to: Vec<Name>,
    /// The topic; `None` is refused unless `lenient` is configured.
    pub topic: Option<Topic>,
    /// The priority.
    pub priority: Priority,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{} →", self.from)?;
        for (index, name) in self.to.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} @{name}")?;
        }
        if let Some(topic) = &self.topic {
            let mark = match self.priority {
                Priority::Urgent => "!",
                Priority::Normal => "",
                Priority::Low => "-",
            };
            write!(f, " [{topic}]{mark}")?;
        }
        f.write_str(":")
    }
}

/// A message: header and body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The header.
    pub header: Header,
    pub body: String,
}

impl Message {
    /// Creates a message that can be forwarded: removes control characters and quotes lines that
    /// look like headers.
    pub fn new(header: Header, body: &str) -> Self {
        let mut header = header;
        if header.topic.is_none() {
            header.priority = Priority::Normal;
        }
        let body = passed_on(&clean(body));
        Self { header, body }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.body.is_empty() {
            write!(f, "{}", self.header)
        } else {
            write!(f, "{} {}", self.header, self.body)
        }
    }
}

/// The messages in an agent's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    pub messages: Vec<Message>,
    /// Lines that begin like a header but are not valid.
    pub malformed: Vec<String>,
    /// Whether text precedes the first header.
    pub prose: bool,
}

pub fn read(output: &str) -> Output {
    let text = strip_str(output).to_string();
    let mut found = Output::default();
    let mut fence = Fence::default();
    let mut open: Option<(Header, Vec<&str>)> = None;
    let mut ends_in_malformed = false;
    for line in text.lines() {
        let inside = fence.takes(line);
        let parsed = if inside { Line::Text } else { Line::of(line) };
        match parsed {
            Line::Header(header, first) => {
                found.messages.extend(open.take().map(finish));
                open = Some((header, vec![first]));
                ends_in_malformed = false;
            }
            Line::Malformed => {
                found.messages.extend(open.take().map(finish));
                found.malformed.push(line.trim().to_owned());
                ends_in_malformed = true;
            }
            Line::Text => match &mut open {
                Some((_, lines)) => lines.push(line),
                None if ends_in_malformed || line.trim().is_empty() => {}
                None => found.prose = true,
            },
        }
    }
    found.messages.extend(open.take().map(finish));
    found
}

/// Parses one message from a command line.
pub fn read_one(text: &str) -> Option<Message> {
    let Line::Header(header, first) = Line::of(text.lines().next()?) else {
        return None;
    };
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    let body = if rest.is_empty() {
        first.to_owned()
    } else {
        format!("{first}\n{rest}")
    };
    Some(Message::new(header, &body))
}

fn finish((header, lines): (Header, Vec<&str>)) -> Message {
    let body = clean(&lines.join("\n"));
    Message { header, body }
}

/// Removes control characters except newlines and tabs, and trailing
/// white space.
fn clean(text: &str) -> String {
    let text = strip_str(text).to_string().replace("\r\n", "\n");
    // These characters also begin a new line on some screens.
    let text = text.replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let kept: String = text.chars().filter(is_kept).collect();
    kept.trim_end().to_owned()
}

/// A body with its header-like lines quoted.
fn passed_on(body: &str) -> String {
    let mut fence = Fence::default();
    let mut lines = Vec::new();
    // The first line follows the header and cannot be a header itself.
    for (index, line) in body.split('\n').enumerate() {
        let inside = index > 0 && fence.takes(line);
        let is_text = index == 0 || inside || matches!(Line::of(&as_seen(line)), Line::Text);
        lines.push(if is_text {
            line.to_owned()
        } else {
            format!("> {line}")
        });
    }
    lines.join("\n")
}

/// A line in canonical form: every kind of blank becomes a space, and zero-width characters
/// are removed.
fn as_seen(line: &str) -> String {
    let seen = |c: char| match (
        c.is_whitespace(),
        crabtalk_client::visible(c.encode_utf8(&mut [0; 4])),
    ) {
        (true, _) => Some(' '),
        (false, Cow::Borrowed(_)) => Some(c),
        (false, Cow::Owned(_)) => None,
    };
    line.chars().filter_map(seen).collect()
}

enum Line<'a> {
    Header(Header, &'a str),
    /// The line begins like a header: a name and an arrow.
    Malformed,
    Text,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let line = line.trim_start();
        let line = line.strip_prefix(BULLETS).map_or(line, str::trim_start);
        let Some((from, rest)) = name(line) else {
            return Self::Text;
        };
        let Some(rest) = arrow(rest) else {
            return Self::Text;
        };
        match header(from, rest) {
            Some((header, text)) => Self::Header(header, text),
            None => Self::Malformed,
        }
    }
}

/// Parses `@NAME`; returns the rest.
fn name(text: &str) -> Option<(Name, &str)> {
    let text = text.strip_prefix('@')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    Some((Name::new(&text[..end])?, &text[end..]))
}

/// Parses white space and an arrow; returns the rest. Without white space the hyphen of
/// `->` would belong to the name.
fn arrow(text: &str) -> Option<&str> {
    let rest = blanks(text);
    if rest.len() == text.len() {
        return None;
    }
    rest.strip_prefix('→').or_else(|| rest.strip_prefix("->"))
}

fn blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

fn header(from: Name, rest: &str) -> Option<(Header, &str)> {
    let mut to = Vec::new();
    let mut rest = rest;
    loop {
        let (one, behind) = name(blanks(rest))?;
        if !to.contains(&one) {
            to.push(one);
        }
        match blanks(behind).strip_prefix(',') {
            Some(more) => rest = more,
            None => {
                rest = blanks(behind);
                break;
            }
        }
    }
    let mut topic = None;
    let mut priority = Priority::Normal;
    if let Some(behind) = rest.strip_prefix('[') {
        let (text, behind) = behind.split_once(']')?;
        topic = Some(Topic::new(text)?);
        rest = behind;
        if let Some(behind) = rest.strip_prefix('!') {
            (priority, rest) = (Priority::Urgent, behind);
        } else if let Some(behind) = rest.strip_prefix('-') {
            (priority, rest) = (Priority::Low, behind);
        }
    }
    let text = blanks(rest).strip_prefix(':')?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    let header = Header {
        from,
        to,
        topic,
        priority,
    };
    Some((header, text))
}

/// The state of a Markdown code block.
#[derive(Default)]
struct Fence(Option<(char, usize)>);

impl Fence {
    /// Whether a line belongs to a code block, including its fences.
    fn takes(&mut self, line: &str) -> bool {
        let line = line.trim();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let count = mark.map_or(0, |mark| line.chars().take_while(|c| *c == mark).count());
        match (self.0, mark) {
            (None, Some(mark)) if count >= 3 => {
                // Inline code does not begin a block: "```x``` is ..".
                let is_block = mark == '~' || !line[count..].contains('`');
                if is_block {
                    self.0 = Some((mark, count));
                }
                is_block
            }
            (None, _) => false,
            (Some((open, least)), Some(mark))
                if mark == open && count >= least && line.chars().count() == count =>
            {
                self.0 = None;
                true
            }
            (Some(_), _) => true,
        }
    }
}

#[cfg(test)]
mod tests;
