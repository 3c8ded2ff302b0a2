//! Joining a conversation in which something may run.
//!
//! A run that is joined is told from its beginning, and what it did by then is in
//! the history, too.
//! Invariant: each message is shown once, what was before the run above it.

use super::Live;
use crabtalk_proto::{HistoryEntry, HistoryPage, StreamEvent, stream_event::Event};

/// The page of history that a conversation begins with on the screen.
#[derive(Default)]
pub(super) struct Joining {
    /// Whether it is on its way. Runs are heard once it is here.
    waits: bool,
    /// Held back until it is known where the run in flight begins.
    page: Option<HistoryPage>,
}

impl Joining {
    /// A page was asked for, and what runs is followed.
    pub(super) fn begin(&mut self) {
        self.waits = true;
        self.page = None;
    }

    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// The page that was waited for is here, or none will be; whether one was.
    pub(super) fn arrives(&mut self) -> bool {
        std::mem::take(&mut self.waits)
    }
}

impl Live<'_> {
    /// Holds a page while what runs is about to say where it began; gives it back
    /// where nothing does.
    pub(super) fn hold_page(&mut self, page: HistoryPage) -> Option<HistoryPage> {
        let joins = self
            .runs
            .front()
            .is_some_and(|run| run.said.is_none() && run.number.is_none());
        if self.joining.arrives() && joins {
            self.joining.page = Some(page);
            return None;
        }
        Some(page)
    }

    /// Shows the page that is held, less what this event and those behind it tell.
    pub(super) fn page_before(&mut self, event: &StreamEvent) {
        match &event.event {
            Some(Event::Start(_)) => {}
            Some(Event::UserMessage(message)) => {
                if let Some(mut page) = self.joining.page.take() {
                    let before = before(&page.entries, page.more, &message.content);
                    page.entries.truncate(before);
                    self.show_page(&page);
                }
            }
            _ => self.page_whole(),
        }
    }

    /// Shows the page that is held: no run says what of it is its own.
    pub(super) fn page_whole(&mut self) {
        if let Some(page) = self.joining.page.take() {
            self.show_page(&page);
        }
    }
}

/// How many entries were there before the run in flight, which began with these
/// words. Where they are not on the page, they stand further up and all of it is the
/// run's, but for the summary that a compaction put in their place.
fn before(entries: &[HistoryEntry], more: bool, words: &str) -> usize {
    let begins = |entry: &HistoryEntry| entry.role == "user" && entry.content == words;
    let summary = entries.iter().rposition(|entry| entry.compact);
    match (entries.iter().rposition(begins), summary) {
        (Some(at), _) => at,
        (None, Some(summary)) => summary + 1,
        (None, None) if more => 0,
        // Written down in other words than they were said in.
        (None, None) => entries.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(said: &[&str]) -> Vec<HistoryEntry> {
        let entry = |said: &&str| {
            let (role, content) = said.split_once(' ').unwrap();
            HistoryEntry {
                role: role.trim_end_matches('*').into(),
                content: content.into(),
                compact: role.ends_with('*'),
                ..HistoryEntry::default()
            }
        };
        said.iter().map(entry).collect()
    }

    #[test]
    fn what_the_run_in_flight_tells_is_not_taken_from_the_history() {
        for (said, more, want) in [
            (
                &["user a", "assistant b", "user c", "assistant d"][..],
                false,
                2,
            ),
            (&["user c", "assistant b", "user c", "tool d"], false, 2),
            (&["user c"], false, 0),
            // It began before the page does.
            (&["tool a", "assistant b", "user a steer"], true, 0),
            // A skill's words stand for `c`.
            (&["user a", "assistant b", "user the skill"], false, 3),
            (&["user* summary", "assistant b"], false, 1),
            (&["user* summary", "user c", "assistant b"], true, 1),
            (&[], false, 0),
        ] {
            assert_eq!(before(&entries(said), more, "c"), want, "{said:?}");
        }
    }
}
