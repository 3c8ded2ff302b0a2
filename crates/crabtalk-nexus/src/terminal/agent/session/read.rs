//! Converts records of the transcript and hooks to events.

use super::{Session, is_said};
use crate::backend::{Event, Evidence, Source, Turn, What};
use crate::terminal::tmux::text::{cut, squeezed};
use crate::terminal::transcript::turns::Step;
use crate::terminal::transcript::{Reader, Record};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of arrived messages to remember; one is asked about at a time.
const SEEN: usize = 8;

/// Time for the transcript to confirm a hook.
const HOOK_AHEAD: Duration = Duration::from_millis(1500);

impl Session {
    pub(super) fn read_hooks(&mut self) -> bool {
        let Some(mut tail) = self.hooks.take() else {
            return false;
        };
        let (lines, _) = tail.step();
        self.hooks = Some(tail);
        for line in &lines {
            let Ok(hook) = serde_json::from_slice::<Value>(line) else {
                continue;
            };
            let path = hook["transcript_path"].as_str().map(Path::new);
            if self.tail.is_none()
                && let Some(path) = path.filter(|path| path.exists() && !self.is_anothers(path))
            {
                self.follow(path);
            }
            let name = hook["hook_event_name"].as_str().unwrap_or_default();
            let is_one_of = |names: &[String]| names.iter().any(|known| known == name);
            if is_one_of(&self.names.ended) {
                self.ended = Some((name.to_owned(), Instant::now()));
            } else if is_one_of(&self.names.began) {
                self.ended = None;
            }
        }
        !lines.is_empty()
    }

    pub(super) fn read_transcript(&mut self) -> bool {
        let (Some(mut tail), Some(place)) = (self.tail.take(), self.place.as_ref()) else {
            return false;
        };
        let reader = Reader::new(place.form);
        let (lines, _) = tail.step();
        let at = tail.at();
        self.tail = Some(tail);
        for record in lines.iter().flat_map(|line| reader.read(line)) {
            if let Record::Head { session, .. } = &record {
                self.rename(session.clone());
            }
            if let Record::Result { id } = &record
                && self.live.as_ref().and_then(|live| live.call.as_ref()) == Some(id)
            {
                self.prompt_gone("its call has a result", Source::Transcript);
            }
            for step in self.turns.take(record) {
                self.step(step, at);
            }
        }
        if !lines.is_empty() && self.turns.is_busy && !self.is_compressing {
            let evidence = Evidence::new(Source::Transcript, format!("{} lines", lines.len()));
            self.tell(What::Progress, evidence);
        }
        !lines.is_empty()
    }

    fn step(&mut self, step: Step, at: u64) {
        match step {
            Step::Began(name) if !self.is_compressing => {
                self.cut_short = None;
                self.ended = None;
                self.tell(What::TurnBegan, Evidence::new(Source::Transcript, name));
            }
            Step::User(text) => self.seen(&text),
            Step::Ended(turn, name) if !self.is_compressing => self.told_end(turn, name, at),
            Step::Compacted => {
                self.compactions += 1;
                self.compacted_at = at;
                if !self.is_compressing {
                    let evidence = Evidence::new(Source::Transcript, "a compaction");
                    self.tell(What::Compacted, evidence);
                }
            }
            Step::Began(_) | Step::Ended(..) => {}
        }
    }

    fn seen(&mut self, text: &str) {
        let said = squeezed(text);
        let Some(at) = self
            .pending
            .iter()
            .position(|pending| is_said(&said, &pending.text))
        else {
            return;
        };
        let pending = self.pending.remove(at);
        self.seen.push_back(pending.id.clone());
        if self.seen.len() > SEEN {
            self.seen.pop_front();
        }
        let evidence = Evidence::new(Source::Transcript, "a user's turn with this text");
        self.tell(What::Seen { id: pending.id }, evidence);
    }

    fn told_end(&mut self, mut turn: Turn, name: &str, at: u64) {
        turn.transcript_bytes = Some(at.saturating_sub(self.compacted_at));
        let evidence = match self.ended.take() {
            Some((hook, _)) => Evidence::new(Source::Hook, format!("{hook}; transcript: {name}")),
            None => Evidence::new(Source::Transcript, name),
        };
        self.cut_short = None;
        self.prompt_gone("its turn ended", evidence.source);
        self.tell(What::TurnEnded(turn), evidence);
    }

    /// Closes the open prompt.
    pub(crate) fn prompt_gone(&mut self, how: &str, source: Source) {
        if let Some(live) = self.live.take() {
            self.gone += 1;
            let how = live.answer.unwrap_or_else(|| how.to_owned());
            let id = live.prompt.id;
            let evidence = Evidence::new(source, how.clone());
            self.tell(What::PromptGone { id, how }, evidence);
        }
    }

    /// Ends a turn whose end is reported only by a hook.
    pub(super) fn end_by_hook(&mut self) {
        let Some((hook, at)) = &self.ended else {
            return;
        };
        if at.elapsed() < HOOK_AHEAD {
            return;
        }
        let evidence = Evidence::new(Source::Hook, hook.clone());
        self.ended = None;
        self.end_turn(None, evidence);
    }

    /// Ends the turn in flight, if there is one, on evidence other than the
    /// transcript.
    pub(crate) fn end_turn(&mut self, error: Option<String>, evidence: Evidence) {
        let bytes = self
            .tail
            .as_ref()
            .map(|tail| tail.at().saturating_sub(self.compacted_at));
        if let Some(mut turn) = self.turns.end(error, None) {
            turn.transcript_bytes = bytes;
            self.cut_short = None;
            self.prompt_gone("its turn ended", evidence.source);
            self.tell(What::TurnEnded(turn), evidence);
        }
    }

    /// Queues an event for the watcher.
    pub(crate) fn tell(&mut self, what: What, mut evidence: Evidence) {
        const MAX_DETAIL_BYTES: usize = 1 << 10;
        evidence.detail = cut(&evidence.detail, MAX_DETAIL_BYTES).to_owned();
        let is_progress = |what: &What| matches!(what, What::Progress);
        if is_progress(&what) && self.found.iter().any(|event| is_progress(&event.what)) {
            return;
        }
        self.found.push_back(Event { what, evidence });
    }
}
