//! Reads a screen by the rules of a kind: an open prompt, and the composer with its draft.
//!
//! Invariant: a prompt is open only if its question is followed by the line
//! with the choices, near the end of the screen, with the cursor in its position; text
//! of an old prompt further up does not count.

use super::{Composer, CursorAt, Kind, Pattern, PromptRule};
use crate::terminal::tmux::look::Look;
use std::ops::Range;

/// A prompt that the screen shows.
#[derive(Debug, Clone)]
pub(crate) struct Shown<'a> {
    /// The rule that it matches.
    pub(crate) rule: &'a PromptRule,
    /// The text from the question to the last line.
    pub(crate) text: String,
    /// The text from the question to the choices, without changing parts: equal keys of two reads
    /// mean the same prompt.
    pub(crate) key: String,
    /// The command or path, if the screen shows it completely on one line.
    pub(crate) subject: Option<String>,
    /// The tool from the rule or the question.
    pub(crate) tool: String,
    /// What "always" would allow, if offered.
    pub(crate) always: Option<String>,
}

impl Kind {
    pub(crate) fn prompt<'a>(&'a self, look: &Look) -> Option<Shown<'a>> {
        if look.in_mode || look.is_dead {
            return None;
        }
        let frame = self.composer.frame.as_ref();
        let shown = |rule: &'a PromptRule| rule.shown(look, &self.moving, frame);
        self.prompts.iter().find_map(shown)
    }

    /// Whether the agent accepts a message.
    pub(crate) fn is_ready(&self, look: &Look) -> bool {
        let shows = |pattern: &Pattern| look.lines.iter().any(|line| pattern.matches(line));
        !look.is_dead
            && shows(&self.ready.shows)
            && !self.ready.unless.iter().any(shows)
            && self.prompt(look).is_none()
    }

    /// The screen without lines that change without activity.
    pub(crate) fn still(&self, look: &Look) -> String {
        let moves = |line: &&String| self.moving.iter().any(|pattern| pattern.matches(line));
        let lines = look.lines.iter().filter(|line| !moves(line));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl PromptRule {
    fn shown(&self, look: &Look, moving: &[Pattern], frame: Option<&Pattern>) -> Option<Shown<'_>> {
        let lines = &look.lines;
        let room = self.room(look, frame)?;
        let choice = lines.iter().rposition(|line| self.choice.matches(line))?;
        let filled = lines[choice + 1..]
            .iter()
            .filter(|line| !line.trim().is_empty());
        if filled.count() > self.below {
            return None;
        }
        let in_place = match self.cursor {
            CursorAt::Any => true,
            CursorAt::Hidden => !look.is_cursor_shown,
            CursorAt::Choice => look.is_cursor_shown && look.cursor.1 == choice,
        };
        if !in_place {
            return None;
        }
        let first = choice.saturating_sub(self.between).max(room.start);
        if !room.contains(&choice) {
            return None;
        }
        let ask = lines[first..choice]
            .iter()
            .rposition(|line| self.ask.matches(line))?
            + first;
        let subject = self.subject.as_ref().and_then(|pattern| {
            let mut found = (ask + 1..choice).filter(|&at| pattern.matches(&lines[at]));
            let (Some(at), None) = (found.next(), found.next()) else {
                return None;
            };
            // A subject that continues on the next line was not read completely.
            let mut rest = lines[at + 1..choice].iter();
            let is_whole = rest.all(|line| line.trim().is_empty());
            let group = pattern.group(&lines[at]).filter(|_| is_whole)?;
            Some(group.to_owned())
        });
        let named = self
            .ask
            .group(&lines[ask])
            .filter(|group| *group != lines[ask].as_str());
        let tool = match (self.tool.as_str(), named) {
            ("", Some(named)) if named.len() < lines[ask].trim().len() => named.to_owned(),
            (tool, _) => tool.to_owned(),
        };
        let end = lines
            .iter()
            .rposition(|line| !line.is_empty())
            .unwrap_or(choice);
        let offered = self.offers_always.as_ref().and_then(|pattern| {
            let mut of = lines[ask..=end].iter();
            of.find_map(|line| pattern.group(line))
        });
        let always = offered.filter(|_| !self.always.is_empty());
        Some(Shown {
            always: always.map(|text| text.trim().to_owned()),
            rule: self,
            text: lines[ask..=end].join("\n"),
            key: lines[ask..=choice]
                .iter()
                .filter(|line| !moving.iter().any(|pattern| pattern.matches(line)))
                .map(|line| format!("{line}\n"))
                .collect(),
            subject,
            tool,
        })
    }
}

impl PromptRule {
    /// The range of lines that may contain the prompt.
    fn room(&self, look: &Look, frame: Option<&Pattern>) -> Option<Range<usize>> {
        let lines = &look.lines;
        let Some(frame) = frame.filter(|_| self.framed) else {
            return Some(0..lines.len());
        };
        let end = lines.iter().rposition(|line| frame.matches(line))?;
        let begin = lines[..end].iter().rposition(|line| frame.matches(line))?;
        Some(begin..end)
    }
}

impl Composer {
    /// The draft; `None` if the composer is not on the screen.
    pub(crate) fn draft(&self, look: &Look) -> Option<String> {
        let lines = &look.lines;
        let mut typed: Vec<&str> = Vec::new();
        if let Some(frame) = &self.frame {
            let end = lines.iter().rposition(|line| frame.matches(line))?;
            let begin = lines[..end].iter().rposition(|line| frame.matches(line))?;
            typed.extend(lines[begin + 1..end].iter().map(String::as_str));
        } else {
            let pattern = self.line.as_ref()?;
            let begin = lines.iter().rposition(|line| pattern.matches(line))?;
            typed.push(pattern.group(&lines[begin])?);
            let below = |line: &&String| match &self.below {
                Some(below) => !below.matches(line),
                None => false,
            };
            let rest = lines[begin + 1..].iter().take_while(below);
            typed.extend(rest.map(String::as_str));
            let home = self.empty_column.map(|column| (column, begin));
            if look.is_cursor_shown && home == Some(look.cursor) {
                return Some(String::new());
            }
        }
        let draft = typed.join("\n").trim().to_owned();
        let is_placeholder = self.placeholder.as_ref().is_some_and(|p| p.matches(&draft));
        Some(if is_placeholder { String::new() } else { draft })
    }
}
