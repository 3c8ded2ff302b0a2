//! The engine's state of one entry.

use super::GRACE;
use crate::cron::account::{Account, Line, Skipped, Why};
use crate::cron::entry::{CronEntry, Missed};
use crabtalk_domain::ConversationKey;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Limit for counting missed times: ten thousand entries may each have missed a year.
const MAX_COUNT: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct Slot {
    /// `None` for a removed entry whose last run is in progress.
    pub(super) entry: Option<Arc<CronEntry>>,
    pub(super) account: Account,
    /// The first undecided due time.
    pub(super) next: Option<Timestamp>,
    /// A due time whose run waits for the limits.
    pub(super) waiting: Option<Timestamp>,
    /// Whether the waiting run replaces missed times.
    pub(super) late: bool,
    /// The run in progress and its start.
    pub(super) running: Option<(u64, Timestamp)>,
    /// The conversation of that run.
    pub(super) fired_key: Option<ConversationKey>,
}

impl Slot {
    pub(super) fn known(account: Account) -> Self {
        Self {
            account,
            ..Self::default()
        }
    }

    /// Sets the entry; returns the lines of changes.
    pub(super) fn take(&mut self, entry: Arc<CronEntry>, now: Timestamp) -> Vec<Line> {
        let (id, print) = (entry.id, entry.print());
        let mut lines = Vec::new();
        if self.account.print != print {
            lines.push(Line::Known { id, print, at: now });
        }
        let paused = entry.draft.paused;
        let was = lines.is_empty() && self.account.paused;
        if was != paused {
            lines.push(Line::Paused {
                id,
                paused,
                at: now,
            });
        }
        self.entry = Some(entry);
        lines.iter().for_each(|line| self.account.take(line));
        lines
    }

    /// The next due time after a time, unless the entry is paused or used up.
    pub(super) fn after(&self, after: Timestamp) -> Option<Timestamp> {
        let entry = self.entry.as_ref()?;
        if self.account.paused || self.account.used {
            return None;
        }
        entry.when.next_after(after, &entry.zone)
    }

    /// Decides all due times up to `now`.
    pub(super) fn decide(&mut self, now: Timestamp, lines: &mut Vec<Line>) {
        if self.account.passed(now) {
            self.next = self.after(self.account.mark);
        }
        let Some(first) = self.next.filter(|next| *next <= now) else {
            return;
        };
        let Some(entry) = self.entry.clone() else {
            return;
        };
        let last = entry.when.last_until(now, &entry.zone);
        let last = last.filter(|last| *last >= first).unwrap_or(first);
        if self.running.is_some_and(|(_, since)| since <= first) {
            self.skip(first, last, Why::Overlap, now, lines);
            self.next = self.after(last);
            return;
        }
        let in_time = now.duration_since(last) <= GRACE;
        if !in_time && entry.missed == Missed::Skip {
            self.skip(first, last, Why::Missed, now, lines);
            self.next = self.after(last);
            return;
        }
        if first < last {
            let moment = SignedDuration::from_nanos(1);
            let before = entry.when.last_until(last - moment, &entry.zone);
            self.skip(first, before.unwrap_or(first), Why::Missed, now, lines);
        }
        let quiet = entry.quiet.is_some_and(|quiet| {
            quiet.holds(last, &entry.zone) || !in_time && quiet.holds(now, &entry.zone)
        });
        if quiet {
            self.skip(last, last, Why::Quiet, now, lines);
        } else if self.running.is_some() {
            self.skip(last, last, Why::Overlap, now, lines);
        } else {
            (self.waiting, self.late) = (Some(last), !in_time);
            self.next = None;
            return;
        }
        self.next = self.after(last);
    }

    /// Whether the entry has quiet hours now.
    pub(super) fn is_quiet(&self, now: Timestamp) -> bool {
        let entry = self.entry.as_ref();
        entry.is_some_and(|it| it.quiet.is_some_and(|quiet| quiet.holds(now, &it.zone)))
    }

    /// Skips the waiting due time because of quiet hours, without a later replacement.
    pub(super) fn skip_waiting(&mut self, due: Timestamp, now: Timestamp, lines: &mut Vec<Line>) {
        self.waiting = None;
        self.skip(due, due, Why::Quiet, now, lines);
        self.next = self.after(self.account.mark);
    }

    fn skip(
        &mut self,
        due: Timestamp,
        last: Timestamp,
        why: Why,
        at: Timestamp,
        lines: &mut Vec<Line>,
    ) {
        let Some(entry) = &self.entry else { return };
        let mut count = 1;
        let mut then = due;
        while then < last && count < MAX_COUNT {
            match entry.when.next_after(then, &entry.zone) {
                Some(next) if next <= last => then = next,
                _ => break,
            }
            count += 1;
        }
        let line = Line::Skipped(Skipped {
            id: entry.id,
            due,
            last,
            count,
            why,
            at,
        });
        self.account.take(&line);
        lines.push(line);
    }
}
