//! A SQLite database with one writer thread and one reader thread.
//!
//! Invariants: no caller's thread waits for the disk; a write is acknowledged after its
//! commit, and queued writes share one commit; after a failed commit the connection is
//! closed, so that it acknowledges nothing more. Threads and connections start with the
//! first operation.

mod connection;

use connection::{Connected, open};
use crabtalk_domain::records::Error;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Maximum number of writes in one commit.
const MAX_BATCH: usize = 256;

/// The durability of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Records: a commit survives a power loss, and damage is reported.
    Recorded,
    /// An index: a power loss may undo the last commits, and a damaged or foreign file is
    /// deleted and rebuilt.
    Derived,
}

/// The path and schema of a database.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    /// Statements that migrate each format to the next; the first one creates format 1.
    pub(crate) migrations: &'static [&'static str],
    /// Whether one connection has exclusive access, as on a network file system.
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

/// A thread's name and its loop.
type Thread = (&'static str, fn(&Definition, &Receiver<Box<dyn Job>>));

const WRITER: Thread = ("db-write", write_all);
const READER: Thread = ("db-read", read_all);

/// A handle to a database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Database(Arc<Inner>);

struct Inner {
    definition: Definition,
    writer: Mutex<Option<Sender<Box<dyn Job>>>>,
    reader: Mutex<Option<Sender<Box<dyn Job>>>>,
}

/// An operation that a thread executes.
trait Job: Send {
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, outcome: Result<(), Error>);
}

struct Typed<T, F> {
    work: Option<F>,
    result: Option<T>,
    tell: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Job for Typed<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(work) = self.work.take() {
            self.result = Some(work(connection)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), Error>) {
        let Self { result, tell, .. } = *self;
        let outcome = outcome.and_then(|()| {
            result.ok_or_else(|| Error::Failed {
                store: String::new(),
                reason: "the operation did not run".to_owned(),
            })
        });
        // The caller may have dropped its future.
        drop(tell.send(outcome));
    }
}

impl Database {
    /// Creates a handle; the first operation opens the database.
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

    /// Runs `work` in a transaction and returns its result after the commit. Several
    /// operations may share a commit; an error of `work` undoes only its own changes.
    pub(crate) fn write<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Error>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let definition = &self.0.definition;
        let answer = send(&self.0.writer, definition, WRITER, work);
        wait(answer, self.closed())
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
        let answer = self.send_read(work);
        wait(answer, self.closed())
    }

    /// Like [`Self::write`], for a thread that may block.
    pub(crate) fn write_now<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let definition = &self.0.definition;
        let answer = send(&self.0.writer, definition, WRITER, work);
        self.wait_now(answer)
    }

    /// Like [`Self::read`], for a thread that may block.
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
        let definition = &self.0.definition;
        // A later check finds changes that could not be written.
        drop(send(&self.0.writer, definition, WRITER, work));
    }

    /// Runs `work` without a transaction in the caller's thread, on a separate connection:
    /// for processes that only copy the database.
    pub(crate) fn alone<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let definition = &self.0.definition;
        work(&open(definition)?).map_err(|e| connection::failed(&definition.path, &e))
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
            reason: "the database thread could not start or has ended".to_owned(),
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

/// Sends an operation to a thread, which is started if necessary.
fn send<T, F>(
    to: &Mutex<Option<Sender<Box<dyn Job>>>>,
    definition: &Definition,
    (name, serve): Thread,
    work: F,
) -> Option<oneshot::Receiver<Result<T, Error>>>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    let (tell, answer) = oneshot::channel();
    let job: Box<dyn Job> = Box::new(Typed {
        work: Some(work),
        result: None,
        tell,
    });
    let mut sender = to.lock().unwrap_or_else(PoisonError::into_inner);
    let job = match &*sender {
        Some(known) => match known.send(job) {
            Ok(()) => return Some(answer),
            Err(ended) => ended.0,
        },
        None => job,
    };
    let (jobs, queue) = channel();
    let definition = definition.clone();
    // The thread ends when the last handle is dropped and the queue is empty.
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || serve(&definition, &queue))
        .ok()?;
    jobs.send(job).ok()?;
    *sender = Some(jobs);
    Some(answer)
}

fn read_all(definition: &Definition, queue: &Receiver<Box<dyn Job>>) {
    let mut connected = None;
    while let Ok(mut job) = queue.recv() {
        let done = match ready(definition, &mut connected) {
            Ok(connection) => job
                .run(connection)
                .map_err(|e| connection::failed(&definition.path, &e)),
            Err(error) => Err(error),
        };
        connection::drop_if_broken(definition, &mut connected, &done);
        job.answer(done);
    }
}

fn write_all(definition: &Definition, queue: &Receiver<Box<dyn Job>>) {
    let mut connected = None;
    while let Ok(first) = queue.recv() {
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        let outcomes = match ready(definition, &mut connected) {
            Ok(connection) => commit(definition, connection, &mut batch),
            Err(error) => Err(error),
        };
        match outcomes {
            Ok(outcomes) => {
                for (job, outcome) in batch.into_iter().zip(outcomes) {
                    job.answer(outcome);
                }
            }
            Err(error) => {
                // The state of the connection is unknown: reconnect.
                connected = None;
                connection::drop_if_broken(definition, &mut connected, &Err(error.clone()));
                for job in batch {
                    job.answer(Err(error.clone()));
                }
            }
        }
    }
}

/// Runs a batch in one transaction. The outer error fails the whole batch.
fn commit(
    definition: &Definition,
    connection: &Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<Vec<Result<(), Error>>, Error> {
    let failed = |e: rusqlite::Error| connection::failed(&definition.path, &e);
    let mut outcomes = Vec::with_capacity(batch.len());
    connection
        .execute_batch("BEGIN IMMEDIATE")
        .map_err(failed)?;
    for job in batch {
        connection.execute_batch("SAVEPOINT job").map_err(failed)?;
        let outcome = job.run(connection).map_err(failed);
        if outcome.is_err() {
            let undo = connection.execute_batch("ROLLBACK TO job");
            // A full disk ends the transaction of all of them.
            undo.map_err(|_| outcome.clone().expect_err("it failed"))?;
        }
        connection.execute_batch("RELEASE job").map_err(failed)?;
        outcomes.push(outcome);
    }
    connection.execute_batch("COMMIT").map_err(failed)?;
    Ok(outcomes)
}

fn ready<'a>(
    definition: &Definition,
    connected: &'a mut Connected,
) -> Result<&'a Connection, Error> {
    if connected.is_none() {
        *connected = Some(open(definition)?);
    }
    Ok(connected.as_ref().expect("opened above"))
}

#[cfg(test)]
mod tests;
