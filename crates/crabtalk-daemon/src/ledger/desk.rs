//! Reads and writes the files of days, where that may wait for a disk.
//!
//! Invariants: one thread at a time does so, and however long it waits, whoever
//! counts does not; days are written in their order, and one that is over is
//! added up.

use super::book::Book;
use super::day::{Day, Known};
use super::sums::{Entry, Sums};
use jiff::civil::Date;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// How long a call that a budget decides over waits for the day's file.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// How long the end of a run waits for its lines: they are in the page cache in
/// less than a millisecond.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// Days that wait for a disk at most; of an older one what is unwritten is lost.
const MAX_DAYS: usize = 3;

/// The desk with the books of days.
pub(super) struct Desk {
    folder: PathBuf,
    days: Mutex<Days>,
    /// The file of the first day, for whoever is at it.
    pub(super) book: Mutex<Option<Book>>,
    /// Something was read, or all is written.
    moved: Notify,
}

#[derive(Default)]
struct Days {
    /// The last one is today; those before are not written yet.
    list: VecDeque<Day>,
    /// Whether a thread is at it.
    busy: bool,
    /// Lines so far.
    added: u64,
    /// Of these, those that are written, or never will be.
    written: u64,
}

/// What the thread does next.
enum Step {
    Open(Date),
    Write(Vec<Entry>),
    AddUp(Box<Sums>),
    Rest,
}

impl Desk {
    pub(super) fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            folder,
            days: Mutex::default(),
            book: Mutex::default(),
            moved: Notify::new(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Nothing under it waits for a disk.
    fn days(&self) -> MutexGuard<'_, Days> {
        self.days.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a day, or changes it.
    pub(super) fn with<T>(&self, date: Date, look: impl FnOnce(&mut Day) -> T) -> T {
        look(self.days().at(date))
    }

    /// Counts something, and has it written down. Answers with the number of its
    /// line.
    pub(super) fn add(self: &Arc<Self>, date: Date, entry: Entry) -> u64 {
        let line = {
            let days = &mut *self.days();
            days.added += 1;
            if !days.at(date).add(entry) {
                days.written += 1;
            }
            days.added
        };
        self.begin();
        line
    }

    /// Waits until a line is written, for a moment.
    pub(super) async fn written(&self, line: u64) {
        if self.days().written >= line {
            return;
        }
        let writing = async {
            loop {
                let moved = self.moved.notified();
                if self.days().written >= line {
                    return;
                }
                moved.await;
            }
        };
        // Why it takes longer is in the log, once the disk says it.
        let _ = tokio::time::timeout(WRITTEN_WITHIN, writing).await;
    }

    /// Waits until a day's file is read. An error says why it is not.
    pub(super) async fn know(self: &Arc<Self>, date: Date) -> Result<(), String> {
        let known = |desk: &Self| desk.with(date, |day| day.known.clone());
        if known(self) == Known::Read {
            return Ok(());
        }
        self.with(date, |day| {
            if let Known::Unreadable(_) = day.known {
                day.known = Known::LookAgain;
            }
        });
        self.begin();
        let told = |known| match known {
            Known::Read => Some(Ok(())),
            Known::Unreadable(why) => Some(Err(why)),
            Known::Unread | Known::LookAgain => None,
        };
        if let Some(told) = told(known(self)) {
            return told;
        }
        let waiting = async {
            loop {
                let moved = self.moved.notified();
                if let Some(told) = told(known(self)) {
                    return told;
                }
                moved.await;
            }
        };
        let waited = tokio::time::timeout(READ_WITHIN, waiting).await;
        waited.unwrap_or_else(|_| {
            let folder = self.folder.display();
            Err(format!("the disk of {folder} does not answer"))
        })
    }

    /// Waits until everything is written.
    pub(super) async fn finish(&self) {
        loop {
            let moved = self.moved.notified();
            if !self.days().busy {
                return;
            }
            moved.await;
        }
    }

    /// Has a thread at the files, if none is.
    fn begin(self: &Arc<Self>) {
        if std::mem::replace(&mut self.days().busy, true) {
            return;
        }
        let this = Arc::clone(self);
        match Handle::try_current() {
            // [`Self::finish`] waits for it.
            Ok(runtime) => drop(runtime.spawn_blocking(move || this.work())),
            Err(_) => this.work(),
        }
    }

    fn work(&self) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match (self.next(book.as_ref()), &mut *book) {
                (Step::Open(date), book) => {
                    let (opened, read) = Book::open(&self.folder, date);
                    *book = Some(opened);
                    self.with(date, |day| day.take(read));
                    self.moved.notify_waiters();
                }
                (Step::Write(entries), Some(book)) => self.write(book, &entries),
                (Step::AddUp(sums), Some(book)) => {
                    if let Err(error) = book.rewrite(&sums) {
                        tracing::warn!(%error, day = %book.date(), "the ledger's lines stay as they are");
                    }
                    self.days().forget(book.date());
                }
                (Step::Rest | Step::Write(_) | Step::AddUp(_), _) => {
                    return self.moved.notify_waiters();
                }
            }
        }
    }

    fn next(&self, book: Option<&Book>) -> Step {
        let days = &mut *self.days();
        let Some(day) = days.list.front() else {
            days.busy = false;
            return Step::Rest;
        };
        let unwritten = day.unwritten();
        let is_over = days.list.len() > 1;
        if unwritten.is_empty() && !is_over && !day.is_asked_for() {
            days.busy = false;
            return Step::Rest;
        }
        if day.is_asked_for() || book.is_none_or(|book| book.date() != day.date) {
            return Step::Open(day.date);
        }
        if unwritten.is_empty() {
            return Step::AddUp(Box::new(day.written_sums()));
        }
        Step::Write(unwritten)
    }

    fn write(&self, book: &mut Book, entries: &[Entry]) {
        let mut done: io::Result<()> = Ok(());
        for entry in entries {
            done = done.and(book.add(entry));
        }
        let sums = {
            let days = &mut *self.days();
            days.written += entries.len() as u64;
            let day = days.at(book.date());
            day.written(entries.len());
            book.is_full().then(|| day.written_sums())
        };
        self.moved.notify_waiters();
        if let Some(sums) = sums {
            done = done.and(book.rewrite(&sums));
        }
        if let Err(error) = done {
            tracing::error!(
                %error,
                folder = %self.folder.display(),
                "cannot write down what was spent; it counts until a restart"
            );
        }
    }
}

impl Days {
    fn forget(&mut self, date: Date) {
        self.list.retain(|day| day.date != date);
    }

    /// The day of a date; a new one is today.
    fn at(&mut self, date: Date) -> &mut Day {
        let at = self.list.iter().position(|day| day.date == date);
        let at = at.unwrap_or_else(|| {
            if self.list.len() == MAX_DAYS {
                self.list.pop_front();
            }
            self.list.push_back(Day::new(date));
            self.list.len() - 1
        });
        &mut self.list[at]
    }
}
