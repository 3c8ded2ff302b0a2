//! Collects the working history of a log from its lines, newest first.
//!
//! Invariant: a marker that points back hides the lines between it and its target. The
//! history at the target is collected as if the log ended there, so that repeated rewinds
//! and reopened archives need no special cases.

use crate::line::{Marker, Stamp};
use crabtalk_domain::Message;

/// The last marker of a log, of any kind.
pub(crate) struct Last {
    pub(crate) offset: u64,
    pub(crate) stamp: Stamp,
    /// Offset of the last marker that ends an archive; unknown after an external edit.
    pub(crate) archive: Option<u64>,
    /// Number of messages after it.
    pub(crate) behind: usize,
}

/// The part of the working history that was read.
#[derive(Default)]
pub(crate) struct Working {
    /// Messages, newest first.
    messages: Vec<Message>,
    /// Number of messages that a summary keeps from before its marker.
    kept: usize,
    pub(crate) last: Option<Last>,
    /// The marker at the beginning of the history.
    begin: Option<Marker>,
    /// Where to continue, after a marker that points back.
    back_to: Option<u64>,
}

impl Working {
    pub(crate) fn message(&mut self, message: Message) {
        if self.back_to.is_some() {
            return;
        }
        match &self.begin {
            None => self.messages.push(message),
            Some(marker) if self.kept < marker.keep => {
                self.messages.push(message);
                self.kept += 1;
            }
            Some(_) => {}
        }
    }

    /// Adds a marker that ends an archive, and returns whether it is the last one.
    pub(crate) fn archive(&mut self, offset: u64, marker: Marker) -> bool {
        let is_last = self.note(offset, marker.stamp, Some(offset));
        if self.is_wanted() {
            match marker.reopen {
                Some(to) => self.back_to = Some(to),
                None if self.begin.is_none() => self.begin = Some(marker),
                None => {}
            }
        }
        is_last
    }

    /// Adds a rewind, and returns whether it is the last marker.
    pub(crate) fn rewind(&mut self, offset: u64, to: u64, stamp: Stamp) -> bool {
        let is_last = self.note(offset, stamp, stamp.prev);
        if self.is_wanted() {
            self.back_to = Some(to);
        }
        is_last
    }

    fn note(&mut self, offset: u64, stamp: Stamp, archive: Option<u64>) -> bool {
        let is_last = self.last.is_none();
        self.last.get_or_insert(Last {
            offset,
            stamp,
            archive,
            behind: self.messages.len(),
        });
        is_last
    }

    /// Whether the history includes an earlier line of the current place.
    fn is_wanted(&self) -> bool {
        self.back_to.is_none() && !self.is_complete()
    }

    /// Whether the history has been read to its beginning.
    pub(crate) fn is_complete(&self) -> bool {
        let begin = self.begin.as_ref();
        self.back_to.is_none() && begin.is_some_and(|marker| self.kept >= marker.keep)
    }

    /// Returns once where to continue after a marker that points back.
    pub(crate) fn jump(&mut self) -> Option<u64> {
        self.back_to.take()
    }

    /// The history, whether it begins with a summary, and the number of kept messages.
    pub(crate) fn finish(self) -> (Vec<Message>, bool, usize) {
        // A fresh start has no summary (CONV-11).
        let summary = self.begin.filter(|marker| !marker.summary.is_empty());
        let has_summary = summary.is_some();
        let mut history: Vec<Message> = summary.map(Marker::into_message).into_iter().collect();
        history.extend(self.messages.into_iter().rev());
        (history, has_summary, self.kept)
    }
}
