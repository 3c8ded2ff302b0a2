//! A runtime on doubles, and what tests read of it.

use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{
    AgentConfig, AgentEvent, AgentName, AskOutcome, BoxFuture, ConversationKey, Cost, End, Hook,
    Image, ImageType, Ledger, Permission, PermissionRule, Principal, Reservation, RunEnds, Spent,
    TokenName, Usage, model,
};
use crabtalk_gate::{Approval, Disk};
use crabtalk_runtime::{ApprovalBook, Catalog, Error, Parts, RunRequest, Runtime, Subscription};
use crabtalk_testkit::{HeardEnds, ManualClock, MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("crab", "user").expect("valid")
}

/// A client that showed a token.
pub(crate) fn laptop() -> Principal {
    Principal::Token(TokenName::new("laptop").expect("a name"))
}

/// Tools: `echo` answers, `fail` fails, `wait` waits for its turn, `danger`
/// has to be approved.
#[derive(Default)]
pub(crate) struct Tools {
    called: Mutex<Vec<String>>,
    pub(crate) release: Notify,
    pub(crate) waiting: AtomicUsize,
    pub(crate) changed: Notify,
}

impl Tools {
    /// Names of the tools that were called.
    pub(crate) fn called(&self) -> Vec<String> {
        self.called.lock().expect("not poisoned").clone()
    }

    pub(crate) async fn until_waiting(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if self.waiting.load(Ordering::SeqCst) == count {
                return;
            }
            changed.await;
        }
    }
}

/// Counts a waiting call for as long as it lives.
struct Waiting<'a>(&'a Tools);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl ToolProvider for Tools {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let spec = |name: &str, default_permission| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({"type": "object"}).into(),
                default_permission,
            })
        };
        vec![
            spec("echo", Permission::Allow),
            spec("fail", Permission::Allow),
            spec("wait", Permission::Allow),
            spec("danger", Permission::Ask),
            spec("boom", Permission::Allow),
        ]
    }

    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(std::future::ready(Ok(Subject::Other)))
    }

    fn call<'a>(&'a self, call: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            self.called
                .lock()
                .expect("not poisoned")
                .push(call.name.clone());
            match call.name.as_str() {
                "echo" => {
                    let images = call.arguments["images"].as_u64().unwrap_or(0);
                    let image = |n: u64| Image::new(ImageType::Png, &n.to_be_bytes());
                    ToolOutput::ok(call.arguments["text"].as_str().unwrap_or("-"))
                        .with_images((0..images).filter_map(|n| image(n).ok()).collect())
                }
                "wait" => {
                    let released = self.release.notified();
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    let _waiting = Waiting(self);
                    self.changed.notify_waiters();
                    released.await;
                    ToolOutput::ok("waited")
                }
                "boom" => panic!("a tool that panics"),
                "danger" => ToolOutput::ok("done"),
                _ => ToolOutput::error("failed"),
            }
        })
    }
}

/// Approvals in memory.
#[derive(Default)]
pub(crate) struct Book {
    kept: Mutex<Arc<Vec<Approval>>>,
    /// Whether the disk has no room.
    pub(crate) is_full: AtomicBool,
}

impl ApprovalBook for Book {
    fn list(&self) -> Arc<Vec<Approval>> {
        Arc::clone(&self.kept.lock().expect("not poisoned"))
    }

    fn add(&self, approval: Approval) -> BoxFuture<'_, Result<(), String>> {
        if self.is_full.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err("no room on the disk".into())));
        }
        Arc::make_mut(&mut self.kept.lock().expect("not poisoned")).push(approval);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A call that read so many tokens has no price; others cost 1 a token written.
pub(crate) const UNPRICED: u64 = 13;

/// Notes what is spent, and closes when told to.
#[derive(Default)]
pub(crate) struct Purse {
    pub(crate) booked: Mutex<Vec<String>>,
    pub(crate) closes_after: Mutex<Option<usize>>,
}

impl Ledger for Purse {
    fn reserve<'a>(
        &'a self,
        agent: &'a AgentConfig,
        _: Usage,
    ) -> BoxFuture<'a, Result<Reservation, model::Error>> {
        let limit = *self.closes_after.lock().expect("not poisoned");
        let booked = self.booked.lock().expect("not poisoned").len();
        if limit.is_some_and(|limit| booked >= limit) {
            let message = format!("{} has spent it all", agent.name);
            let spent = model::Error::new(model::ErrorKind::Budget, message);
            return Box::pin(ready(Err(spent)));
        }
        Box::pin(ready(Ok(Reservation::default())))
    }

    fn record(&self, _: Reservation, spent: Spent<'_>) -> Cost {
        let Usage {
            prompt_tokens,
            completion_tokens,
            ..
        } = spent.usage;
        self.booked.lock().expect("not poisoned").push(format!(
            "{} {} {} {}/{} {prompt_tokens}+{completion_tokens}",
            spent.key, spent.run, spent.agent.name, spent.provider, spent.model
        ));
        let priced = *prompt_tokens != UNPRICED;
        Cost::of_call(spent.usage, priced.then_some(*completion_tokens as f64))
    }
}

pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) model: ScriptedModel,
    pub(crate) store: MemoryStore,
    pub(crate) tools: Arc<Tools>,
    pub(crate) approvals: Arc<Book>,
    pub(crate) ledger: Arc<Purse>,
    pub(crate) ends: Arc<HeardEnds>,
}

pub(crate) fn agent(name: &str) -> AgentConfig {
    AgentConfig::new(
        AgentName::new(name).expect("valid"),
        format!("You are {name}."),
    )
}

pub(crate) fn rule(tool: &str, permission: Permission) -> PermissionRule {
    PermissionRule {
        tool: tool.into(),
        pattern: None,
        permission,
    }
}

/// The catalogue with changes of `crab`.
pub(crate) fn with_crab(change: impl FnOnce(&mut AgentConfig)) -> Catalog {
    let (mut catalog, mut crab) = (catalog(), agent("crab"));
    change(&mut crab);
    catalog.agents.insert(crab.name.clone(), Arc::new(crab));
    catalog
}

/// A catalogue by which interrupted runs are resumed.
pub(crate) fn resuming() -> Catalog {
    Catalog {
        resume: true,
        ..catalog()
    }
}

/// Two agents, `crab` and `ada`.
pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::of(agent("crab"));
    let ada = agent("ada");
    catalog.agents.insert(ada.name.clone(), Arc::new(ada));
    catalog
}

pub(crate) fn rig(replies: Vec<Reply>) -> Rig {
    rig_on(
        ScriptedModel::new(replies),
        MemoryStore::default(),
        catalog(),
    )
}

pub(crate) fn rig_on(model: ScriptedModel, store: MemoryStore, catalog: Catalog) -> Rig {
    rig_resolving(model, store, catalog, |_| None)
}

pub(crate) fn rig_with_hook(model: ScriptedModel, hook: Arc<dyn Hook>) -> Rig {
    rig_of(
        model,
        MemoryStore::default(),
        catalog(),
        |_: &Path| None,
        hook,
    )
}

pub(crate) fn rig_resolving(
    model: ScriptedModel,
    store: MemoryStore,
    catalog: Catalog,
    resolve: impl Fn(&Path) -> Option<PathBuf> + Send + Sync + 'static,
) -> Rig {
    rig_of(model, store, catalog, resolve, Arc::new(()))
}

pub(crate) fn rig_of(
    model: ScriptedModel,
    store: MemoryStore,
    catalog: Catalog,
    disk: impl Disk + 'static,
    hook: Arc<dyn Hook>,
) -> Rig {
    let ends = Arc::new(HeardEnds::default());
    let heard_by = vec![Arc::clone(&ends) as Arc<dyn RunEnds>];
    let parts = |parts: Parts| Parts {
        hook,
        disk: Arc::new(disk),
        ends: heard_by,
        ..parts
    };
    Rig {
        ends,
        ..rig_from(model, store, catalog, parts)
    }
}

/// A rig whose ends of runs these hear of.
pub(crate) fn rig_heard_by(
    model: ScriptedModel,
    store: MemoryStore,
    ends: Vec<Arc<dyn RunEnds>>,
) -> Rig {
    rig_from(model, store, catalog(), |parts| Parts { ends, ..parts })
}

/// A rig whose parts are changed before it starts.
pub(crate) fn rig_from(
    model: ScriptedModel,
    store: MemoryStore,
    catalog: Catalog,
    change: impl FnOnce(Parts) -> Parts,
) -> Rig {
    let tools = Arc::new(Tools::default());
    let approvals = Arc::new(Book::default());
    let ledger = Arc::new(Purse::default());
    let parts = change(Parts {
        model: Arc::new(model.clone()),
        storage: Arc::new(store.clone()),
        tools: vec![Arc::clone(&tools) as Arc<dyn ToolProvider>],
        hook: Arc::new(()),
        clock: Arc::new(ManualClock::default()),
        approvals: Arc::clone(&approvals) as _,
        disk: Arc::new(|_: &Path| None),
        delegates: Arc::new(AtomicU64::new(1)),
        ledger: Arc::clone(&ledger) as _,
        ends: Vec::new(),
    });
    Rig {
        runtime: Runtime::new(parts, catalog),
        model,
        store,
        tools,
        approvals,
        ledger,
        ends: Arc::default(),
    }
}

impl Rig {
    pub(crate) fn submit(&self, content: &str) -> Subscription {
        self.try_submit(RunRequest::new(key(), content))
            .expect("accepted")
    }

    pub(crate) fn try_submit(&self, request: RunRequest) -> Result<Subscription, Error> {
        self.runtime.submit(request)
    }

    /// Runs a request to the end and shows every event.
    pub(crate) async fn send(&self, request: RunRequest) -> Vec<String> {
        read(self.try_submit(request).expect("accepted")).await
    }

    /// Answers the oldest shown ask.
    pub(crate) async fn reply(&self, content: &str) {
        let replied = self.runtime.reply(&key(), None, content).await;
        replied.expect("pending");
    }

    pub(crate) async fn steer(&self, content: &str) {
        let taken = self.runtime.steer(&key(), content.into()).await;
        taken.expect("a run goes on");
    }

    pub(crate) async fn compact(&self) -> String {
        let summary = self.runtime.compact(&key(), None).await;
        summary.expect("compacted")
    }

    /// Runs to the end and shows every event.
    pub(crate) async fn run(&self, content: &str) -> Vec<String> {
        read(self.submit(content)).await
    }

    /// The log, message and run lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.store.lines(&key())
    }

    /// Nothing that was sent to the model was wrong.
    pub(crate) fn model_was_content(&self) {
        assert_eq!(self.model.problems(), Vec::<String>::new());
    }
}

/// Reads a run to its end.
pub(crate) async fn read(mut subscription: Subscription) -> Vec<String> {
    let mut out = Vec::new();
    loop {
        match subscription.next().await {
            Ok(Some(next)) => out.push(show(&next.event)),
            Ok(None) => return out,
            Err(error) => {
                out.push(format!("refused {}: {error}", error.code()));
                return out;
            }
        }
    }
}

/// Reads until an event shows as this, and returns what came.
pub(crate) async fn read_until(subscription: &mut Subscription, want: &str) -> Vec<String> {
    let mut out = Vec::new();
    while let Some(next) = subscription.next().await.expect("not refused") {
        out.push(show(&next.event));
        if out.last().is_some_and(|last| last.starts_with(want)) {
            return out;
        }
    }
    panic!("the run ended without {want}: {out:?}");
}

/// The last event of a run.
pub(crate) fn last(events: &[String]) -> &str {
    events.last().map(String::as_str).unwrap_or_default()
}

pub(crate) fn show(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Start { agent, run, .. } => format!("start {agent} {run}"),
        AgentEvent::UserMessage { content, .. } => format!("user {content}"),
        AgentEvent::ThinkingStart => "<think>".into(),
        AgentEvent::Thinking(text) => format!("({text})"),
        AgentEvent::ThinkingEnd => "</think>".into(),
        AgentEvent::TextStart => "<text>".into(),
        AgentEvent::Text(text) => text.clone(),
        AgentEvent::TextEnd => "</text>".into(),
        AgentEvent::ToolStart(calls) => {
            let names: Vec<&str> = calls.iter().map(|c| c.name.as_str()).collect();
            format!("tools {names:?}")
        }
        AgentEvent::ToolResult {
            output, is_error, ..
        } => {
            format!("result{} {output}", if *is_error { "!" } else { "" })
        }
        AgentEvent::ToolsComplete => "complete".into(),
        AgentEvent::ToolProgress { progress, .. } => format!("progress {}", progress.done),
        AgentEvent::Component(news) => format!("component {}", news.said),
        AgentEvent::AskUser(ask) => format!("ask {}", ask.questions[0].question),
        AgentEvent::AskSettled { outcome, .. } => match outcome {
            AskOutcome::Answered { by, answer } => format!("settled by {by}: {answer}"),
            AskOutcome::Withdrawn => "settled: withdrawn".into(),
            AskOutcome::TimedOut => "settled: timed out".into(),
        },
        AgentEvent::Steered(content) => format!("steered {content}"),
        AgentEvent::Compacted { failed, .. } if failed.is_empty() => "compacted".into(),
        AgentEvent::Compacted { failed, .. } => format!("not compacted: {failed}"),
        AgentEvent::Interrupted { run, .. } => format!("interrupted {run}"),
        AgentEvent::Waiting { whom, .. } => format!("waiting for {whom}"),
        AgentEvent::Notice(notice) => format!("notice {notice}"),
        AgentEvent::End(End { code, error, .. }) => format!("end {code} {error}").trim().into(),
    }
}
