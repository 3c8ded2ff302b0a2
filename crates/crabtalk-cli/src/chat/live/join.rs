//! Shows the part of the history without events: messages from before the chat
//! joined, and from the time of a lost connection.
//!
//! Runs are shown from their events; everything else is read from the history.
//! Invariants: the history is read once the next run is known, and shown before that
//! run; a page that cannot be read blocks nothing. After a reconnect, a passage may be
//! shown again with a note.

use super::runs::Next;
use super::{Live, calls};
use crabtalk_client::{Error, RunNews};
use crabtalk_proto::{HistoryEntry, HistoryPage, stream_event::Event};
use std::time::Instant;

/// Messages shown when a chat starts.
const SHOWN_AT_START: u32 = 10;

/// Maximum number of messages shown after a reconnect.
const SHOWN_AFTER_RECONNECT: u32 = 100;

/// A part of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The runs after the first number, up to the second.
    Between(u64, u64),
    /// All runs up to this one; `goes_on` if a later run is active.
    UpTo { run: u64, goes_on: bool },
    /// A run that ended while events were lost.
    Run { run: u64, failed: bool },
}

/// The pending part of the history.
#[derive(Default)]
pub(super) struct Joining {
    /// Whether nothing of the conversation was shown yet.
    begins: bool,
    /// Whether events of the front run were lost.
    misses: bool,
    /// The requested part, and the event to show after it.
    waits: Option<(Part, Next)>,
    /// Number of the last request; answers to earlier ones are ignored.
    number: u64,
}

impl Joining {
    /// Starts over for another conversation.
    pub(super) fn begin(&mut self) {
        self.begins = true;
        self.misses = false;
        self.waits = None;
        self.number += 1;
    }

    /// Records that events of the front run were lost.
    pub(super) fn misses(&mut self) {
        self.misses = true;
    }

    /// Whether a page is requested, so that events of runs must wait.
    pub(super) fn waits(&self) -> bool {
        self.waits.is_some()
    }
}

impl Live<'_> {
    /// Requests the part of the history that precedes an event, or returns the
    /// event if there is none.
    pub(super) fn read_before(&mut self, next: Next) -> Option<Next> {
        let Some(part) = self.lacks(&next) else {
            return Some(next);
        };
        let limit = match part {
            Part::UpTo { .. } => SHOWN_AT_START,
            Part::Between(..) | Part::Run { .. } => SHOWN_AFTER_RECONNECT,
        };
        self.joining.begins = false;
        self.joining.number += 1;
        self.joining.waits = Some((part, next));
        let wait = self.joining.number;
        let request = calls::last_messages(self.pair.clone(), limit);
        self.request(request, move |live, page| live.show_before(wait, page));
        None
    }

    /// The part of the history that precedes an event.
    fn lacks(&mut self, next: &Next) -> Option<Part> {
        let front = self.runs.front()?;
        let (attached, number) = (front.said.is_none(), front.number);
        let (told, begins) = (self.runs.told(), self.joining.begins);
        let (run, goes_on) = match next {
            Some(Ok(RunNews::Event(event))) => match &event.event {
                Some(Event::Start(start)) => (start.run.saturating_sub(1), true),
                Some(Event::End(end)) if attached && number.is_none() => (end.run, false),
                Some(Event::End(end)) if std::mem::take(&mut self.joining.misses) => {
                    return Some(Part::Run {
                        run: end.run,
                        failed: end.code != 0,
                    });
                }
                _ => return None,
            },
            Some(Ok(RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. })) => {
                return None;
            }
            // Connection errors say nothing about the conversation; a refusal means that no run is
            // active.
            Some(Err(error)) if error.code().is_none() => return None,
            Some(Err(_)) | None => (u64::MAX, false),
        };
        if begins {
            return Some(Part::UpTo { run, goes_on });
        }
        (run > told && run < u64::MAX).then_some(Part::Between(told, run))
    }

    /// Shows a requested page and the event after it.
    fn show_before(&mut self, wait: u64, page: Result<HistoryPage, Error>) {
        if wait != self.joining.number {
            return;
        }
        let Some((part, next)) = self.joining.waits.take() else {
            return;
        };
        match (page, part) {
            (Ok(page), Part::Run { run, failed }) => return self.show_run(run, failed, page, next),
            (Ok(page), Part::Between(..) | Part::UpTo { .. }) => self.show_part(part, page),
            // The conversation does not exist yet.
            (Err(error), _) if error.code().is_some() => {}
            (Err(error), _) => self.transcript.problem(&error.to_string()),
        }
        self.take_news(next);
    }

    /// Shows a run that ended while events were lost, and its end.
    fn show_run(&mut self, run: u64, failed: bool, page: HistoryPage, end: Next) {
        self.runs.tell(run);
        let is_begun = self.runs.number() == Some(run);
        let entries = entries_of(run, is_begun, page);
        for entry in &entries {
            self.steers.remove(&entry.content);
        }
        self.steers.distrust();
        self.transcript.cut_off(Instant::now());
        // Messages that a failed run did not read follow its end in the history.
        let end = match failed {
            true => {
                self.take_news(end);
                None
            }
            false => Some(end),
        };
        if !entries.is_empty() {
            self.transcript.note("Events were lost; from the history:");
            self.transcript.entries(&entries);
        }
        if let Some(end) = end {
            self.take_news(end);
        }
    }

    fn show_part(&mut self, part: Part, mut page: HistoryPage) {
        let last = page.entries.iter().map(|entry| entry.run).max();
        self.runs.tell(match part {
            Part::Between(_, run) | Part::Run { run, .. } => run,
            Part::UpTo { run, .. } => last.unwrap_or_default().min(run),
        });
        let first = page.entries.first().map_or(0, |entry| entry.run);
        cut(part, &mut page);
        if let Part::Between(told, _) = part {
            // Earlier messages are already shown.
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

/// The entries of a run, without its first message if that is already shown.
fn entries_of(run: u64, is_begun: bool, page: HistoryPage) -> Vec<HistoryEntry> {
    let is_of = |entry: &HistoryEntry| entry.run == run;
    let is_whole = !page.more || !page.entries.first().is_some_and(is_of);
    let mut entries = page.entries;
    entries.retain(is_of);
    let begins = entries
        .first()
        .is_some_and(|entry| entry.role == "user" && !entry.compact);
    if is_begun && is_whole && begins {
        entries.remove(0);
    }
    // The event of the end shows the failure.
    entries.iter_mut().for_each(|entry| entry.failed = None);
    entries
}

/// Reduces a page to a part.
fn cut(part: Part, page: &mut HistoryPage) {
    let is_of = |entry: &HistoryEntry| match part {
        Part::Between(told, run) => entry.run > told && entry.run <= run,
        Part::UpTo { run, .. } => entry.run <= run,
        Part::Run { run, .. } => entry.run == run,
    };
    if let Part::UpTo { goes_on: true, .. } = part
        && page.more
    {
        // Trailing entries without a run belong to the active run, which began before
        // the page.
        let known = page.entries.iter().rposition(|entry| entry.run > 0);
        page.entries.truncate(known.map_or(0, |at| at + 1));
    }
    page.entries.retain(is_of);
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
    fn lost_run_is_shown_without_its_first_message() {
        let said = ["3 a?", "4 b?", "4 c?", "4 d"];
        for (said, is_begun, more, want) in [
            (&said[..], true, true, &["c?", "d"][..]),
            (&said, false, true, &["b?", "c?", "d"]),
            // The run began before the page.
            (&said[2..], true, true, &["c?", "d"]),
            (&said[1..], true, false, &["c?", "d"]),
            (&said[..1], true, false, &[]),
        ] {
            let shown = entries_of(4, is_begun, page(said, more));
            let shown: Vec<_> = shown.into_iter().map(|entry| entry.content).collect();
            assert_eq!(shown, want, "{said:?}");
        }
    }

    #[test]
    fn parts_of_a_page_hold_each_message_once() {
        let said = ["0 old?", "0 old", "3 a?", "3 a", "4 b?", "4 b", "5 c?"];
        let up_to = |run, goes_on| Part::UpTo { run, goes_on };
        let long = ["0 d", "0 e"];
        for (said, more, part, want) in [
            (&said[..], true, up_to(4, true), &said[..6]),
            (&said, true, up_to(5, false), &said),
            (&said, false, up_to(u64::MAX, false), &said),
            (&said, false, Part::Between(3, 4), &said[4..6]),
            (&said, false, Part::Between(5, 9), &[]),
            // A long active run, or no runs.
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
