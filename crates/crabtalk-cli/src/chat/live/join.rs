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
use crabtalk_proto::{HistoryEntry, HistoryPage, stream_event::Event};
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
    /// What was not heard of a run that is over: all that a person said, and the
    /// answer of one that ended well.
    Rest { run: u64, answered: bool },
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
            Part::Between(..) | Part::Rest { .. } => SHOWN_OF_MEANWHILE,
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
                    return Some(Part::Rest {
                        run: end.run,
                        answered: end.code == 0,
                    });
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

    /// Shows a page that was waited for, and what comes behind it.
    pub(super) fn show_before(&mut self, wait: u64, page: Result<HistoryPage, Error>) {
        if wait != self.joining.number {
            return;
        }
        let Some((part, next)) = self.joining.waits.take() else {
            return;
        };
        let mut behind = Vec::new();
        match page {
            Ok(page) => match part {
                Part::Rest { run, answered } => behind = self.show_rest(run, answered, page),
                Part::Between(..) | Part::UpTo { .. } => self.show_part(part, page),
            },
            // Nobody has said anything yet, or the daemon is older than that.
            Err(error) if error.code().is_some() => {}
            Err(error) => self.transcript.problem(&error.to_string()),
        }
        self.take_news(next);
        self.show_entries(&behind);
    }

    /// Shows what was not heard of a run that is over. What was said behind its end is
    /// given back.
    fn show_rest(&mut self, run: u64, answered: bool, page: HistoryPage) -> Vec<HistoryEntry> {
        self.runs.tell(run);
        let front = self.runs.front();
        let is_begun = front.as_ref().is_some_and(|f| f.number == Some(run));
        let read = front.map(|front| front.read.as_slice());
        let (mut shown, behind) = rest(run, read.unwrap_or_default(), page);
        for entry in shown.iter().chain(&behind) {
            self.steers.remove(&entry.content);
        }
        self.steers.distrust();
        // Where its begin was not heard, what stands there is of the run before.
        let heard = is_begun.then(|| self.transcript.answer.trim_end());
        let heard = heard.unwrap_or_default();
        let is_heard = |entry: &HistoryEntry| heard.ends_with(entry.content.trim_end());
        shown.retain(|entry| is_said(entry) || answered && !is_heard(entry));
        if answered && shown.is_empty() {
            return behind;
        }
        self.transcript.cut_off(Instant::now());
        match answered {
            true => self
                .transcript
                .note("not all of it was heard; this is how the history has it"),
            false => self
                .transcript
                .problem("what the run did meanwhile is not shown; /history has what was kept"),
        }
        self.show_entries(&shown);
        behind
    }

    fn show_part(&mut self, part: Part, mut page: HistoryPage) {
        let last = page.entries.iter().map(|entry| entry.run).max();
        self.runs.tell(match part {
            Part::Between(_, run) | Part::Rest { run, .. } => run,
            Part::UpTo { run, .. } => last.unwrap_or_default().min(run),
        });
        let first = page.entries.first().map_or(0, |entry| entry.run);
        cut(part, &mut page);
        if let Part::Between(told, _) = part {
            // Those before them are on the screen.
            page.more &= first > told + 1;
        }
        let failed = page
            .entries
            .iter()
            .filter_map(|entry| entry.failed.as_ref());
        if let Some(run) = failed.map(|failed| failed.run).max() {
            self.runs.fail(run);
        }
        self.show_page(&page);
    }
}

/// Whether a person said it.
fn is_said(entry: &HistoryEntry) -> bool {
    entry.role == "user" && !entry.compact
}

/// What was said in a run behind what is on the screen of it, with the answer, and what
/// was said to it and stands behind its end. A person's words are told apart by their
/// number: those that began the run, and those that it `read`, are shown.
fn rest(run: u64, read: &[String], page: HistoryPage) -> (Vec<HistoryEntry>, Vec<HistoryEntry>) {
    let begins = !page.more || page.entries.first().is_some_and(|entry| entry.run != run);
    let of_run = page.entries.into_iter().filter(|entry| entry.run == run);
    let mut shown: Vec<HistoryEntry> = of_run.collect();
    let is_end = |entry: &HistoryEntry| entry.failed.as_ref().is_some_and(|end| end.run == run);
    let end = shown
        .iter()
        .rposition(is_end)
        .map_or(shown.len(), |at| at + 1);
    let behind = shown.split_off(end);
    // The run tells its end itself.
    shown.iter_mut().for_each(|entry| entry.failed = None);
    let answer = shown.iter().rposition(|entry| entry.role == "assistant");
    // One whose first words are an archive by now began with none of these.
    let whole = begins && !shown.iter().any(|entry| entry.compact);
    let mut known: Vec<&str> = read.iter().map(String::as_str).collect();
    let (mut at, mut is_first) = (0, whole);
    shown.retain(|entry| {
        let is_answer = answer == Some(at);
        at += 1;
        if !is_said(entry) {
            return is_answer;
        }
        if std::mem::take(&mut is_first) {
            return false;
        }
        let read = known.iter().position(|text| *text == entry.content);
        read.map(|at| known.remove(at)).is_none()
    });
    (shown, behind)
}

/// Leaves of a page what is to be shown.
fn cut(part: Part, page: &mut HistoryPage) {
    let is_of = |entry: &HistoryEntry| match part {
        Part::Between(told, run) => entry.run > told && entry.run <= run,
        Part::UpTo { run, .. } => entry.run <= run,
        Part::Rest { run, .. } => entry.run == run,
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::FailedRun;

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

    /// What is shown of a run, and what stands behind its end, which is behind `!`.
    fn rest_of(run: u64, read: &[&str], said: &[&str], more: bool) -> (Vec<String>, Vec<String>) {
        let mut page = page(said, more);
        for entry in &mut page.entries {
            if entry.content.ends_with('!') {
                entry.failed = Some(FailedRun {
                    run,
                    ..FailedRun::default()
                });
            }
        }
        let read: Vec<String> = read.iter().map(|text| (*text).to_owned()).collect();
        let (shown, behind) = rest(run, &read, page);
        let texts = |all: Vec<HistoryEntry>| all.into_iter().map(|e| e.content).collect();
        (texts(shown), texts(behind))
    }

    #[test]
    fn of_a_run_that_ended_unheard_what_is_not_on_the_screen_is_shown_in_its_order() {
        let said = ["3 a?", "3 a", "4 b?", "4 c?", "4 d", "4 c?", "4 e"];
        for (read, want) in [
            (&[][..], &["c?", "c?", "e"][..]),
            (&["c?"], &["c?", "e"]),
            (&["c?", "c?"], &["e"]),
        ] {
            let (shown, behind) = rest_of(4, read, &said, true);
            assert_eq!(shown, want, "{read:?}");
            assert!(behind.is_empty());
        }
        // It began further up than the page.
        let (shown, _) = rest_of(4, &[], &["4 c?", "4 e"], true);
        assert_eq!(shown, ["c?", "e"]);
        // The daemon died, and what waited stands behind the end.
        let (shown, behind) = rest_of(4, &["c?"], &["4 b?", "4 c?", "4 d!", "4 f?"], false);
        assert_eq!(
            (shown, behind),
            (vec!["d!".to_owned()], vec!["f?".to_owned()])
        );
        assert_eq!(rest_of(5, &[], &said, false), (vec![], vec![]));
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
