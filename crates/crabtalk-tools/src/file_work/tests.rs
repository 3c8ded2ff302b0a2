use super::*;
use std::future::Future;
use std::sync::Condvar;
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
        for n in 0..MAX_HUNG + MAX_AT_ONCE - KEPT_TURNS {
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

/// What keeps everybody who goes to `/dead`, until it is let go.
static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Threads that have come there.
static CAME: AtomicU64 = AtomicU64::new(0);

/// Lets them go, whatever becomes of the test.
struct Opens;

impl Drop for Opens {
    fn drop(&mut self) {
        *GATE.0.lock().unwrap() = true;
        GATE.1.notify_all();
    }
}

fn go_to(path: &Path) {
    if path.starts_with("/dead") {
        CAME.fetch_add(1, Ordering::Relaxed);
        let is_shut = |open: &mut bool| !*open;
        drop(GATE.1.wait_while(GATE.0.lock().unwrap(), is_shut).unwrap());
    }
}

fn go(path: &Path, before: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    before(path)?;
    go_to(path);
    Ok(())
}

/// Each step of the clock gives threads a moment, and what waits for them, too.
async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        advance(Duration::from_millis(100)).await;
        tokio::task::spawn_blocking(std::thread::yield_now)
            .await
            .unwrap();
    }
}

#[test]
fn a_dead_mount_takes_a_few_threads_and_then_none_and_refuses_by_name() {
    in_the_daemon(async {
        let shut = Opens;
        let files = FileWork(Arc::new(Inner {
            places: Places::by(go),
            ..Inner::default()
        }));
        let in_there = |n: usize| {
            let (files, path) = (files.clone(), PathBuf::from(format!("/dead/{n}")));
            async move {
                let at = path.clone();
                files.look_at(&path, move || go_to(&at)).await
            }
        };
        let mut calls = JoinSet::new();
        for n in 0..2 * FileWork::MAX_THREADS {
            calls.spawn(in_there(n));
        }
        // The clock stands still until all are there whose turn it was.
        while CAME.load(Ordering::Relaxed) < MAX_AT_ONCE as u64 {
            tokio::task::yield_now().await;
        }
        until(|| !files.0.places.silent().is_empty()).await;
        // Nobody else waits for what they find out.
        let others = [files.clone(), files.clone()];
        let [one, two] = others;
        let mut others = JoinSet::new();
        others.spawn(async move { one.look("another", || ()).await });
        others.spawn(async move { two.look_at(Path::new("/alive"), || ()).await });
        until(|| match others.try_join_next() {
            Some(done) => done.unwrap() == Ok(()) && others.is_empty(),
            None => false,
        })
        .await;
        assert!(!calls.is_empty());
        let mut told = 0;
        until(|| {
            while let Some(ended) = calls.try_join_next() {
                let why = ended.unwrap().unwrap_err();
                assert!(why.contains("/dead"), "{why}");
                told += 1;
            }
            told == 2 * FileWork::MAX_THREADS
        })
        .await;
        let hung = files.0.begun().len();
        assert_eq!(hung, MAX_AT_ONCE, "the threads whose turn it was are lost");
        let came = CAME.load(Ordering::Relaxed);
        assert_eq!(came, MAX_AT_ONCE as u64 + 1, "and that of one survey");
        let why = in_there(0).await.unwrap_err();
        assert!(why.contains("/dead/0 was not touched"), "{why}");
        assert_eq!(files.0.begun().len(), hung);
        // It is back.
        drop(shut);
        until(|| files.0.begun().is_empty() && files.0.places.silent().is_empty()).await;
        in_there(0).await.unwrap();
    });
}

#[test]
fn when_nearly_all_threads_hang_those_go_on_who_were_answered_before() {
    in_the_daemon(async {
        let mut hanging = Hanging::new();
        hanging.quick("known").await.unwrap();
        for n in 0..MAX_HUNG + MAX_AT_ONCE - KEPT_TURNS {
            hanging.hang(&n.to_string()).await;
            advance(HANGS_AFTER).await;
        }
        hanging.files.look_after();
        let strangers = (0..MAX_AT_ONCE).map(|n| {
            let files = hanging.files.clone();
            async move {
                files
                    .run(&format!("stranger {n}"), |_| Ok::<_, String>(()))
                    .await
            }
        });
        let strangers: JoinSet<_> = strangers.collect();
        tokio::task::yield_now().await;
        // The clock goes on by itself for nobody while threads hang.
        let files = hanging.files.clone();
        let mut known = JoinSet::new();
        known.spawn(async move { files.run("known", |_| Ok::<_, String>(())).await });
        until(|| match known.try_join_next() {
            Some(told) => told.unwrap() == Ok(()) || panic!("it waits as strangers do"),
            None => false,
        })
        .await;
        advance(PATIENCE).await;
        for told in strangers.join_all().await {
            assert!(told.unwrap_err().contains("does not answer"));
        }
    });
}
