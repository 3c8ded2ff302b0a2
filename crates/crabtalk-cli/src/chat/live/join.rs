//! What stands in the history and on no screen: what was said before a conversation
//! was joined, and while nobody listened.
//!
//! Runs are told live from their begin, or from where the connection was lost; all
//! else is read in the history.
//! Invariants: the history is read once it is known which run is told next, and shown
//! before that; each message is shown once, in the order of the runs; what cannot be
//! read holds nothing up.

use super::runs::Next;
use super::{Live, calls};
use crabtalk_client::{Error, RunNews};
use crabtalk_proto::{HistoryEntry, HistoryPage, StreamEnd, stream_event::Event};
use std::time::Instant;

/// Messages shown when a chat begins: enough to remember what it was about.
const SHOWN_AT_START: u32 = 10;

/// Messages shown of what happened while nobody listened: more than anybody reads.
const SHOWN_OF_MEANWHILE: u32 = 100;

/// Which messages are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Those of the runs behind this one, up to that one.
    Between(u64, u64),
    /// All up to that run; a run that goes on behind it tells itself.
    UpTo { run: u64, goes_on: bool },
    /// The answer of a run of which some was heard.
    Answer(u64),
}

/// What of the history is shown next.
#[derive(Default)]
pub(super) struct Joining {
    /// Whether nothing of the conversation is shown yet.
    begins: bool,
    /// Whether some of what the run in front said was not heard, and its end is.
    misses: bool,
    /// What is asked for, and the news that come behind it.
    waits: Option<(Part, Next)>,
    /// Tells the page that is waited for from those that are not any more.
    number: u64,
}

impl Joining {
    /// Another conversation is shown.
    pub(super) fn begin(&mut self) {
        self.begins = true;
        self.misses = false;
        self.waits = None;
        self.number += 1;
    }

    /// Some of what the run in front said was not heard; its end comes next.
    pub(super) fn misses(&mut self) {
        self.misses = true;
    }

    /// Whether a page is on its way. Runs are heard once it is here.
    pub(super) fn waits(&self) -> bool {
        self.waits.is_some()
    }
}

impl Live<'_> {
    /// Asks for what has to be shown before these news, if anything has; they are given
    /// back if nothing has.
    pub(super) fn read_before(&mut self, next: Next) -> Option<Next> {
        let Some(part) = self.lacks(&next) else {
            return Some(next);
        };
        let limit = match part {
            Part::UpTo { .. } => SHOWN_AT_START,
            Part::Between(..) | Part::Answer(_) => SHOWN_OF_MEANWHILE,
        };
        self.joining.begins = false;
        self.joining.number += 1;
        self.joining.waits = Some((part, next));
        let wait = self.joining.number;
        self.call(calls::before(
            self.client.clone(),
            self.pair.clone(),
            limit,
            wait,
        ));
        None
    }

    /// What is not shown that comes before these news.
    fn lacks(&mut self, next: &Next) -> Option<Part> {
        let front = self.runs.front()?;
        let (attached, number) = (front.said.is_none(), front.number);
        let (told, begins) = (self.runs.told(), self.joining.begins);
        let (run, goes_on) = match next {
            Some(Ok(RunNews::Event(event))) => match &event.event {
                Some(Event::Start(start)) => (start.run.saturating_sub(1), true),
                Some(Event::End(end)) if attached && number.is_none() => (end.run, false),
                Some(Event::End(end)) if std::mem::take(&mut self.joining.misses) => {
                    return self.missed(end);
                }
                _ => return None,
            },
            Some(Ok(RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. })) => {
                return None;
            }
            // Nothing runs, or the daemon does not say.
            Some(Err(error)) if error.code().is_none() => return None,
            Some(Err(_)) | None => (u64::MAX, false),
        };
        if begins {
            return Some(Part::UpTo { run, goes_on });
        }
        (run > told && run < u64::MAX).then_some(Part::Between(told, run))
    }

    /// What is lacking of a run that ended unheard.
    fn missed(&mut self, end: &StreamEnd) -> Option<Part> {
        if end.code == 0 {
            return Some(Part::Answer(end.run));
        }
        self.transcript.cut_off(Instant::now());
        self.transcript
            .problem("what the run did meanwhile is not shown; /history has what was kept");
        None
    }

    /// Shows a page that was waited for, and what comes behind it.
    pub(super) fn show_before(&mut self, wait: u64, page: Result<HistoryPage, Error>) {
        if wait != self.joining.number {
            return;
        }
        let Some((part, next)) = self.joining.waits.take() else {
            return;
        };
        match page {
            Ok(page) => self.show_part(part, page),
            // Nobody has said anything yet, or the daemon is older than that.
            Err(error) if error.code().is_some() => {}
            Err(error) => self.transcript.problem(&error.to_string()),
        }
        self.take_news(next);
    }

    fn show_part(&mut self, part: Part, mut page: HistoryPage) {
        let last = page.entries.iter().map(|entry| entry.run).max();
        self.runs.tell(match part {
            Part::Between(_, run) | Part::Answer(run) => run,
            Part::UpTo { run, .. } => last.unwrap_or_default().min(run),
        });
        let first = page.entries.first().map_or(0, |entry| entry.run);
        cut(part, &mut page);
        match part {
            // Those before them are on the screen.
            Part::Between(told, _) => page.more &= first > told + 1,
            Part::UpTo { .. } => {}
            Part::Answer(run) if self.hears(run) && is_heard(&self.transcript.answer, &page) => {
                page.entries.clear();
            }
            Part::Answer(_) => {
                page.more = false;
                self.transcript.cut_off(Instant::now());
                self.transcript
                    .note("not all of it was heard; this is the answer as the history has it");
            }
        }
        self.show_page(&page);
    }

    /// Whether the run in front is this one and was heard from its begin.
    fn hears(&mut self, run: u64) -> bool {
        self.runs
            .front()
            .is_some_and(|front| front.number == Some(run))
    }
}

/// Whether what was heard of a run ends with the answer of this page, if that has one.
fn is_heard(heard: &str, page: &HistoryPage) -> bool {
    let answer = page.entries.first();
    answer.is_none_or(|answer| heard.trim_end().ends_with(answer.content.trim_end()))
}

/// Leaves of a page what is to be shown.
fn cut(part: Part, page: &mut HistoryPage) {
    let is_of = |entry: &HistoryEntry| match part {
        Part::Between(told, run) => entry.run > told && entry.run <= run,
        Part::UpTo { run, .. } => entry.run <= run,
        Part::Answer(run) => entry.run == run,
    };
    if let Part::UpTo { goes_on: true, .. } = part
        && page.more
    {
        // What stands last and says of no run is of the one that goes on, which began
        // further up than the page.
        let known = page.entries.iter().rposition(|entry| entry.run > 0);
        page.entries.truncate(known.map_or(0, |at| at + 1));
    }
    page.entries.retain(is_of);
    if let Part::Answer(_) = part {
        let is_answer = |entry: &HistoryEntry| entry.role == "assistant";
        let at = page.entries.iter().rposition(is_answer);
        page.entries.drain(..at.unwrap_or(page.entries.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(said: &[&str], more: bool) -> HistoryPage {
        let entry = |said: &&str| {
            let (run, content) = said.split_once(' ').unwrap();
            HistoryEntry {
                role: if content.ends_with('?') {
                    "user".into()
                } else {
                    "assistant".into()
                },
                content: content.into(),
                run: run.parse().unwrap(),
                ..HistoryEntry::default()
            }
        };
        HistoryPage {
            entries: said.iter().map(entry).collect(),
            more,
            ..HistoryPage::default()
        }
    }

    #[test]
    fn an_answer_that_was_heard_is_not_shown_again() {
        let answer = page(&["4 all of it"], false);
        assert!(is_heard("let me see. all of it\n", &answer));
        assert!(!is_heard("all of", &answer));
        assert!(!is_heard("", &answer));
        assert!(is_heard("", &page(&[], false)));
    }

    #[test]
    fn each_message_is_shown_once_by_the_history_or_by_its_run() {
        let said = ["0 old?", "0 old", "3 a?", "3 a", "4 b?", "4 b", "5 c?"];
        let up_to = |run, goes_on| Part::UpTo { run, goes_on };
        let long = ["0 d", "0 e"];
        for (said, more, part, want) in [
            (&said[..], true, up_to(4, true), &said[..6]),
            (&said, true, up_to(5, false), &said),
            (&said, false, up_to(u64::MAX, false), &said),
            (&said, false, Part::Between(3, 4), &said[4..6]),
            (&said, false, Part::Between(5, 9), &[]),
            (&said, false, Part::Answer(4), &said[5..6]),
            (&said, false, Part::Answer(5), &[]),
            // A run of many messages goes on, or there were no runs yet.
            (&long, true, up_to(5, true), &[]),
            (&["4 b", "0 d"], true, up_to(4, true), &["4 b"]),
            (&long, false, up_to(0, true), &long),
            (&long, true, up_to(u64::MAX, false), &long),
        ] {
            let mut got = page(said, more);
            cut(part, &mut got);
            assert_eq!(got.entries, page(want, more).entries, "{said:?} {part:?}");
        }
    }
}
