//! Runs what touches files where it blocks nobody.
//!
//! Invariants: however many calls hang on a disk or a mount that does not
//! answer, threads are left for others and for the daemon's own files; whoever
//! waits is told after a while, although the thread hangs on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Pieces of work at once, those that hang apart: a disk is not quicker with
/// more, and each takes a thread.
const MAX_AT_ONCE: usize = 6;

/// Pieces of work that hang, and whose turns others got. Each is a thread that
/// does nothing.
const MAX_HUNG: usize = 16;

/// How long work takes that hangs: others get its turn.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// Pieces of work of one conversation, or in one folder, that may hang: one that
/// is on a dead mount must not take the turns of all.
const MAX_HUNG_OF_ONE: usize = 2;

/// When a piece of work counts for that. A slow disk takes seconds, too.
const DEAD_AFTER: Duration = Duration::from_secs(20);

/// How long a piece of work waits for its turn. Even a slow disk is through with
/// others by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long somebody waits for work that has begun: longer than reading all
/// that a tool may read takes on a slow disk.
const DEADLINE: Duration = Duration::from_secs(120);

/// How long somebody waits for a look: a slow disk takes a second or two.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks for turns to take from work that hangs.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Turns at the files. Cheap to clone; the clones share them.
#[derive(Debug, Clone)]
pub struct FileWork(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    turns: Arc<Semaphore>,
    begun: Mutex<Vec<Begun>>,
    next: AtomicU64,
}

/// Work that has not ended.
#[derive(Debug)]
struct Begun {
    id: u64,
    of: String,
    at: Instant,
    /// None once it hangs and others got it.
    turn: Option<OwnedSemaphorePermit>,
}

/// Takes its work off the list when the thread is through with it, or never got
/// to it.
struct Entry(Arc<Inner>, u64);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.begun().retain(|begun| begun.id != self.1);
    }
}

impl Default for FileWork {
    fn default() -> Self {
        Self(Arc::new(Inner {
            turns: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            begun: Mutex::default(),
            next: AtomicU64::new(0),
        }))
    }
}

impl Inner {
    fn begun(&self) -> MutexGuard<'_, Vec<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileWork {
    /// Threads that this work may take, of the runtime's blocking pool.
    pub const MAX_THREADS: usize = MAX_AT_ONCE + MAX_HUNG;

    /// Runs work of somebody: a conversation, a folder. Dropping the future sets
    /// the flag that the work is given; a replacement that has begun is finished
    /// whole.
    ///
    /// # Errors
    /// Those of the work; and a text where the disk does not answer.
    pub async fn run<T, E>(
        &self,
        of: &str,
        work: impl FnOnce(&AtomicBool) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<String> + Send + 'static,
    {
        self.run_within(DEADLINE, of, work).await
    }

    async fn run_within<T, E>(
        &self,
        deadline: Duration,
        of: &str,
        work: impl FnOnce(&AtomicBool) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<String> + Send + 'static,
    {
        struct SetOnDrop(Arc<AtomicBool>);
        impl Drop for SetOnDrop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        if self.hung_of(of) >= MAX_HUNG_OF_ONE {
            return Err(E::from(format!(
                "earlier work on files ({of}) has been waiting for more than {} s; a disk or a \
                 mount does not answer",
                DEAD_AFTER.as_secs()
            )));
        }
        let turn = self.turn().await.map_err(E::from)?;
        let entry = self.begin(of, turn);
        let dropped = SetOnDrop(Arc::default());
        let flag = Arc::clone(&dropped.0);
        let done = tokio::task::spawn_blocking(move || {
            // Kept for as long as the thread is, not the call.
            let _entry = entry;
            work(&flag)
        });
        match tokio::time::timeout(deadline, done).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(E::from("the daemon is shutting down".to_owned())),
            Err(_) => Err(E::from(format!(
                "files did not answer for {} s; a disk or a mount does not answer",
                deadline.as_secs()
            ))),
        }
    }

    /// Looks at files for somebody: quick where the disk answers.
    ///
    /// # Errors
    /// A text where it does not answer, or where the look panicked.
    pub async fn look<T: Send + 'static>(
        &self,
        of: &str,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        self.run_within(LOOK_WITHIN, of, move |_| Ok(look())).await
    }

    /// Waits for a turn.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, String> {
        let acquire = Arc::clone(&self.0.turns).acquire_owned();
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(acquire, patience);
        loop {
            self.pass_on();
            tokio::select! {
                biased;
                turn = &mut acquire => return Ok(turn.expect("the semaphore is never closed")),
                () = &mut patience => {
                    return Err(format!(
                        "other calls have been waiting for files for more than {} s; a disk or a \
                         mount does not answer",
                        PATIENCE.as_secs()
                    ));
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn begin(&self, of: &str, turn: OwnedSemaphorePermit) -> Entry {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.begun().push(Begun {
            id,
            of: of.to_owned(),
            at: Instant::now(),
            turn: Some(turn),
        });
        Entry(Arc::clone(&self.0), id)
    }

    /// Gives turns of work that hangs to others.
    fn pass_on(&self) {
        if self.0.turns.available_permits() > 0 {
            return;
        }
        let mut begun = self.0.begun();
        let hung = begun.iter().filter(|begun| begun.turn.is_none()).count();
        let hanging = begun
            .iter_mut()
            .filter(|begun| begun.turn.is_some() && begun.at.elapsed() >= HANGS_AFTER);
        for begun in hanging.take(MAX_HUNG - hung) {
            begun.turn = None;
        }
    }

    fn hung_of(&self, of: &str) -> usize {
        let dead = |begun: &&Begun| begun.of == of && begun.at.elapsed() >= DEAD_AFTER;
        self.0.begun().iter().filter(dead).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::sync::mpsc::{Sender, channel};
    use tokio::task::JoinSet;
    use tokio::time::advance;

    /// Work that hangs, and what lets it go.
    struct Hanging {
        files: FileWork,
        calls: JoinSet<Result<bool, String>>,
        releases: Vec<Sender<()>>,
    }

    impl Hanging {
        fn new() -> Self {
            Self {
                files: FileWork::default(),
                calls: JoinSet::new(),
                releases: Vec::new(),
            }
        }

        /// Begins a piece of work of somebody that hangs until the test ends.
        async fn hang(&mut self, of: &str) {
            let (release, released) = channel::<()>();
            self.releases.push(release);
            let (files, of) = (self.files.clone(), of.to_owned());
            let before = self.files.0.begun().len();
            self.calls.spawn(async move {
                let work = move |_: &AtomicBool| Ok::<_, String>(released.recv().is_err());
                files.run(&of, work).await
            });
            while self.files.0.begun().len() == before {
                tokio::task::yield_now().await;
            }
        }

        async fn quick(&self, of: &str) -> Result<(), String> {
            self.files.run(of, |_| Ok(())).await
        }
    }

    /// With as many threads as the daemon has for such work, and time that
    /// stands still.
    fn in_the_daemon(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(FileWork::MAX_THREADS + 2)
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(test);
    }

    #[test]
    fn work_that_hangs_leaves_turns_to_others() {
        in_the_daemon(async {
            let mut hanging = Hanging::new();
            for round in 0..MAX_HUNG {
                hanging.hang(&format!("conversation {round}")).await;
                advance(HANGS_AFTER).await;
            }
            for other in 0..3 {
                let done = hanging.quick(&format!("other {other}")).await;
                assert_eq!(done, Ok(()));
            }
        });
    }

    #[test]
    fn nobody_takes_the_turns_of_all() {
        in_the_daemon(async {
            let mut hanging = Hanging::new();
            for _ in 0..MAX_HUNG_OF_ONE {
                hanging.hang("one").await;
            }
            hanging.quick("one").await.expect("it may just be slow");
            advance(DEAD_AFTER).await;
            let why = hanging.quick("one").await.expect_err("it is dead");
            assert!(why.contains("does not answer"), "{why}");
            assert_eq!(hanging.quick("another").await, Ok(()));
            // The mount is back.
            hanging.releases.clear();
            while hanging.calls.join_next().await.is_some() {}
            assert_eq!(hanging.quick("one").await, Ok(()));
        });
    }

    #[test]
    fn whoever_waits_is_told_in_the_end_and_the_thread_is_counted_on() {
        in_the_daemon(async {
            let mut hanging = Hanging::new();
            hanging.hang("one").await;
            advance(DEADLINE).await;
            let told = hanging.calls.join_next().await.expect("a call");
            let why = told.expect("no panic").expect_err("it hangs");
            assert!(why.contains("does not answer"), "{why}");
            assert_eq!(hanging.files.0.begun().len(), 1);
            // A call that is given up does not give up its thread either.
            hanging.hang("two").await;
            hanging.calls.abort_all();
            while hanging.calls.join_next().await.is_some() {}
            assert_eq!(hanging.files.0.begun().len(), 2);
        });
    }

    #[test]
    fn where_everything_hangs_the_next_is_told_why_and_the_daemons_own_work_goes_on() {
        in_the_daemon(async {
            let mut hanging = Hanging::new();
            for n in 0..FileWork::MAX_THREADS {
                hanging.hang(&n.to_string()).await;
                advance(HANGS_AFTER).await;
            }
            let next = hanging.quick("next");
            tokio::pin!(next);
            let waits = tokio::time::timeout(Duration::ZERO, &mut next).await;
            assert!(waits.is_err(), "it waits for its turn");
            advance(PATIENCE).await;
            let why = next.await.expect_err("no turn");
            assert!(why.contains("does not answer"), "{why}");
            tokio::task::spawn_blocking(|| ()).await.expect("a thread");
        });
    }
}
