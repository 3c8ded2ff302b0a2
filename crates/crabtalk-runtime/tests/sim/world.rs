//! Ten clients, four conversations' worth of trouble, and a daemon that comes
//! and goes.

use crate::ports::{Hands, Life, Minds, Purse, Senses, Store};
use crate::rng::Rng;
use crate::told::{Heard, Lost, Told};
use crabtalk_domain::storage::{Record, Storage};
use crabtalk_domain::{AgentConfig, AgentName, AskKind, BoxFuture, ConversationKey, RunOutcome};
use crabtalk_gate::Approval;
use crabtalk_runtime::{ApprovalBook, Catalog, Parts, RunRequest, Runtime, Subscription};
use crabtalk_testkit::{ManualClock, MemoryStore};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Clients of a world.
const CLIENTS: u64 = 10;

/// Time limit of a shutdown: the daemon's own deadline.
const SHUTDOWN: Duration = Duration::from_millis(4500);

/// Approvals in memory.
#[derive(Default)]
struct Book(Mutex<Arc<Vec<Approval>>>);

impl ApprovalBook for Book {
    fn list(&self) -> Arc<Vec<Approval>> {
        Arc::clone(&self.0.lock().expect("not poisoned"))
    }

    fn add(&self, approval: Approval) -> BoxFuture<'_, Result<(), String>> {
        Arc::make_mut(&mut self.0.lock().expect("not poisoned")).push(approval);
        Box::pin(std::future::ready(Ok(())))
    }
}

pub(crate) struct World {
    rng: Rng,
    seed: u64,
    lives: u64,
    steps: Arc<AtomicU64>,
    told: Arc<Told>,
    store: MemoryStore,
    clock: Arc<ManualClock>,
    delegates: Arc<AtomicU64>,
    life: Arc<Life>,
    runtime: Runtime,
    readers: JoinSet<()>,
    errands: JoinSet<()>,
    words: u64,
    /// The request of an id.
    ids: BTreeMap<ConversationKey, Vec<(String, String)>>,
}

fn agent(name: &str) -> AgentConfig {
    let name = AgentName::new(name).expect("a name");
    let mut agent = AgentConfig::new(name.clone(), format!("You are {name}."));
    agent.max_iterations = 6;
    agent.compact_threshold = Some(600);
    agent.scope.members = vec!["ada".into()];
    agent.scope.tools = vec!["*".into()];
    agent
}

fn catalog(rng: &mut Rng) -> Catalog {
    let mut catalog = Catalog::of(agent("crab"));
    let ada = agent("ada");
    catalog.agents.insert(ada.name.clone(), Arc::new(ada));
    catalog.resume = rng.permille(500);
    catalog.limits.queued_runs = 4;
    catalog
}

fn start(
    store: &MemoryStore,
    life: &Arc<Life>,
    clock: &Arc<ManualClock>,
    delegates: &Arc<AtomicU64>,
    catalog: Catalog,
) -> Runtime {
    let parts = Parts {
        model: Arc::new(Minds(Arc::clone(life))),
        storage: Arc::new(Store(store.clone(), Arc::clone(life))),
        tools: vec![Arc::new(Hands(Arc::clone(life)))],
        hook: Arc::new(Senses(Arc::clone(life))),
        ledger: Arc::new(Purse(Arc::clone(life))),
        ends: vec![Arc::new(Purse(Arc::clone(life)))],
        clock: Arc::clone(clock) as _,
        approvals: Arc::new(Book::default()),
        disk: Arc::new(|_: &std::path::Path| None),
        delegates: Arc::clone(delegates) as _,
    };
    Runtime::new(parts, catalog)
}

impl World {
    pub(crate) fn new(seed: u64, steps: Arc<AtomicU64>) -> Self {
        let mut rng = Rng::new(seed);
        let (told, store) = (Arc::<Told>::default(), MemoryStore::default());
        let clock = Arc::<ManualClock>::default();
        let delegates = Arc::new(AtomicU64::new(1));
        let life = Life::new(rng.next(), Arc::clone(&steps), Arc::clone(&told));
        let runtime = start(&store, &life, &clock, &delegates, catalog(&mut rng));
        Self {
            rng,
            seed,
            lives: 1,
            steps,
            told,
            store,
            clock,
            delegates,
            life,
            runtime,
            readers: JoinSet::new(),
            errands: JoinSet::new(),
            words: 0,
            ids: BTreeMap::new(),
        }
    }

    /// So many operations, then rest; panics where something told is not so.
    pub(crate) async fn play(mut self, operations: u64) {
        for _ in 0..operations {
            self.steps.fetch_add(1, Ordering::Relaxed);
            self.operate().await;
            self.assert_sound();
            match self.rng.below(10) {
                0..4 => tokio::task::yield_now().await,
                4..9 => sleep(Duration::from_millis(self.rng.below(50))).await,
                _ => sleep(Duration::from_secs(self.rng.below(20))).await,
            }
        }
        self.rest().await;
        self.assert_sound();
    }

    fn assert_sound(&self) {
        let problems = self.told.problems();
        if !problems.is_empty() {
            self.show_logs(&problems);
        }
        assert!(
            problems.is_empty(),
            "seed {}, life {}: {problems:#?}",
            self.seed,
            self.lives
        );
    }

    /// The logs that something is wrong with.
    fn show_logs(&self, problems: &[String]) {
        let keys = self.told.keys();
        let is_named = |key: &&ConversationKey| {
            let name = format!("{key}: ");
            problems.iter().any(|problem| problem.starts_with(&name))
        };
        for key in keys.iter().filter(is_named) {
            eprintln!("{key}:");
            for line in self.store.lines(key) {
                eprintln!("    {}", line.chars().take(80).collect::<String>());
            }
        }
    }

    fn key(&mut self) -> ConversationKey {
        let client = self.rng.below(CLIENTS);
        // Some clients share a conversation.
        let sender = [
            "user", "user", "user", "user", "mate", "mate", "guest", "tg:1", "tg-1", "x",
        ];
        let agent = if client % 5 == 4 { "ada" } else { "crab" };
        ConversationKey::new(agent, sender[client as usize]).expect("valid")
    }

    fn word(&mut self, kind: &str) -> String {
        self.words += 1;
        let padding = "y".repeat(self.rng.below(60) as usize);
        format!("{kind} {} {padding}", self.words)
    }

    async fn operate(&mut self) {
        let key = self.key();
        match self.rng.below(200) {
            0..90 => self.submit(key),
            90..100 => self.retry(key),
            100..110 => drop(self.runtime.kill(&key)),
            110..122 => self.steer(key),
            122..142 => self.answer_somebody().await,
            142..148 => self.compact(key),
            148..152 => self.set(key),
            152..155 => self.remove(key).await,
            155..165 => self.attach(&key),
            165..169 => self.ask_for_the_end(key),
            169..171 => {
                let hours = self.rng.below(48) as i64 - 24;
                self.clock.advance(SignedDuration::from_hours(hours));
            }
            171 => self.life.full.store(true, Ordering::Relaxed),
            172..178 => self.life.full.store(false, Ordering::Relaxed),
            178 => {
                let catalog = catalog(&mut self.rng);
                self.runtime.set_catalog(catalog);
            }
            179 => self.crash(Lost::Nothing).await,
            180 => self.crash(Lost::Unsynced).await,
            181 => self.shut_down().await,
            _ => {}
        }
    }

    fn submit(&mut self, key: ConversationKey) {
        let content = self.word("said");
        let mut request = RunRequest::new(key.clone(), content.clone());
        if self.rng.permille(400) {
            let id = format!("id {}", self.words);
            let ids = self.ids.entry(key.clone()).or_default();
            ids.push((id.clone(), content));
            request.request_id = Some(id);
        }
        if self.rng.permille(100) {
            request.guest = Some("ada".into());
        }
        self.send(request);
    }

    fn retry(&mut self, key: ConversationKey) {
        let ids = self.ids.entry(key.clone()).or_default();
        let Some((id, content)) = self.rng.pick(ids).cloned() else {
            return;
        };
        let mut request = RunRequest::new(key, content);
        request.request_id = Some(id);
        self.send(request);
    }

    fn send(&mut self, request: RunRequest) {
        let heard = Heard {
            content: Some(request.content.clone()),
            id: request.request_id.clone(),
            ..Heard::default()
        };
        let key = request.key.clone();
        if let Ok(run) = self.runtime.submit(request) {
            self.read(&key, run, heard);
        }
    }

    /// Reads a run beside everything else.
    fn read(&mut self, key: &ConversationKey, mut run: Subscription, heard: Heard) {
        let heard = self.told.hears(key, heard);
        let (life, told, key) = (Arc::clone(&self.life), Arc::clone(&self.told), key.clone());
        self.readers.spawn(async move {
            loop {
                let next = run.next().await;
                if life.is_dead() {
                    return;
                }
                let mut heard = heard.lock().expect("not poisoned");
                match next {
                    Ok(Some(next)) => {
                        if let Err(problem) = heard.take(next) {
                            told.problem(format!("{key}: {problem}"));
                        }
                    }
                    Ok(None) if heard.end.is_none() => {
                        told.problem(format!("{key}: a stream without an End"));
                        return;
                    }
                    Ok(None) => return,
                    Err(error) => {
                        heard.refused = Some(error.code());
                        return;
                    }
                }
            }
        });
    }

    fn attach(&mut self, key: &ConversationKey) {
        if let Some(log) = self.runtime.attach(key)
            && log.end().is_none()
        {
            self.read(key, log.subscribe(0), Heard::default());
        }
    }

    fn steer(&mut self, key: ConversationKey) {
        let content = self.word("steer");
        let (runtime, life, told) = (
            self.runtime.clone(),
            Arc::clone(&self.life),
            Arc::clone(&self.told),
        );
        self.errands.spawn(async move {
            if runtime.steer(&key, content.clone()).await.is_ok() && !life.is_dead() {
                told.accepted(&key, content);
            }
        });
    }

    async fn answer_somebody(&mut self) {
        let asks = self.runtime.asks(None, None);
        if let Some(ask) = self.rng.pick(&asks) {
            let answer = match (ask.ask.kind, self.rng.below(4)) {
                (_, 0) => "nonsense that may fit",
                (AskKind::Question, _) => "this one",
                (AskKind::Approval, 1) => "Deny: not now",
                (AskKind::Approval, 2) => "Allow always",
                (AskKind::Approval, _) => "y",
            };
            let id = Some(ask.ask.id.as_str());
            drop(self.runtime.reply(&ask.key, id, answer).await);
        }
    }

    fn compact(&mut self, key: ConversationKey) {
        let runtime = self.runtime.clone();
        self.errands.spawn(async move {
            drop(runtime.compact(&key, None).await);
        });
    }

    fn set(&mut self, key: ConversationKey) {
        let (runtime, title) = (self.runtime.clone(), self.word("title"));
        self.errands.spawn(async move {
            drop(runtime.set(&key, Some(title), None).await);
        });
    }

    fn ask_for_the_end(&mut self, key: ConversationKey) {
        let runtime = self.runtime.clone();
        self.errands.spawn(async move {
            drop(runtime.last_end(&key).await);
        });
    }

    async fn remove(&mut self, key: ConversationKey) {
        // All events are read.
        sleep(Duration::from_millis(1)).await;
        if self.runtime.remove(&key).await.is_ok() {
            self.told.forget(&key);
            self.ids.remove(&key);
        }
    }

    /// The daemon is gone at this instant, and another one comes.
    async fn crash(&mut self, lost: Lost) {
        self.life.dead.store(true, Ordering::Relaxed);
        let left = match lost {
            Lost::Nothing => self.store.snapshot(),
            Lost::Unsynced => self.store.power_cut(),
        };
        self.readers.shutdown().await;
        self.errands.shutdown().await;
        // The rest of the old life ends on its own copy of the disk.
        self.end_runtime().await;
        self.store = left;
        self.told.crash(lost);
        self.begin_again().await;
    }

    /// SIGTERM.
    async fn shut_down(&mut self) {
        self.end_runtime().await;
        // Everybody is told.
        let told = async { while self.readers.join_next().await.is_some() {} };
        if timeout(SHUTDOWN, told).await.is_err() {
            self.told.problem("a stream outlived the daemon".into());
        }
        self.life.dead.store(true, Ordering::Relaxed);
        self.errands.shutdown().await;
        self.store = self.store.snapshot();
        self.told.check_rest();
        self.told.crash(Lost::Nothing);
        self.begin_again().await;
    }

    async fn end_runtime(&mut self) {
        if timeout(SHUTDOWN, self.runtime.shutdown()).await.is_err() {
            self.told.problem("the shutdown takes too long".into());
        }
    }

    async fn begin_again(&mut self) {
        self.check(false).await;
        self.lives += 1;
        let (steps, told) = (Arc::clone(&self.steps), Arc::clone(&self.told));
        self.life = Life::new(self.rng.next(), steps, told);
        let catalog = catalog(&mut self.rng);
        let resume = catalog.resume;
        let (store, life) = (&self.store, &self.life);
        self.runtime = start(store, life, &self.clock, &self.delegates, catalog);
        for summary in self.list().await {
            if resume && summary.1 {
                drop(self.runtime.resume(&summary.0));
            }
        }
    }

    /// Every conversation, and whether a run of it is open.
    async fn list(&self) -> Vec<(ConversationKey, bool)> {
        let listed = self.store.list(None, None).await.expect("in memory");
        let of = listed.into_iter().map(|s| (s.key, s.has_open_run));
        of.collect()
    }

    async fn check(&self, at_rest: bool) {
        for (key, _) in self.list().await {
            self.told.check(&key, &self.store.records(&key), at_rest);
        }
    }

    /// The outcome of a request is that of the log.
    async fn check_outcomes(&self) {
        for (key, ids) in &self.ids {
            for (id, _) in ids {
                let outcome = self.runtime.outcome(key, id).await;
                let Some(outcome) = outcome.expect("nothing fails any more") else {
                    continue;
                };
                let records = self.store.records(key).into_iter().rev();
                let mut ends = records.filter_map(|record| {
                    let Record::Run(run) = record else {
                        return None;
                    };
                    (run.id == outcome.run).then_some(run)
                });
                let end = ends.next().map(|end| RunOutcome::of_record(&end));
                if end.as_ref() != Some(&outcome) {
                    let differ = format!("{key}: {id} came out as {outcome:?}, logged as {end:?}");
                    self.told.problem(differ);
                }
            }
        }
    }

    /// Nothing fails any more: everything that was begun comes to an end.
    async fn rest(&mut self) {
        self.life.calm.store(true, Ordering::Relaxed);
        self.life.full.store(false, Ordering::Relaxed);
        for _ in 0..100 {
            for ask in self.runtime.asks(None, None) {
                let id = Some(ask.ask.id.as_str());
                drop(self.runtime.reply(&ask.key, id, "n").await);
            }
            sleep(Duration::from_secs(900)).await;
            while self.readers.try_join_next().is_some() {}
            while self.errands.try_join_next().is_some() {}
            if self.readers.is_empty() && self.errands.is_empty() && self.runtime.load().1 == 0 {
                break;
            }
        }
        if !self.readers.is_empty() || !self.errands.is_empty() {
            let (readers, errands) = (self.readers.len(), self.errands.len());
            let stuck = format!("{readers} streams and {errands} errands never end");
            self.told.problem(stuck);
            return;
        }
        for (key, _) in self.list().await {
            // Mends what a full disk left open.
            drop(self.runtime.last_end(&key).await);
            let _ = self.runtime.resume(&key);
        }
        sleep(Duration::from_secs(3600)).await;
        self.check(true).await;
        self.check_outcomes().await;
        self.told.check_rest();
        self.end_runtime().await;
    }
}
