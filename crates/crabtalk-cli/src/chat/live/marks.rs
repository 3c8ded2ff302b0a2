//! Histories that are put away: by a command given here, by a run, or by another
//! client, which nothing else here would tell of.
//!
//! Invariant: what was done here is told by its own answer alone, and what a run does
//! by the run, although word of both comes a second time among all that happens, on a
//! connection of its own: earlier or later.

use super::Live;
use crate::text::summary;
use crabtalk_client::Error;
use crabtalk_proto::{AgentEventKind, AgentEventMsg, CompactResponse};

/// Which word of a history put away is news.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Commands given here that have no answer yet.
    asked: usize,
    /// What was heard of while there were such commands.
    heard: usize,
    /// What has an answer and was not heard of yet.
    owed: usize,
    /// The last run that is known to be over from where all else is heard.
    ended: Option<u64>,
}

impl Marks {
    /// A history is put away from here.
    pub(super) fn asked(&mut self) {
        self.asked += 1;
    }

    /// It was, or nothing had to be.
    pub(super) fn answered(&mut self, is_done: bool) {
        self.asked = self.asked.saturating_sub(1);
        match (is_done, self.heard) {
            (false, _) => {}
            (true, 0) => self.owed += 1,
            (true, _) => self.heard -= 1,
        }
    }

    /// A run is over: what comes from now on is not its own.
    pub(super) fn ended(&mut self, run: u64) {
        self.ended = Some(run);
    }

    /// A run begins. What is owed by now never comes: a history that was put away
    /// already was put away again.
    pub(super) fn begun(&mut self) {
        self.heard = 0;
        self.owed = 0;
    }

    /// Whether another client did it, after a run that is followed here or not.
    pub(super) fn is_news(&mut self, run: u64, is_followed: bool) -> bool {
        if is_followed && self.ended != Some(run) {
            return false;
        }
        if self.owed > 0 {
            self.owed -= 1;
            return false;
        }
        if self.asked > 0 {
            self.heard += 1;
            return false;
        }
        true
    }
}

impl Live<'_> {
    /// What became of `/new` or `/compact`.
    pub(super) fn put_away(&mut self, answer: Result<CompactResponse, Error>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.marks.answered(false);
                return self.transcript.problem(&error.to_string());
            }
        };
        let (summary, title) = (answer.summary.as_str(), answer.title.as_str());
        self.marks
            .answered(!summary.is_empty() || !title.is_empty());
        let note = match (summary, title) {
            ("", "") => "nothing was said since the last fresh start".to_owned(),
            ("", title) => format!(
                "put away as \"{title}\"; you begin anew, and `crabtalk search` finds what was said"
            ),
            (summary, _) => {
                let text = format!("The history is now:\n\n{summary}");
                let lines = crabtalk_render::render(&text, self.transcript.width());
                return self.transcript.lines(lines);
            }
        };
        self.transcript.note(&note);
        self.learn();
    }

    /// Takes what happened in the conversation, as far as it has to do with this.
    pub(super) fn marked(&mut self, event: &AgentEventMsg) {
        use AgentEventKind as Kind;
        let kind = event.kind();
        if kind == Kind::RunStarted {
            return self.marks.begun();
        }
        if matches!(kind, Kind::Done | Kind::RunError | Kind::RunKilled) {
            return self.marks.ended(event.run);
        }
        if kind != Kind::Compacted || event.tool_is_error {
            return;
        }
        let is_followed = self.runs.knows(event.run);
        if self.marks.is_news(event.run, is_followed) {
            let title = summary(&event.content);
            self.transcript.note(&format!(
                "another client put the history away as \"{title}\"; what was said is an archive"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_here_is_no_news_whichever_word_comes_first() {
        let mut marks = Marks::default();
        assert!(marks.is_news(0, false), "nobody here did it");
        marks.asked();
        marks.answered(true);
        assert!(!marks.is_news(0, false), "the answer came first");
        assert!(marks.is_news(0, false));
        marks.asked();
        assert!(!marks.is_news(0, false), "the answer comes later");
        marks.answered(true);
        assert!(marks.is_news(0, false));
        marks.asked();
        marks.answered(false);
        assert!(marks.is_news(0, false), "there was nothing to put away");
    }

    #[test]
    fn what_a_run_puts_away_is_the_runs_to_tell() {
        let mut marks = Marks::default();
        assert!(!marks.is_news(3, true), "it goes on");
        marks.ended(3);
        assert!(marks.is_news(3, true), "it is over");
        marks.asked();
        marks.answered(true);
        marks.begun();
        marks.ended(4);
        assert!(marks.is_news(4, true));
    }
}
