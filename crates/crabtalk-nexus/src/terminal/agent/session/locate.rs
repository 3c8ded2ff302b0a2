//! Finds the agent's transcript among the files at the path of its
//! kind.

use super::{CLOCK_SLACK, REPLAY_BYTES, Session, is_said, past};
use crate::backend::{Evidence, Source, What};
use crate::terminal::kind::Place;
use crate::terminal::transcript::Reader;
use crate::terminal::transcript::place::{self, Found};
use crate::terminal::transcript::tail::{Tail, length};
use crate::terminal::transcript::turns::Step;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

/// Time after a submission before another transcript than the known one is searched, since
/// some programs begin a new one.
const ELSEWHERE_AFTER: Duration = Duration::from_millis(400);

/// Interval of searches for the transcript in which a message must appear.
const LOOK_FOR_OURS: Duration = Duration::from_millis(50);

/// Interval of searches if it does not appear: the program may have dropped it, and each search
/// reads other files.
const LOOK_SELDOM: Duration = Duration::from_secs(5);

impl Session {
    /// Follows a file from its end, after reading its current state.
    pub(super) fn take_up(&mut self, path: &Path) {
        let Some(place) = &self.place else { return };
        let reader = Reader::new(place.form);
        let end = length(path);
        let mut tail = Tail::new(path, end.saturating_sub(REPLAY_BYTES));
        while tail.at() < end {
            let (lines, more) = tail.step();
            for record in lines.iter().flat_map(|line| reader.read(line)) {
                if self.turns.take(record).contains(&Step::Compacted) {
                    self.compacted_at = tail.at();
                }
            }
            if !more {
                break;
            }
        }
        self.claim(path);
        self.tail = Some(tail);
    }

    fn claim(&self, path: &Path) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, agent| *agent != self.agent);
        claims.insert(path.to_owned(), self.agent.clone());
    }

    pub(super) fn is_anothers(&self, path: &Path) -> bool {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.get(path).is_some_and(|agent| *agent != self.agent)
    }

    /// Searches the transcript with a message of NEXUS if none is known, or if the message is
    /// missing in the known one.
    pub(super) fn find(&mut self) {
        let Some(place) = self.place.clone() else {
            return;
        };
        if !self.is_time_to_look() {
            return;
        }
        self.looked = Some(Instant::now());
        let holds = |found: &Found| {
            let at = self.before.get(&found.path).copied().unwrap_or(0);
            let said = past::users(&found.path, at, Reader::new(place.form));
            let mut pending = self.pending.iter();
            pending.any(|pending| said.iter().any(|said| is_said(said, &pending.text)))
        };
        if let Some(found) = self.candidates(&place).into_iter().find(holds) {
            self.follow(&found.path);
            self.rename(found.session);
        }
    }

    /// Whether the transcript is unknown or lacks a message, and the last search was long
    /// enough ago.
    fn is_time_to_look(&self) -> bool {
        let waits = || self.pending.iter().map(|pending| pending.since.elapsed());
        let Some(shortest) = waits().min() else {
            return false;
        };
        if self.tail.is_some() && waits().all(|since| since <= ELSEWHERE_AFTER) {
            return false;
        }
        let pause = (shortest / 8).clamp(LOOK_FOR_OURS, LOOK_SELDOM);
        self.looked.is_none_or(|at| at.elapsed() > pause)
    }

    /// Files written since the launch, except the known one and those of other
    /// agents.
    fn candidates(&self, place: &Place) -> Vec<Found> {
        let since = self
            .life
            .as_ref()
            .map_or(SystemTime::now(), |life| life.since);
        let since = since
            .checked_sub(CLOCK_SLACK)
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let mut found = place::candidates(&self.pattern, place.form, since, &self.folder);
        let current = self.tail.as_ref().map(|tail| tail.path.clone());
        found.retain(|found| {
            let grown = length(&found.path) > self.before.get(&found.path).copied().unwrap_or(0);
            grown && Some(&found.path) != current.as_ref() && !self.is_anothers(&found.path)
        });
        found
    }

    pub(super) fn follow(&mut self, path: &Path) {
        self.claim(path);
        let at = self.before.get(path).copied().unwrap_or(0);
        self.compacted_at = at;
        self.tail = Some(Tail::new(path, at));
    }

    pub(super) fn rename(&mut self, name: String) {
        if self.name == name || name.is_empty() {
            return;
        }
        self.name.clone_from(&name);
        if self.life.as_ref().is_some_and(|life| life.is_ready) {
            let evidence = Evidence::new(Source::Transcript, "its head names the session");
            self.tell(What::Session { session: name }, evidence);
        }
    }
}

/// Resolves a kind's file pattern for this home and folder.
pub(super) fn pattern(files: &str, home: &Path, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let slashes = folder.trim_start_matches('/').replace(['/', ':'], "-");
    let dashes = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    files
        .replace("{home}", &home.display().to_string())
        .replace("{slashes}", &slashes)
        .replace("{dashes}", &folder.chars().map(dashes).collect::<String>())
}
