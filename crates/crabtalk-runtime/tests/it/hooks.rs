//! The hook's methods, and that the runtime calls each (HOOK-1).

use crate::rig::*;
use crabtalk_domain::storage::Storage;
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{
    AgentConfig, AgentEvent, BoxFuture, ConversationKey, Hook, Message, People, Permission,
    Refusal, RunContext, ToolRegistry,
};
use crabtalk_runtime::{Catalog, RunRequest};
use crabtalk_testkit::{Reply, ScriptedModel};
use serde_json::json;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Everything {
    events: Mutex<usize>,
}

impl Hook for Everything {
    fn on_build_agent<'a>(&'a self, mut agent: AgentConfig) -> BoxFuture<'a, AgentConfig> {
        agent.prompt.push_str(" Built.");
        Box::pin(ready(agent))
    }

    fn on_register_tools<'a>(&'a self, tools: &'a mut ToolRegistry) -> BoxFuture<'a, ()> {
        tools.register(Arc::new(Brought));
        Box::pin(ready(()))
    }

    fn preprocess<'a>(
        &'a self,
        _: RunContext<'a>,
        content: String,
    ) -> BoxFuture<'a, Result<String, Refusal>> {
        Box::pin(ready(match content.as_str() {
            "/no" => Err(Refusal {
                code: 403,
                message: "not that".into(),
            }),
            _ => Ok(format!("{content}, please")),
        }))
    }

    fn on_before_run<'a>(
        &'a self,
        _: RunContext<'a>,
        _: &'a [Arc<Message>],
        _: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(ready(vec![Message::user("context")]))
    }

    fn on_event(&self, _: &ConversationKey, _: &AgentEvent) {
        *self.events.lock().expect("not poisoned") += 1;
    }
}

/// The tools of the hook: an allowed one, one that asks, and one with a taken name.
struct Brought;

impl ToolProvider for Brought {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let spec = |name: &str, default_permission| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: "of the hook alone".into(),
                parameters: json!({"type": "object"}).into(),
                default_permission,
            })
        };
        vec![
            spec("echo", Permission::Allow),
            spec("hooked", Permission::Allow),
            spec("closed", Permission::Deny),
        ]
    }

    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(ready(Ok(Subject::Other)))
    }

    fn call<'a>(&'a self, call: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(ready(ToolOutput::ok(format!("{} ran", call.name))))
    }
}

#[tokio::test]
async fn tools_of_hooks_pass_the_gate() {
    let model = ScriptedModel::new(vec![
        Reply::tool("hooked", json!({})),
        Reply::tool("closed", json!({})),
        Reply::tool("echo", json!({"text": "of the provider"})),
        Reply::text("done"),
    ]);
    let rig = rig_with_hook(model, Arc::new(Everything::default()));
    let events = rig.run("do it").await;
    let results: Vec<_> = events.iter().filter(|e| e.starts_with("result")).collect();
    assert_eq!(results[0], "result hooked ran");
    assert!(results[1].starts_with("result! "), "{results:?}");
    assert!(!results[1].contains("ran"), "{results:?}");
    assert_eq!(results[2], "result of the provider");
    rig.model_was_content();
}

#[tokio::test]
async fn every_method_of_a_hook_is_called() {
    let hook = Arc::new(Everything::default());
    let model = ScriptedModel::new(vec![
        Reply::tool("hooked", json!({})),
        Reply::text("done"),
        Reply::text("again"),
    ]);
    let rig = rig_with_hook(model, Arc::clone(&hook) as Arc<dyn Hook>);
    let events = rig.run("do it").await;
    assert_eq!(events[1], "user do it, please");
    assert!(events.contains(&"result hooked ran".into()), "{events:?}");
    assert_eq!(*hook.events.lock().expect("not poisoned"), events.len());
    rig.run("more").await;
    let requests = rig.model.requests();
    assert_eq!(&*requests[0].system, "You are crab. Built.");
    let tool = |name: &str| requests[0].tools.iter().find(|t| t.name == name);
    assert_eq!(
        tool("hooked").map(|t| t.description.as_str()),
        Some("of the hook alone")
    );
    assert_eq!(tool("echo").map(|t| t.description.as_str()), Some(""));
    // Injected afresh for every run, and never kept (RUN-3).
    for request in &requests {
        assert_eq!(
            request
                .messages()
                .filter(|m| m.content == "context")
                .count(),
            1
        );
    }
    assert!(!rig.lines().iter().any(|line| line.contains("context")));
    let refused = rig.run("/no").await;
    assert_eq!(refused, ["refused 403: not that"]);
    rig.model_was_content();
}

/// Notes when it is asked for what, and adds a word to each prompt.
#[derive(Default)]
struct Turns(Mutex<Vec<String>>);

impl Turns {
    fn note(&self, turn: String) {
        self.0.lock().expect("not poisoned").push(turn);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("not poisoned"))
    }
}

impl Hook for Turns {
    fn on_build_agent<'a>(&'a self, mut agent: AgentConfig) -> BoxFuture<'a, AgentConfig> {
        let role = if agent.as_guest { "guest" } else { "build" };
        self.note(format!("{role}: {}", agent.prompt));
        agent.prompt.push_str(" Built.");
        Box::pin(ready(agent))
    }

    fn preprocess<'a>(
        &'a self,
        run: RunContext<'a>,
        content: String,
    ) -> BoxFuture<'a, Result<String, Refusal>> {
        self.note(format!("{content}: {}", run.agent.prompt));
        Box::pin(ready(Ok(content)))
    }

    fn on_before_run<'a>(
        &'a self,
        run: RunContext<'a>,
        _: &'a [Arc<Message>],
        _: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        self.note(format!("before: {}", run.agent.prompt));
        Box::pin(ready(Vec::new()))
    }
}

#[tokio::test]
async fn agents_are_composed_for_each_run_and_summary() {
    let hook = Arc::new(Turns::default());
    let model = ScriptedModel::new(vec![
        Reply::tool("echo", json!({"text": "x"})),
        Reply::text("one"),
        Reply::text("two"),
        Reply::text("three"),
        Reply::text("A summary."),
    ]);
    let rig = rig_with_hook(model, Arc::clone(&hook) as Arc<dyn Hook>);
    rig.run("go").await;
    // Once, however many steps it has.
    let once = |prompt: &str| {
        [
            format!("build: {prompt}"),
            format!("go: {prompt} Built."),
            format!("before: {prompt} Built."),
        ]
    };
    assert_eq!(hook.take(), once("You are crab."));
    let (mut crab, ada) = (agent("crab"), agent("ada"));
    crab.prompt = "You have changed.".into();
    let mut changed = Catalog::of(crab);
    changed.agents.insert(ada.name.clone(), Arc::new(ada));
    rig.runtime.set_catalog(changed);
    rig.run("go").await;
    assert_eq!(hook.take(), once("You have changed."));
    let mut request = RunRequest::new(key(), "go");
    request.guest = Some("ada".into());
    rig.send(request).await;
    let both = ["build: You have changed.", "guest: You are ada."];
    assert_eq!(hook.take()[..2], both);
    rig.compact().await;
    assert_eq!(hook.take(), ["build: You have changed."]);
    let systems: Vec<_> = rig
        .model
        .requests()
        .iter()
        .map(|r| r.system.clone())
        .collect();
    for (system, prompt) in systems.iter().zip([
        "You are crab. Built.",
        "You are crab. Built.",
        "You have changed. Built.",
        "You are ada. Built.",
    ]) {
        assert!(system.starts_with(prompt), "{system}");
        assert_eq!(system.matches("Built.").count(), 1, "{system}");
    }
    rig.model_was_content();
}

#[tokio::test]
async fn steering_messages_pass_the_hook() {
    let model = ScriptedModel::new(vec![Reply::hang(), Reply::text("done")]);
    let rig = rig_with_hook(model, Arc::new(Everything::default()));
    let mut run = rig.submit("go");
    rig.model.until(|p| p.hung == 1).await;
    let crab = key();
    let refused = rig.runtime.steer(&crab, "/no".into()).await;
    assert_eq!(refused.expect_err("out of scope").code(), 403);
    assert_eq!(rig.runtime.violations(), 1);
    let taken = rig.runtime.steer(&crab, "left".into()).await;
    taken.expect("a run goes on");
    rig.model.release();
    read_until(&mut run, "steered left, please").await;
    assert!(rig.lines().contains(&"user: left, please".to_owned()));
}

/// Notes where runs work.
#[derive(Default)]
struct Places(Mutex<Vec<String>>);

impl Hook for Places {
    fn on_before_run<'a>(
        &'a self,
        run: RunContext<'a>,
        _: &'a [Arc<Message>],
        _: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        let place = run.cwd.to_string_lossy().into_owned();
        self.0.lock().expect("not poisoned").push(place);
        Box::pin(std::future::ready(Vec::new()))
    }
}

#[tokio::test(start_paused = true)]
async fn conversation_folder_beats_agent_folder() {
    let places = Arc::new(Places::default());
    let model = ScriptedModel::new((0..6).map(|_| Reply::text("ok")).collect());
    let rig = rig_with_hook(model, Arc::clone(&places) as Arc<dyn Hook>);
    let agent_in = |folder: Option<&str>| {
        let mut crab = agent("crab");
        crab.cwd = folder.map(PathBuf::from);
        rig.runtime.set_catalog(Catalog::of(crab));
    };
    let ask = async |cwd: Option<&str>| {
        let mut request = RunRequest::new(key(), "hello");
        request.cwd = cwd.map(PathBuf::from);
        rig.send(request).await;
    };
    ask(Some("/first")).await;
    ask(None).await;
    agent_in(Some("/agent"));
    ask(None).await;
    agent_in(Some("/moved"));
    ask(None).await;
    let (pair, own) = (key(), Some("/own".into()));
    rig.runtime.set(&pair, None, own).await.expect("is set");
    ask(None).await;
    // As it does in the next daemon.
    let opened = rig.store.snapshot().open(&pair, None).await;
    let meta = opened.expect("in memory").expect("it exists").meta;
    assert_eq!(rig.runtime.catalog().cwd(&pair, &meta), Path::new("/own"));
    agent_in(None);
    ask(Some("/once")).await;
    let places = places.0.lock().expect("not poisoned");
    assert_eq!(
        *places,
        ["/first", "/first", "/agent", "/moved", "/own", "/once"]
    );
}
