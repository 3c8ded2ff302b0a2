//! The journal of events that have not fired yet: JSON lines in `state/`.
//!
//! An event is appended and synced before it is acknowledged; when all that it
//! fires has ended, a line says so. Whoever opens the journal gets what is left,
//! also after a crash in the middle of a line. A disk that takes nothing lets it be
//! read; what is published then is refused, until there is room.

use crate::event::{Event, TooLong, check_payload};
use crabtalk_files::Existing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Events that may wait. More are refused: whoever publishes faster than agents
/// run has to be told.
pub const MAX_PENDING: usize = 1000;

/// Bytes of their payloads together.
pub const MAX_PENDING_BYTES: usize = 16 * 1024 * 1024;

/// From this size on the file is made anew when nothing much is left in it.
const REWRITE_FROM: u64 = 1024 * 1024;

/// Largest file that is read: what may be pending, escaped, twice over.
const MAX_FILE_BYTES: u64 = 16 * MAX_PENDING_BYTES as u64;

/// Journals that are kept as they were found: who has had so many has looked at one.
const MAX_ASIDE: u32 = 8;

/// Why an event is not taken.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// One of its texts has more bytes than an event may; nothing was kept of it.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Agents are slower than what is published; it passes as they catch up.
    #[error(
        "{MAX_PENDING} events, or {} MiB of them, wait for agents to run: publish again later",
        MAX_PENDING_BYTES / 1024 / 1024
    )]
    Full,
    /// The journal could not be written, and so nothing will fire: make room and publish again.
    #[error("the event could not be kept: {0}")]
    Disk(#[from] io::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Event(Event),
    Done(u64),
    /// Numbers below these are taken, by events and by subscriptions.
    Next {
        event: u64,
        subscription: u64,
    },
}

/// The journal, open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// `None` while the disk has not taken the journal as it is read.
    file: Option<File>,
    length: u64,
    next_event: u64,
    next_subscription: u64,
    pending: BTreeMap<u64, Arc<Event>>,
    pending_bytes: usize,
    /// Why the disk did not take it when it was opened.
    refused: Option<io::Error>,
    /// Lines in the file that could not be read, until they are kept aside.
    unreadable: u64,
    aside: Option<Aside>,
}

/// Lines of a journal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// How many.
    pub lines: u64,
    /// Where the journal lies as it was found.
    pub file: PathBuf,
}

impl Journal {
    /// Opens the journal, and makes it if there is none. Lines that cannot be read
    /// are left out, and the journal is kept as it was beside the new one; what a
    /// crash cut off at the end was never taken, and goes. Where it does not tell which
    /// numbers were given, events begin with `fresh`, a number that none had before: whoever
    /// runs them takes one of the same number for a retry.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(path: &Path, fresh: u64) -> io::Result<Self> {
        let read = crabtalk_files::if_there(crabtalk_files::read(path, MAX_FILE_BYTES));
        let bytes = read.map_err(io::Error::other)?.unwrap_or_default();
        let mut journal = Self {
            path: path.to_owned(),
            file: None,
            length: 0,
            next_event: 1,
            next_subscription: 1,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            refused: None,
            unreadable: 0,
            aside: None,
        };
        let mut knows_numbers = false;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Event(event)) => journal.keep(Arc::new(event)),
                Ok(Line::Done(id)) => drop(journal.forget(id)),
                Ok(Line::Next {
                    event,
                    subscription,
                }) => {
                    knows_numbers = true;
                    journal.next_event = journal.next_event.max(event);
                    journal.next_subscription = journal.next_subscription.max(subscription);
                }
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) if line.starts_with(b"{") && !line.ends_with(b"\n") => {}
                Err(_) => journal.unreadable += 1,
            }
        }
        if !knows_numbers || journal.unreadable > 0 {
            journal.next_event = journal.next_event.max(fresh);
        }
        // A last line without its end would take the next one along.
        journal.refused = journal.rewrite().err();
        Ok(journal)
    }

    /// Why nothing could be written when it was opened.
    #[must_use]
    pub fn refused(&self) -> Option<&io::Error> {
        self.refused.as_ref()
    }

    /// What could not be read when it was opened.
    #[must_use]
    pub fn aside(&self) -> Option<&Aside> {
        self.aside.as_ref()
    }

    /// What waits, in the order in which it came.
    pub fn pending(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.pending.values()
    }

    /// Whether something about this waits already.
    #[must_use]
    pub fn has(&self, about: &str) -> bool {
        self.pending.values().any(|event| event.about == about)
    }

    /// Takes an event, whose number is given here. It is on the disk when this
    /// returns.
    ///
    /// # Errors
    /// Too long or too many, and what the disk says; then nothing is kept.
    pub fn publish(&mut self, event: Event) -> Result<Arc<Event>, PublishError> {
        check_payload(&event.payload)?;
        let bytes = self.pending_bytes + event.payload.len();
        if self.pending.len() >= MAX_PENDING || bytes > MAX_PENDING_BYTES {
            return Err(PublishError::Full);
        }
        let event = Arc::new(Event {
            id: self.next_event,
            ..event
        });
        self.append(&Line::Event(Event::clone(&event)))?;
        self.keep(Arc::clone(&event));
        Ok(event)
    }

    /// Everything that an event fires has ended.
    ///
    /// # Errors
    /// What the disk says; then the event fires again after a restart, and whoever
    /// runs it knows its number again.
    pub fn done(&mut self, id: u64) -> io::Result<()> {
        if self.forget(id).is_none() {
            return Ok(());
        }
        self.append(&Line::Done(id))?;
        if self.length > REWRITE_FROM && self.length > 4 * self.pending_bytes as u64 {
            self.rewrite()?;
        }
        Ok(())
    }

    /// A number that no subscription has had, given those that there are.
    ///
    /// # Errors
    /// What the disk says.
    pub fn new_subscription(&mut self, known: impl Iterator<Item = u64>) -> io::Result<u64> {
        let highest = known.max().unwrap_or_default();
        let id = self.next_subscription.max(highest.saturating_add(1));
        self.append(&Line::Next {
            event: self.next_event,
            subscription: id.saturating_add(1),
        })?;
        self.next_subscription = id.saturating_add(1);
        Ok(id)
    }

    /// Numbers that the file of subscriptions has are taken for good.
    pub fn has_seen(&mut self, subscriptions: impl Iterator<Item = u64>) {
        let highest = subscriptions.max().unwrap_or_default();
        self.next_subscription = self.next_subscription.max(highest.saturating_add(1));
    }

    fn keep(&mut self, event: Arc<Event>) {
        self.next_event = self.next_event.max(event.id.saturating_add(1));
        self.pending_bytes += event.payload.len();
        self.pending.insert(event.id, event);
    }

    fn forget(&mut self, id: u64) -> Option<Arc<Event>> {
        let event = self.pending.remove(&id)?;
        self.pending_bytes -= event.payload.len();
        Some(event)
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if self.file.is_none() {
            self.rewrite()?;
        }
        let mut file = self.file.as_ref().expect("it was opened above");
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Half a line would spoil the next one. Where it cannot be cut off, that one
            // begins with a new file.
            if file.set_len(self.length).is_err() {
                self.file = None;
            }
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file anew from what waits.
    fn rewrite(&mut self) -> io::Result<()> {
        if self.unreadable > 0 {
            self.aside = Some(Aside {
                lines: self.unreadable,
                file: put_aside(&self.path)?,
            });
            self.unreadable = 0;
        }
        let next = Line::Next {
            event: self.next_event,
            subscription: self.next_subscription,
        };
        let mut bytes = serde_json::to_vec(&next)?;
        bytes.push(b'\n');
        for event in self.pending.values() {
            serde_json::to_writer(&mut bytes, &Line::Event(Event::clone(event)))?;
            bytes.push(b'\n');
        }
        crabtalk_files::write(&self.path, &bytes, Existing::Replace)?;
        let file = crabtalk_files::open_to_append(&self.path).map_err(io::Error::other)?;
        self.file = Some(file);
        self.length = bytes.len() as u64;
        Ok(())
    }
}

/// Keeps a journal as it was found. With too many of those the last one makes room.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let bytes = crabtalk_files::read(path, MAX_FILE_BYTES).map_err(io::Error::other)?;
    let mut all = (1..=MAX_ASIDE).map(|n| path.with_extension(format!("jsonl.broken-{n}")));
    let free = all.find(|file| fs::symlink_metadata(file).is_err());
    let file = free.unwrap_or_else(|| path.with_extension(format!("jsonl.broken-{MAX_ASIDE}")));
    crabtalk_files::write(&file, &bytes, Existing::Replace)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MAX_PAYLOAD_BYTES;
    use proptest::prelude::*;

    fn event(source: &str) -> Event {
        Event {
            id: 0,
            source: source.into(),
            payload: "it\nhappened".into(),
            depth: 1,
            fires: vec![1],
            about: String::new(),
        }
    }

    fn open(folder: &tempfile::TempDir) -> Journal {
        Journal::open(&folder.path().join("events.jsonl"), FRESH).expect("opens")
    }

    /// More than any test gives otherwise.
    const FRESH: u64 = 1_000_000;

    #[test]
    fn numbers_of_events_that_were_lost_are_not_given_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        // The first has nothing to tell either.
        let mut journal = open(&folder);
        let first = journal.publish(event("a")).expect("taken").id;
        assert_eq!(first, FRESH);
        journal.done(first).expect("noted");
        drop(journal);
        let open = || Journal::open(&path, 2 * FRESH).expect("opens");
        assert_eq!(open().publish(event("b")).expect("taken").id, first + 1);
        // Who knows which numbers stood in what cannot be read?
        let mut lost = fs::read(&path).expect("read");
        lost.extend(b"garbage\n");
        fs::write(&path, lost).expect("written");
        assert_eq!(open().publish(event("c")).expect("taken").id, 2 * FRESH);
        fs::remove_file(&path).expect("removed");
        assert_eq!(open().publish(event("d")).expect("taken").id, 2 * FRESH);
    }

    #[test]
    fn lines_that_cannot_be_read_are_kept_aside_and_hide_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let mut journal = open(&folder);
        assert_eq!(journal.aside(), None);
        journal.publish(event("x")).expect("taken");
        drop(journal);
        // What a crash cuts off is no news.
        let mut found = fs::read(&path).expect("read");
        found.extend(b"{\"event\":{\"id\"");
        fs::write(&path, &found).expect("written");
        assert_eq!(open(&folder).aside(), None);

        let mut found = b"\xff\0garbage\n\n".to_vec();
        found.extend(fs::read(&path).expect("read"));
        fs::write(&path, &found).expect("written");
        let journal = open(&folder);
        assert_eq!(journal.pending().count(), 1);
        let aside = journal.aside().expect("told").clone();
        assert_eq!(aside.lines, 1);
        assert_eq!(fs::read(&aside.file).expect("kept"), found);
        // It is whole again, and another one takes nobody's place.
        assert_eq!(open(&folder).aside(), None);
        fs::write(&path, b"more garbage\n").expect("written");
        assert_ne!(open(&folder).aside().expect("told").file, aside.file);
        assert_eq!(fs::read(&aside.file).expect("kept"), found);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn half_a_line_that_cannot_be_cut_off_spoils_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = open(&folder);
        let first = journal.publish(event("a")).expect("taken");
        // It takes nothing, and has no end that could be cut off.
        let full = File::options().append(true).open("/dev/full");
        journal.file = Some(full.expect("opens"));
        journal.publish(event("b")).expect_err("full");
        let third = journal.publish(event("c")).expect("there is room");
        drop(journal);
        assert_eq!(
            open(&folder).pending().collect::<Vec<_>>(),
            [&first, &third]
        );
    }

    #[test]
    fn what_was_taken_outlives_a_restart_until_it_is_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = open(&folder);
        let first = journal.publish(event("a")).expect("taken");
        let second = journal.publish(event("b")).expect("taken");
        journal.done(first.id).expect("noted");
        drop(journal);
        let mut journal = open(&folder);
        assert_eq!(journal.pending().collect::<Vec<_>>(), [&second]);
        let third = journal.publish(event("c")).expect("taken");
        assert!(third.id > second.id, "a number is given once");
        journal.done(second.id).expect("noted");
        journal.done(third.id).expect("noted");
        drop(journal);
        let mut journal = open(&folder);
        assert_eq!(journal.pending().count(), 0);
        assert!(journal.publish(event("d")).expect("taken").id > third.id);
    }

    #[test]
    fn numbers_of_subscriptions_are_never_given_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = open(&folder).new_subscription([].into_iter()).expect("one");
        let second = open(&folder).new_subscription([].into_iter()).expect("one");
        assert!(second > first);
        let third = open(&folder)
            .new_subscription([41].into_iter())
            .expect("one");
        assert_eq!(third, 42);
        let mut journal = open(&folder);
        journal.has_seen([99].into_iter());
        assert_eq!(journal.new_subscription([].into_iter()).expect("one"), 100);
    }

    #[test]
    fn too_much_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = open(&folder);
        let mut long = event("a");
        long.payload = "x".repeat(MAX_PAYLOAD_BYTES + 1);
        assert!(matches!(
            journal.publish(long.clone()),
            Err(PublishError::TooLong(_))
        ));
        long.payload.pop();
        let taken = (0..MAX_PENDING).take_while(|_| journal.publish(long.clone()).is_ok());
        assert_eq!(taken.count(), MAX_PENDING_BYTES / MAX_PAYLOAD_BYTES);
        assert!(matches!(journal.publish(long), Err(PublishError::Full)));
        assert_eq!(
            open(&folder).pending().count(),
            MAX_PENDING_BYTES / MAX_PAYLOAD_BYTES
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However much of the file a crash left: what is read was written, in its
        /// order, and the journal goes on.
        #[test]
        fn a_torn_file_loses_no_whole_line(cut in 0_usize..2000, count in 1_usize..8) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("events.jsonl");
            let mut journal = open(&folder);
            for at in 0..count {
                journal.publish(event(&at.to_string())).expect("taken");
            }
            drop(journal);
            let bytes = std::fs::read(&path).expect("there");
            let kept = &bytes[..cut.min(bytes.len())];
            std::fs::write(&path, kept).expect("cut");
            let whole = kept.iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
            let mut journal = open(&folder);
            // The last line may be whole but for its end.
            prop_assert!((whole..=whole + 1).contains(&journal.pending().count()));
            let sources: Vec<String> = journal.pending().map(|e| e.source.clone()).collect();
            prop_assert!(sources.iter().enumerate().all(|(at, s)| *s == at.to_string()));
            let next = journal.publish(event("next")).expect("taken");
            let again = open(&folder);
            prop_assert_eq!(again.pending().last(), Some(&next));
        }
    }
}
