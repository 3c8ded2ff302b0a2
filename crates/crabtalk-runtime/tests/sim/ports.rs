//! The ports of a simulated daemon: what the testkit gives, with delays and
//! faults by the seed. Each call of one is a step.

use crate::rng::Rng;
use crate::told::Told;
use crabtalk_domain::model::{Chunk, Error as ModelError, ErrorKind, Model, Request, StopReason};
use crabtalk_domain::storage::*;
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{
    AgentConfig, AgentEvent, BoxFuture, BoxStream, ConversationKey, Cost, Hook, Ledger, Message,
    People, Permission, Refusal, Reservation, RunContext, RunEnded, RunEnds, Spent, Usage,
};
use crabtalk_testkit::MemoryStore;
use crabtalk_testkit::model::request_problems;
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::collections::HashMap;
use std::future::ready;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// The message of planned panics, which are not failures.
pub(crate) const PLANNED: &str = "a planned panic";

/// One life of the daemon: from a start to a crash or a shutdown.
pub(crate) struct Life {
    seed: u64,
    /// Counts calls of the same case.
    cases: Mutex<HashMap<u64, u64>>,
    /// Set by the crash: later effects of this life are not observed.
    pub(crate) dead: AtomicBool,
    /// Nothing fails any more, so that everything can come to its end.
    pub(crate) calm: AtomicBool,
    /// The disk takes nothing.
    pub(crate) full: AtomicBool,
    pub(crate) steps: Arc<AtomicU64>,
    pub(crate) told: Arc<Told>,
}

impl Life {
    pub(crate) fn new(seed: u64, steps: Arc<AtomicU64>, told: Arc<Told>) -> Arc<Self> {
        Arc::new(Self {
            seed,
            cases: Mutex::default(),
            dead: AtomicBool::new(false),
            calm: AtomicBool::new(false),
            full: AtomicBool::new(false),
            steps,
            told,
        })
    }

    /// Chance for the next call of this case.
    fn chance(&self, case: impl Hash) -> Rng {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let id = Rng::of(self.seed, case).next();
        let mut cases = self.cases.lock().expect("not poisoned");
        let times = cases.entry(id).or_default();
        *times += 1;
        Rng::of(id, *times)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed) || self.is_dead()
    }

    fn fails(&self, rng: &mut Rng, often: u64) -> bool {
        !self.is_calm() && rng.permille(often)
    }
}

async fn pause(rng: &mut Rng, upto_ms: u64) {
    // Most calls take no time at all.
    if rng.permille(300) {
        sleep(Duration::from_millis(rng.below(upto_ms))).await;
    }
}

/// The store.
pub(crate) struct Store(pub(crate) MemoryStore, pub(crate) Arc<Life>);

fn broken(kind: std::io::ErrorKind) -> Error {
    Error::Unwritable {
        object: "memory".to_owned(),
        source: kind.into(),
    }
}

struct Log {
    inner: Arc<Mutex<Box<dyn ConversationLog>>>,
    life: Arc<Life>,
    key: ConversationKey,
}

impl ConversationLog for Log {
    fn append(&mut self, records: &[Record]) -> BoxFuture<'static, Result<Position, Error>> {
        let mut rng = self.life.chance(("append", &self.key));
        let full = self.life.full.load(Ordering::Relaxed);
        if full || self.life.fails(&mut rng, 3) {
            let full = broken(std::io::ErrorKind::StorageFull);
            return Box::pin(ready(Err(full)));
        }
        self.inner.lock().expect("not poisoned").append(records)
    }

    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        let (inner, life) = (Arc::clone(&self.inner), Arc::clone(&self.life));
        let mut rng = life.chance(("sync", &self.key));
        Box::pin(async move {
            pause(&mut rng, 50).await;
            if life.fails(&mut rng, 2) {
                return Err(broken(std::io::ErrorKind::Other));
            }
            let synced = inner.lock().expect("not poisoned").synced(upto);
            synced.await
        })
    }
}

impl Storage for Store {
    fn open<'a>(
        &'a self,
        key: &'a ConversationKey,
        create: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, Error>> {
        Box::pin(async move {
            let mut rng = self.1.chance(("open", key));
            pause(&mut rng, 100).await;
            if self.1.fails(&mut rng, 3) {
                return Err(broken(std::io::ErrorKind::Other));
            }
            let opened = self.0.open(key, create).await?;
            Ok(opened.map(|opened| Opened {
                log: Box::new(Log {
                    inner: Arc::new(Mutex::new(opened.log)),
                    life: Arc::clone(&self.1),
                    key: key.clone(),
                }),
                ..opened
            }))
        })
    }

    fn list<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        self.0.list(agent, sender)
    }

    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        self.0.page(source, before, limit)
    }

    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>> {
        self.0.entries(key, indexes)
    }

    fn trace<'a>(
        &'a self,
        key: &'a ConversationKey,
        run: u64,
    ) -> BoxFuture<'a, Result<Option<RunTrace>, Error>> {
        Box::pin(async move {
            let mut rng = self.1.chance(("trace", key));
            pause(&mut rng, 100).await;
            self.0.trace(key, run).await
        })
    }

    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, Error>> {
        self.0.archives(key)
    }

    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut rng = self.1.chance(("remove", key));
            pause(&mut rng, 100).await;
            self.0.remove(key).await
        })
    }

    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, Error>> {
        self.0.log(id)
    }

    fn remove_log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<(), Error>> {
        self.0.remove_log(id)
    }
}

/// The model: what it says follows from what it is told.
pub(crate) struct Minds(pub(crate) Arc<Life>);

impl Minds {
    fn reply(&self, request: &Request, rng: &mut Rng) -> Vec<Result<Chunk, ModelError>> {
        let stop = |reason| Ok(Chunk::Stop(reason));
        let text = |text: String| Ok(Chunk::Text(text));
        let error = |kind| vec![Err(ModelError::new(kind, "a planned failure"))];
        let id = rng.next();
        if request.closing.is_some() {
            return match rng.below(20) {
                0 => vec![stop(StopReason::Done)],
                1 => error(ErrorKind::Unreachable),
                2 => vec![text("long ".repeat(2000)), stop(StopReason::Done)],
                _ => vec![text(format!("Summary {id:x}.")), stop(StopReason::Done)],
            };
        }
        if self.0.is_calm() {
            return vec![text(format!("answer {id:x}")), stop(StopReason::Done)];
        }
        match rng.below(100) {
            0..5 => error(ErrorKind::Unreachable),
            5 => error(ErrorKind::TooLong),
            6..9 => vec![text(format!("cut {id:x}"))],
            9..11 => vec![stop(StopReason::Done)],
            11 => vec![text("no".into()), stop(StopReason::ContentFilter)],
            12..55 if !request.tools.is_empty() || rng.permille(30) => self.calls(id, rng),
            _ => vec![
                text("answer ".into()),
                text(format!("{id:x}")),
                stop(StopReason::Done),
            ],
        }
    }

    fn calls(&self, id: u64, rng: &mut Rng) -> Vec<Result<Chunk, ModelError>> {
        let mut chunks = Vec::new();
        if rng.permille(300) {
            chunks.push(Ok(Chunk::Text(format!("saying {id:x}"))));
        }
        for index in 0..1 + rng.below(3) as u32 {
            let (name, arguments) = match rng.below(40) {
                0..20 => {
                    let padding = "x".repeat(rng.below(300) as usize);
                    (
                        "echo",
                        json!({"text": format!("echo {id:x} {index} {padding}")}),
                    )
                }
                20..25 => ("fail", json!({})),
                25..30 => ("wait", json!({"ms": rng.below(5000)})),
                30..34 => ("danger", json!({})),
                34..36 => (
                    "ask_user",
                    json!({"questions": [{"question": "which?", "options": []}]}),
                ),
                36 => ("set_title", json!({"title": format!("title {id:x}")})),
                37 => ("nothing", json!({})),
                38 => ("boom", json!({})),
                _ => (
                    "delegate",
                    json!({"tasks": [{"agent": "ada", "task": format!("task {id:x}")}]}),
                ),
            };
            chunks.push(Ok(Chunk::ToolCallStart {
                index,
                id: format!("call-{id:x}-{index}"),
                name: name.into(),
            }));
            chunks.push(Ok(Chunk::ToolCallArguments {
                index,
                fragment: arguments.to_string(),
            }));
        }
        chunks.push(Ok(Chunk::Stop(StopReason::ToolCalls)));
        chunks
    }
}

impl Model for Minds {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Chunk, ModelError>> {
        for problem in request_problems(&request) {
            self.0
                .told
                .problem(format!("a provider would refuse it: {problem}"));
        }
        let last = request.messages().last().map(|m| m.content.clone());
        let mut rng = self.0.chance(("model", last, request.history.len()));
        let mut chunks = self.reply(&request, &mut rng);
        if !matches!(chunks.first(), Some(Err(_))) {
            let answering = Chunk::Answering {
                provider: "simulated".into(),
                model: "minds".into(),
            };
            chunks.insert(0, Ok(answering));
        }
        let life = Arc::clone(&self.0);
        Box::pin(stream::iter(chunks).then(move |chunk| {
            life.steps.fetch_add(1, Ordering::Relaxed);
            let wait = match rng.below(100) {
                _ if life.is_calm() => 0,
                0 => 600_000,
                1..20 => rng.below(2000),
                _ => 0,
            };
            async move {
                if wait > 0 {
                    sleep(Duration::from_millis(wait)).await;
                }
                chunk
            }
        }))
    }

    fn context_limit(&self, _: &str) -> Option<u64> {
        Some(4_000)
    }

    fn active_model(&self) -> String {
        "minds".into()
    }
}

/// Tools that notice when a call runs twice.
pub(crate) struct Hands(pub(crate) Arc<Life>);

impl ToolProvider for Hands {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let spec = |name: &str, default_permission| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({"type": "object"}).into(),
                default_permission,
            })
        };
        let mut specs = vec![spec("danger", Permission::Ask)];
        specs.extend(["echo", "fail", "wait", "boom"].map(|name| spec(name, Permission::Allow)));
        specs
    }

    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(ready(Ok(Subject::Other)))
    }

    fn call<'a>(&'a self, call: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let mut rng = self.0.chance(("tool", &call.call_id));
            if !self.0.is_dead() {
                self.0.told.executed(&call.call_id);
            }
            match call.name.as_str() {
                "wait" => {
                    let ms = call.arguments["ms"].as_u64().unwrap_or(0);
                    sleep(Duration::from_millis(ms)).await;
                    ToolOutput::ok("waited")
                }
                "boom" if !self.0.is_calm() => panic!("{PLANNED}"),
                "fail" => ToolOutput::error("failed"),
                _ => {
                    pause(&mut rng, 500).await;
                    ToolOutput::ok(call.arguments["text"].as_str().unwrap_or("done"))
                }
            }
        })
    }
}

/// A hook that is slow, refuses, panics, and sees how runs begin and end.
pub(crate) struct Senses(pub(crate) Arc<Life>);

impl Hook for Senses {
    fn preprocess<'a>(
        &'a self,
        _: RunContext<'a>,
        content: String,
    ) -> BoxFuture<'a, Result<String, Refusal>> {
        Box::pin(async move {
            let mut rng = self.0.chance(("preprocess", &content));
            pause(&mut rng, 1000).await;
            if self.0.fails(&mut rng, 2) {
                panic!("{PLANNED}");
            }
            if self.0.fails(&mut rng, 10) {
                return Err(Refusal {
                    code: 403,
                    message: "a planned refusal".into(),
                });
            }
            Ok(content)
        })
    }

    fn on_before_run<'a>(
        &'a self,
        run: RunContext<'a>,
        _: &'a [Arc<Message>],
        _: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(async move {
            let mut rng = self.0.chance(("before", run.key, run.run));
            pause(&mut rng, 1000).await;
            if self.0.fails(&mut rng, 2) {
                panic!("{PLANNED}");
            }
            vec![Message::user("context")]
        })
    }

    fn on_event(&self, key: &ConversationKey, event: &AgentEvent) {
        if !self.0.is_dead() {
            self.0.told.hook_saw(key, event);
        }
    }
}

/// An account that is spent now and then.
pub(crate) struct Purse(pub(crate) Arc<Life>);

impl Ledger for Purse {
    fn reserve<'a>(
        &'a self,
        agent: &'a AgentConfig,
        _: Usage,
    ) -> BoxFuture<'a, Result<Reservation, ModelError>> {
        Box::pin(async move {
            let mut rng = self.0.chance(("check", &agent.name));
            if self.0.fails(&mut rng, 5) {
                return Err(ModelError::new(ErrorKind::Budget, "a planned end of money"));
            }
            Ok(Reservation::default())
        })
    }

    fn record(&self, _: Reservation, spent: Spent<'_>) -> Cost {
        Cost::of_call(spent.usage, None)
    }
}

impl RunEnds for Purse {
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()> {
        let mut rng = self.0.chance(("heard", &*ended.key));
        Box::pin(async move {
            pause(&mut rng, 1500).await;
            if !self.0.is_dead() {
                self.0.told.closed(ended);
            }
        })
    }
}
