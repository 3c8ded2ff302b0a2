//! Parts of transcripts that precede this supervisor, or the time when the file was
//! identified as the agent's.
//!
//! Invariant: this module does not report unread lines of a followed file; those
//! are reported once when they are read.

use super::{At, CLOCK_SLACK, Pending, REPLAY_BYTES, Session, is_said};
use crate::backend::{Evidence, Mark, Source, Submission, Turn, What};
use crate::terminal::tmux::text::squeezed;
use crate::terminal::transcript::place::{self, Found};
use crate::terminal::transcript::tail::Tail;
use crate::terminal::transcript::turns::{Step, Turns};
use crate::terminal::transcript::{Reader, Record};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

impl Session {
    /// Whether an earlier attempt delivered a message, with the evidence; `false` if it
    /// may still arrive, `None` if it must be typed.
    pub(in crate::terminal::agent) fn arrived(
        &mut self,
        message: &Submission,
    ) -> Option<(bool, Evidence)> {
        if !message.again {
            self.release();
        }
        self.catch_up();
        if !message.again {
            return None;
        }
        let id = &message.id;
        let told = || Evidence::new(Source::Transcript, "its arrival was told");
        if self.seen.contains(id) {
            return Some((true, told()));
        }
        if let Some(evidence) = self.found_behind(message) {
            self.release();
            return Some((true, evidence));
        }
        // Records written since the agent was found are read now and may contain it.
        self.expect(id, &message.text);
        self.release();
        self.catch_up();
        if self.seen.contains(id) {
            return Some((true, told()));
        }
        // Some programs record a message only with its answer.
        if self.late_until.is_some_and(|until| Instant::now() < until) {
            let detail = "it may come into the transcript yet";
            return Some((false, Evidence::new(Source::Transcript, detail)));
        }
        self.pending.retain(|pending| pending.id != *id);
        None
    }

    /// Expects a message in the transcript.
    pub(in crate::terminal::agent) fn expect(&mut self, id: &str, text: &str) {
        self.pending.retain(|pending| pending.id != id);
        self.pending.push(Pending {
            id: id.to_owned(),
            text: squeezed(text),
            since: Instant::now(),
        });
    }

    /// Reports a message found in older records; returns the evidence.
    fn found_behind(&mut self, message: &Submission) -> Option<Evidence> {
        let Submission { id, text, mark, .. } = message;
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
        self.pending.retain(|pending| pending.id != *id);
        // The end of a turn in flight is reported when it is read.
        let goes_on = turn.is_none() && self.turns.is_busy;
        if !goes_on {
            self.tell(What::TurnBegan, evidence.clone());
        }
        self.tell(What::Seen { id: id.clone() }, evidence.clone());
        if !goes_on {
            let turn = turn.unwrap_or_else(|| Turn {
                error: Some("the agent ended during it".into()),
                ..Turn::default()
            });
            self.tell(What::TurnEnded(turn), evidence.clone());
        }
        Some(evidence)
    }

    /// Finds a text as a user's turn after a mark, with the result of that
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

/// The texts of users from an offset on.
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
                // The turn has no end: the agent was ended during it, and continues.
                Step::User(_) if found == Some(None) => return false,
                Step::User(_) | Step::Began(_) | Step::Ended(..) | Step::Compacted => {}
            }
        }
        true
    });
    found
}

/// Reads the records in a range, up to the end of a line.
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
