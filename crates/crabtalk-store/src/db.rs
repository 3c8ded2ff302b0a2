//! A SQLite database with one writer thread and one reader thread.
//!
//! Invariants: no caller's thread waits for the disk; a write is answered after
//! its commit; after an error the connection is closed, so that nothing is
//! acknowledged on it. Threads and connections begin with the first operation.

mod connection;

use connection::{Connected, open};
use crabtalk_domain::records::Error;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Durability guarantee of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Records: a commit survives a power cut, and damage is reported.
    Recorded,
    /// An index: a power cut may lose the last commits, and a damaged or foreign
    /// file is deleted and made again.
    Derived,
}

/// Where a database is and how it is made.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    /// Statements that lead from each format to the next; the first one makes
    /// format 1.
    pub(crate) migrations: &'static [&'static str],
    /// Whether one connection holds the database alone, as on a network.
    is_exclusive: bool,
}

impl Definition {
    pub(crate) fn new(
        path: PathBuf,
        contents: Contents,
        migrations: &'static [&'static str],
    ) -> Self {
        let is_exclusive = connection::is_on_network(&path);
        Self {
            path,
            contents,
            migrations,
            is_exclusive,
        }
    }
}

const WRITER: &str = "db-write";
const READER: &str = "db-read";

/// One operation on its way through a thread.
type Job = Box<dyn FnOnce(&Definition, &mut Connected) + Send>;

/// A handle to a database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Database(Arc<Inner>);

struct Inner {
    definition: Definition,
    writer: Mutex<Option<Sender<Job>>>,
    reader: Mutex<Option<Sender<Job>>>,
}

impl Database {
    /// Does not open the database yet.
    pub(crate) fn new(definition: Definition) -> Self {
        Self(Arc::new(Inner {
            definition,
            writer: Mutex::new(None),
            reader: Mutex::new(None),
        }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.definition.path
    }

    /// Runs `work` in a transaction, and answers after its commit.
    pub(crate) fn write<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Error>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        wait(self.send_write(work), self.closed())
    }

    /// Runs `work` on the reader's connection, which sees committed data.
    pub(crate) fn read<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Error>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        wait(self.send_read(work), self.closed())
    }

    /// As [`Self::write`], for a thread that may wait.
    pub(crate) fn write_now<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.wait_now(self.send_write(work))
    }

    /// As [`Self::read`], for a thread that may wait.
    pub(crate) fn read_now<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.wait_now(self.send_read(work))
    }

    /// Like [`Self::write`], without waiting for the result.
    pub(crate) fn write_later<T, F>(&self, work: F)
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        // What cannot be written is found by a later look.
        drop(self.send_write(work));
    }

    /// Runs `work` outside of a transaction, in the caller's thread, on a connection of its
    /// own: for processes that only copy the database.
    pub(crate) fn alone<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let definition = &self.0.definition;
        work(&open(definition)?).map_err(|e| connection::failed(&definition.path, &e))
    }

    fn send_write<T, F>(&self, work: F) -> Option<oneshot::Receiver<Result<T, Error>>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let work = |connection: &Connection| {
            let immediate = TransactionBehavior::Immediate;
            let transaction = Transaction::new_unchecked(connection, immediate)?;
            let done = work(connection)?;
            transaction.commit().map(|()| done)
        };
        send(&self.0.writer, &self.0.definition, WRITER, work)
    }

    fn send_read<T, F>(&self, work: F) -> Option<oneshot::Receiver<Result<T, Error>>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let definition = &self.0.definition;
        match definition.is_exclusive {
            true => send(&self.0.writer, definition, WRITER, work),
            false => send(&self.0.reader, definition, READER, work),
        }
    }

    fn wait_now<T>(&self, answer: Option<oneshot::Receiver<Result<T, Error>>>) -> Result<T, Error> {
        let answer = answer.and_then(|answer| answer.blocking_recv().ok());
        answer.unwrap_or_else(|| Err(self.closed()))
    }

    fn closed(&self) -> Error {
        Error::Failed {
            store: self.path().display().to_string(),
            reason: "its thread could not be started or has ended".to_owned(),
        }
    }
}

async fn wait<T>(
    answer: Option<oneshot::Receiver<Result<T, Error>>>,
    closed: Error,
) -> Result<T, Error> {
    match answer {
        Some(answer) => answer.await.unwrap_or(Err(closed)),
        None => Err(closed),
    }
}

/// Hands an operation to a thread, which is started if there is none.
fn send<T, F>(
    to: &Mutex<Option<Sender<Job>>>,
    definition: &Definition,
    name: &str,
    work: F,
) -> Option<oneshot::Receiver<Result<T, Error>>>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    let (tell, answer) = oneshot::channel();
    let job: Job = Box::new(|definition, connected| {
        // A caller that stopped waiting needs no answer.
        drop(tell.send(perform(definition, connected, work)));
    });
    let mut sender = to.lock().unwrap_or_else(PoisonError::into_inner);
    let job = match &*sender {
        Some(known) => match known.send(job) {
            Ok(()) => return Some(answer),
            Err(ended) => ended.0,
        },
        None => job,
    };
    let (jobs, queue) = channel::<Job>();
    let definition = definition.clone();
    // Ends when the last handle is dropped and the queue is empty.
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let mut connected = None;
            queue
                .into_iter()
                .for_each(|job| job(&definition, &mut connected));
        })
        .ok()?;
    jobs.send(job).ok()?;
    *sender = Some(jobs);
    Some(answer)
}

/// Runs an operation. After an error the state of the connection is unknown: it is closed,
/// and a damaged index is deleted.
fn perform<T>(
    definition: &Definition,
    connected: &mut Connected,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, Error> {
    let connection = match connected.take() {
        Some(connection) => connection,
        None => open(definition)?,
    };
    match work(&connection) {
        Ok(done) => {
            *connected = Some(connection);
            Ok(done)
        }
        Err(error) => {
            drop(connection);
            let error = connection::failed(&definition.path, &error);
            connection::discard_if_damaged(definition, &error);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
