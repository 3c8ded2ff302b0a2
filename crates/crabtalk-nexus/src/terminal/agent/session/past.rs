//! Parts of transcripts from before this supervisor, or before a file was
//! known to be the agent's.
//!
//! Invariant: of a file that is followed nothing is told here that is not read
//! yet: its own lines tell that later, once.

use super::{At, CLOCK_SLACK, REPLAY_BYTES, Session, is_said};
use crate::backend::{Event, Evidence, Mark, Source, Turn, What};
use crate::terminal::tmux::text::squeezed;
use crate::terminal::transcript::place::{self, Found};
use crate::terminal::transcript::tail::Tail;
use crate::terminal::transcript::turns::{Step, Turns};
use crate::terminal::transcript::{Reader, Record};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl Session {
    /// Reports a message that is in the transcript since before this
    /// supervisor; whether it does.
    pub(in crate::terminal::agent) fn found_behind(
        &mut self,
        id: &str,
        mark: &Mark,
        text: &str,
    ) -> Option<Evidence> {
        // The rest is reported when it is read.
        let (found, mut turn) = self.behind(mark, text)?;
        let runs = self.life.as_ref().is_some_and(|life| life.is_found);
        let is_followed = |tail: &Tail| tail.path == found.path;
        if runs && !self.tail.as_ref().is_some_and(is_followed) {
            // The session began with this message, before its name was known.
            self.turns = Turns::default();
            self.take_up(&found.path);
            self.rename(found.session);
            turn = self.behind(mark, text)?.1;
        }
        let evidence = Evidence::new(Source::Transcript, "a user's turn behind the mark");
        self.pending.retain(|pending| pending.id != id);
        let mut held = self.held.take().unwrap_or_default();
        let seen = Event {
            what: What::Seen { id: id.to_owned() },
            evidence: evidence.clone(),
        };
        let is_end = |event: &Event| match (&event.what, &turn) {
            (What::TurnEnded(end), Some(turn)) => end.output == turn.output,
            _ => false,
        };
        let is_busy = self.turns.is_busy;
        if let Some(at) = held.iter().position(is_end) {
            held.insert(at, seen);
        } else if turn.is_none() && is_busy {
            held.push_back(seen);
        } else {
            let turn = turn.unwrap_or_else(|| Turn {
                error: Some("the agent ended during it".into()),
                ..Turn::default()
            });
            let of = |what| Event {
                what,
                evidence: evidence.clone(),
            };
            held.push_front(of(What::TurnEnded(turn)));
            held.push_front(seen);
            held.push_front(of(What::TurnBegan));
        }
        self.found.extend(held);
        Some(evidence)
    }

    /// The position of a text as a user's turn after a mark, and the result of that
    /// turn if it ended.
    fn behind(&self, mark: &Mark, text: &str) -> Option<(Found, Option<Turn>)> {
        let place = self.place.as_ref()?;
        let text = squeezed(text);
        let at: At = serde_json::from_str(&mark.0).unwrap_or_default();
        let mut files = Vec::new();
        if !at.file.as_os_str().is_empty() {
            let found = Found {
                path: at.file.clone(),
                session: String::new(),
            };
            files.push((found, at.at));
        }
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(at.since);
        let since = since
            .checked_sub(CLOCK_SLACK)
            .unwrap_or(SystemTime::UNIX_EPOCH);
        for found in place::candidates(&self.pattern, place.form, since, &self.folder) {
            if found.path != at.file && !self.is_anothers(&found.path) {
                files.push((found, 0));
            }
        }
        let read = self.tail.as_ref().map(|tail| (&tail.path, tail.at()));
        files.into_iter().find_map(|(found, at)| {
            let until = read.filter(|(path, _)| **path == found.path);
            let until = until.map_or(u64::MAX, |(_, at)| at);
            let turn = turn_of(&found.path, at..until, Reader::new(place.form), &text)?;
            Some((found, turn))
        })
    }
}

/// What users said from there on.
pub(super) fn users(file: &Path, at: u64, reader: Reader) -> Vec<String> {
    let mut said = Vec::new();
    each(file, at..u64::MAX, &reader, |record| {
        if let Record::User(text) = record {
            said.push(squeezed(&text));
        }
        true
    });
    said
}

fn turn_of(file: &Path, within: Range<u64>, reader: Reader, text: &str) -> Option<Option<Turn>> {
    let mut turns = Turns::default();
    let mut found: Option<Option<Turn>> = None;
    each(file, within, &reader, |record| {
        for step in turns.take(record) {
            match step {
                Step::User(said) if is_said(&squeezed(&said), text) => found = Some(None),
                Step::Ended(turn, _) if found == Some(None) => {
                    found = Some(Some(turn));
                    return false;
                }
                // Its turn has no end: the agent was ended in it, and goes on.
                Step::User(_) if found == Some(None) => return false,
                Step::User(_) | Step::Began(_) | Step::Ended(..) | Step::Compacted => {}
            }
        }
        true
    });
    found
}

/// The text there, up to the end of a line.
fn each(file: &Path, within: Range<u64>, reader: &Reader, mut take: impl FnMut(Record) -> bool) {
    let mut tail = Tail::new(file, within.start);
    let begin = within.start;
    loop {
        let mut at = tail.at();
        let (lines, more) = tail.step();
        for line in lines {
            at += line.len() as u64 + 1;
            if at > within.end || !reader.read(&line).into_iter().all(&mut take) {
                return;
            }
        }
        if !more || tail.at() > begin + REPLAY_BYTES {
            return;
        }
    }
}
