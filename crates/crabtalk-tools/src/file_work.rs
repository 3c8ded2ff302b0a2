//! Runs what touches files where it blocks nobody.
//!
//! Invariants: however many calls hang on disks or mounts that do not answer,
//! threads are left for others and for the daemon's own files; whoever waits is
//! told after a while which path it was, although the thread hangs on; once a
//! mount is known to be dead, no thread is sent there.

mod places;

use crabtalk_files::{Observer, watched};
use places::{MAX_SURVEYS, Places};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Pieces of work at once, those that hang apart: a disk is not quicker with
/// more, and each takes a thread.
const MAX_AT_ONCE: usize = 6;

/// Pieces of work that hang, and whose turns others got. Each is a thread that
/// does nothing. A mount takes a few before it is known to be dead, and none then.
const MAX_HUNG: usize = 48;

/// Turns left to those who were answered before, when so many hang.
const KEPT_TURNS: usize = 3;

/// Who was answered, as far as that is remembered.
const MAX_ANSWERED: usize = 1024;

/// How long work takes that may hang: somebody looks where it does.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// How long work takes that hangs: others get its turn. By then it is known where
/// they had better not go.
const HANGS_AFTER: Duration = Duration::from_millis(1500);

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

/// Between two looks for work that hangs.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Turns at the files. Cheap to clone; the clones share them.
#[derive(Debug, Clone, Default)]
pub struct FileWork(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    turns: Arc<Semaphore>,
    begun: Mutex<Vec<Begun>>,
    next: AtomicU64,
    places: Places,
    answered: Mutex<HashSet<String>>,
}

/// Work that has not ended.
#[derive(Debug)]
struct Begun {
    id: u64,
    of: String,
    at: Instant,
    touching: Arc<Touching>,
    is_surveyed: bool,
    /// None once it hangs and others got it.
    turn: Option<OwnedSemaphorePermit>,
}

/// What a piece of work touches at the moment.
#[derive(Debug)]
struct Touching(Mutex<PathBuf>, Places);

impl Touching {
    fn path(&self) -> PathBuf {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Observer for Touching {
    fn touches(&self, path: &Path) -> io::Result<()> {
        path.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.1.check(path)
    }
}

/// Whose a piece of work is, and where.
#[derive(Debug, Clone, Copy)]
struct Order<'a> {
    of: &'a str,
    at: Option<&'a Path>,
}

/// Takes its work off the list when the thread is through with it, or never got
/// to it.
struct Entry(Arc<Inner>, u64);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.begun().retain(|begun| begun.id != self.1);
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            begun: Mutex::default(),
            next: AtomicU64::new(0),
            places: Places::default(),
            answered: Mutex::default(),
        }
    }
}

impl Inner {
    fn begun(&self) -> MutexGuard<'_, Vec<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) -> MutexGuard<'_, HashSet<String>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileWork {
    /// Threads that this work may take, of the runtime's blocking pool.
    pub const MAX_THREADS: usize = MAX_AT_ONCE + MAX_HUNG + MAX_SURVEYS;

    /// Runs work of somebody: a conversation, for instance. Dropping the future sets
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
        self.run_within(DEADLINE, Order { of, at: None }, work)
            .await
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
        let order = Order { of, at: None };
        self.run_within(LOOK_WITHIN, order, move |_| Ok(look()))
            .await
    }

    /// Looks at several things, one of which lies at a path that may be anywhere. What
    /// does not answer is not touched; the rest of the look is made.
    ///
    /// # Errors
    /// A text where it does not answer, or where the look panicked.
    pub async fn look_around<T: Send + 'static>(
        &self,
        path: &Path,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let order = Order {
            of: &path.to_string_lossy(),
            at: Some(path),
        };
        self.run_within(LOOK_WITHIN, order, move |_| Ok(look()))
            .await
    }

    /// Looks at a place that may lie anywhere: quick where that answers.
    ///
    /// # Errors
    /// A text where it does not answer, or where the look panicked.
    pub async fn look_at<T: Send + 'static>(
        &self,
        path: &Path,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let (of, at) = (path.to_string_lossy(), path.to_owned());
        let order = Order {
            of: &of,
            at: Some(path),
        };
        let look = move |_: &AtomicBool| {
            crabtalk_files::touch(&at).map_err(|error| error.to_string())?;
            Ok(look())
        };
        self.run_within(LOOK_WITHIN, order, look).await
    }

    async fn run_within<T, E>(
        &self,
        deadline: Duration,
        order: Order<'_>,
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
        if let Some(why) = self.hung_of(order.of) {
            return Err(E::from(why));
        }
        let turn = self.turn(order).await.map_err(E::from)?;
        let (entry, touching) = self.begin(order, turn);
        let dropped = SetOnDrop(Arc::default());
        let flag = Arc::clone(&dropped.0);
        let watch = Arc::clone(&touching);
        let done = tokio::task::spawn_blocking(move || {
            // Kept for as long as the thread is, not the call.
            let _entry = entry;
            watched(watch, || work(&flag))
        });
        match self.watching(deadline, done).await {
            Some(Ok(done)) => {
                self.answer(order.of);
                done
            }
            Some(Err(_)) => Err(E::from("the daemon is shutting down".to_owned())),
            None => Err(E::from(format!(
                "{} did not answer for {} s; a disk or a mount does not answer",
                named(&touching.path()),
                deadline.as_secs()
            ))),
        }
    }

    /// Waits for work that has begun, and looks after what hangs meanwhile.
    async fn watching<T>(
        &self,
        deadline: Duration,
        mut done: impl Future<Output = T> + Unpin,
    ) -> Option<T> {
        let end = Instant::now() + deadline;
        // Nearly all is through by then.
        if let Ok(done) = tokio::time::timeout(LOOK_AFTER, &mut done).await {
            return Some(done);
        }
        let wait = tokio::time::sleep_until(end);
        tokio::pin!(wait);
        loop {
            self.look_after();
            tokio::select! {
                biased;
                done = &mut done => return Some(done),
                () = &mut wait => return None,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Waits for a turn; outside of the queue while nobody knows whether the place
    /// answers, so that it stands in nobody's way.
    async fn turn(&self, order: Order<'_>) -> Result<OwnedSemaphorePermit, String> {
        let queue = || Box::pin(Arc::clone(&self.0.turns).acquire_owned());
        let mut acquire: Option<Pin<Box<_>>> = None;
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        loop {
            self.look_after();
            let waits_outside = self.must_wait(order);
            if waits_outside {
                acquire = None;
            }
            let ready = async {
                match waits_outside {
                    true => std::future::pending().await,
                    false => acquire.get_or_insert_with(queue).await,
                }
            };
            tokio::select! {
                biased;
                turn = ready => {
                    let turn = turn.expect("the semaphore is never closed");
                    // Who hangs gives its turn away when the place comes to be in doubt:
                    // to others, not to the next who would go there.
                    if !self.is_in_doubt(order) {
                        return Ok(turn);
                    }
                    acquire = None;
                }
                () = &mut patience => {
                    let whose = match order.at {
                        Some(path) => named(path),
                        None => order.of.to_owned(),
                    };
                    return Err(format!(
                        "other calls have been waiting for files for more than {} s ({whose}); a \
                         disk or a mount does not answer",
                        PATIENCE.as_secs()
                    ));
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Whether work has to stay out of the queue: what it touches is in doubt, or so
    /// much hangs that the last turns are for those who were answered before.
    fn must_wait(&self, order: Order<'_>) -> bool {
        if self.is_in_doubt(order) {
            return true;
        }
        let hung = self.0.begun().iter().filter(|it| it.turn.is_none()).count();
        hung >= MAX_HUNG
            && self.0.turns.available_permits() <= KEPT_TURNS
            && !self.0.answered().contains(order.of)
    }

    fn is_in_doubt(&self, order: Order<'_>) -> bool {
        order.at.is_some_and(|at| self.0.places.in_doubt(at))
    }

    fn begin(&self, order: Order<'_>, turn: OwnedSemaphorePermit) -> (Entry, Arc<Touching>) {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let first = order.at.unwrap_or(Path::new("")).to_owned();
        let touching = Arc::new(Touching(Mutex::new(first), self.0.places.clone()));
        self.0.begun().push(Begun {
            id,
            of: order.of.to_owned(),
            at: Instant::now(),
            touching: Arc::clone(&touching),
            is_surveyed: false,
            turn: Some(turn),
        });
        (Entry(Arc::clone(&self.0), id), touching)
    }

    fn answer(&self, of: &str) {
        let mut answered = self.0.answered();
        if answered.contains(of) {
            return;
        }
        if answered.len() == MAX_ANSWERED {
            answered.clear();
        }
        answered.insert(of.to_owned());
    }

    /// Sends somebody where work hangs, and gives its turn to others.
    fn look_after(&self) {
        let mut begun = self.0.begun();
        let late = |begun: &&mut Begun| begun.at.elapsed() >= LOOK_AFTER;
        for begun in begun.iter_mut().filter(late) {
            if !begun.is_surveyed {
                let path = begun.touching.path();
                begun.is_surveyed = path.is_absolute() && self.0.places.survey(&path);
            }
        }
        if self.0.places.is_looking() {
            return;
        }
        let mut hung = begun.iter().filter(|begun| begun.turn.is_none()).count();
        for begun in begun.iter_mut() {
            let hangs = begun.at.elapsed() >= HANGS_AFTER;
            if hangs && begun.turn.is_some() && hung < MAX_HUNG {
                begun.turn = None;
                hung += 1;
            }
        }
    }

    /// Why somebody of whom so much hangs gets no further thread.
    fn hung_of(&self, of: &str) -> Option<String> {
        let begun = self.0.begun();
        let dead = |begun: &&Begun| begun.of == of && begun.at.elapsed() >= DEAD_AFTER;
        let mut dead = begun.iter().filter(dead);
        let last = dead.nth(MAX_HUNG_OF_ONE - 1)?;
        let path = last.touching.path();
        Some(format!(
            "earlier work ({of}) has been waiting for {} for more than {} s; a disk or a mount does not answer",
            named(&path),
            DEAD_AFTER.as_secs()
        ))
    }
}

/// A path as errors name it.
fn named(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => "files".to_owned(),
        false => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
