//! Modes of runs, and the access with which commands run.

use crate::rig::*;
use crabtalk_domain::storage::{NewConversation, Record, RunRecord, Storage};
use crabtalk_domain::tool::{
    CommandAccess, Invocation, ShellCommand, Subject, ToolOutput, ToolProvider, ToolSpec,
};
use crabtalk_domain::{
    AgentEvent, BoxFuture, ConversationKey, Message, Mode, Origin, Permission, Principal,
};
use crabtalk_gate::Disk;
use crabtalk_runtime::{Parts, RunRequest};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A `bash` that notes with which access it runs.
#[derive(Default)]
struct Shell {
    ran: Mutex<Vec<String>>,
    /// Lets the commands named `wait` end.
    release: Notify,
    began: Notify,
}

impl Shell {
    fn ran(&self) -> Vec<String> {
        self.ran.lock().expect("not poisoned").clone()
    }

    fn note(&self, text: String) {
        self.ran.lock().expect("not poisoned").push(text);
        self.began.notify_one();
    }
}

impl ToolProvider for Shell {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![Arc::new(ToolSpec {
            name: "bash".into(),
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
            default_permission: Permission::Ask,
        })]
    }

    fn subject<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        let text = |name: &str| call.arguments[name].as_str().map(str::to_owned);
        let command = ShellCommand {
            text: text("command").unwrap_or_default(),
            access: CommandAccess {
                outside: call.arguments["escalate"].as_bool().unwrap_or_default(),
                hosts: text("host").into_iter().collect(),
                ..CommandAccess::default()
            },
        };
        Box::pin(std::future::ready(Ok(Subject::Command(command))))
    }

    fn call<'a>(&'a self, _: &'a Invocation, subject: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Subject::Command(command) = subject else {
                return ToolOutput::error("not a command");
            };
            let access = &command.access;
            let place = match (access.outside, access.read_only) {
                (true, _) => "outside",
                (false, true) => "read-only",
                (false, false) => "inside",
            };
            self.note(format!(
                "{} {place} {}",
                command.text,
                access.hosts.join(",")
            ));
            if command.text == "wait" {
                self.release.notified().await;
                self.note("waited".into());
            }
            ToolOutput::ok("done")
        })
    }
}

/// A disk on which every folder is a work tree inside a complete sandbox.
struct Contained;

impl Disk for Contained {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn is_contained<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(true))
    }
}

fn rig_with_shell(model: ScriptedModel, mode: Option<Mode>) -> (Rig, Arc<Shell>) {
    let shell = Arc::new(Shell::default());
    let of_rig = Arc::clone(&shell) as Arc<dyn ToolProvider>;
    let catalog = with_crab(|crab| crab.mode = mode);
    let rig = rig_from(model, MemoryStore::default(), catalog, |parts| Parts {
        tools: vec![of_rig],
        disk: Arc::new(Contained),
        ..parts
    });
    (rig, shell)
}

fn calls(commands: &[serde_json::Value]) -> ScriptedModel {
    let calls: Vec<_> = commands.iter().map(|c| ("bash", c.clone())).collect();
    ScriptedModel::new(vec![Reply::tools(calls), Reply::text("done")])
}

#[tokio::test]
async fn only_local_owners_raise_the_mode() {
    let token = Origin::Client {
        principal: Principal::Admin(match laptop() {
            Principal::Token(name) | Principal::Admin(name) => name,
            Principal::Owner => unreachable!("a token"),
        }),
    };
    let (local, ask, auto, full) = (Origin::local(), Mode::Ask, Mode::Auto, Mode::Full);
    let owner = key();
    let stranger = ConversationKey::new("crab", "tg:1").expect("valid");
    for (of_agent, key, origin, may_raise, wanted, want) in [
        (None, &owner, &local, true, None, auto),
        (Some(ask), &owner, &local, true, None, ask),
        (Some(ask), &owner, &local, true, Some(auto), auto),
        (Some(ask), &owner, &local, true, Some(full), full),
        (
            None,
            &owner,
            &local,
            true,
            Some(Mode::ReadOnly),
            Mode::ReadOnly,
        ),
        (None, &owner, &token, false, Some(full), auto),
        (None, &owner, &token, false, Some(ask), ask),
        (Some(full), &owner, &token, false, None, full),
        (None, &stranger, &local, true, Some(full), ask),
        (Some(full), &stranger, &local, true, Some(full), auto),
    ] {
        let (rig, _) = rig_with_shell(ScriptedModel::new(vec![Reply::text("hi")]), of_agent);
        let request = RunRequest {
            mode: wanted,
            may_raise_mode: may_raise,
            origin: origin.clone(),
            ..RunRequest::new(key.clone(), "hi")
        };
        let mut run = rig.try_submit(request).expect("accepted");
        let first = run.next().await.expect("not refused").expect("a start");
        let AgentEvent::Start { mode, .. } = first.event else {
            panic!("the first event is the start");
        };
        assert_eq!(mode, Some(want), "{of_agent:?} {key} {origin} {wanted:?}");
    }
}

#[tokio::test]
async fn resumed_runs_keep_the_mode_or_lower_it() {
    for (cut, want) in [
        (Some(Mode::ReadOnly), "ls read-only "),
        (Some(Mode::Full), "ls inside "),
        (None, "ls inside "),
    ] {
        let (rig, shell) = rig_with_shell(calls(&[json!({"command": "ls"})]), None);
        let opened = rig
            .store
            .open(&key(), Some(NewConversation::default()))
            .await;
        let mut log = opened.expect("opens").expect("it was created").log;
        let start = RunRecord {
            id: 1,
            origin: "client:local".into(),
            mode: cut,
            ..RunRecord::default()
        };
        let said = Arc::new(Message::user("go"));
        log.append(&[Record::Run(start), Record::Message(said)])
            .await
            .expect("appends");
        drop(log);
        rig.runtime.set_catalog(resuming());
        rig.runtime.resume(&key()).expect("there");
        rig.runtime.last_end(&key()).await.expect("it is over");
        assert_eq!(shell.ran(), [want], "{cut:?}");
    }
}

#[tokio::test]
async fn auto_runs_commands_inside_and_asks_to_leave() {
    let model = calls(&[
        json!({"command": "ls"}),
        json!({"command": "push", "escalate": true}),
    ]);
    let (rig, shell) = rig_with_shell(model, None);
    let mut run = rig.submit("go");
    read_until(&mut run, "ask Allow crab to run bash: push").await;
    assert_eq!(shell.ran(), ["ls inside "]);
    rig.reply("y").await;
    read(run).await;
    assert_eq!(shell.ran(), ["ls inside ", "push outside "]);
}

#[tokio::test]
async fn outside_commands_wait_for_sandboxed_ones() {
    let model = calls(&[
        json!({"command": "wait"}),
        json!({"command": "push", "escalate": true}),
    ]);
    let (rig, shell) = rig_with_shell(model, None);
    let mut run = rig.submit("go");
    shell.began.notified().await;
    assert!(rig.runtime.asks(None, None).is_empty());
    shell.release.notify_one();
    read_until(&mut run, "ask ").await;
    assert_eq!(shell.ran(), ["wait inside ", "waited"]);
    rig.reply("n").await;
    read(run).await;
}

#[tokio::test]
async fn hosts_are_granted_for_the_conversation() {
    let fetch = json!({"command": "fetch", "host": "crates.io"});
    let model = ScriptedModel::new(vec![
        Reply::tool("bash", fetch.clone()),
        Reply::tool("bash", fetch),
        Reply::text("done"),
    ]);
    let (rig, shell) = rig_with_shell(model, None);
    let mut run = rig.submit("go");
    read_until(&mut run, "ask ").await;
    let asks = rig.runtime.asks(None, None);
    assert!(asks[0].ask.always.is_none() && asks[0].ask.reason.contains("crates.io"));
    let always = rig.runtime.reply(&key(), None, "Allow always").await;
    assert_eq!(always.expect_err("not offered").code(), 400);
    let answer = "Allow for this conversation";
    rig.reply(answer).await;
    read(run).await;
    assert_eq!(shell.ran().len(), 2);
    assert!(shell.ran().iter().all(|ran| ran.contains("crates.io")));
}

#[tokio::test]
async fn delegates_have_at_most_the_mode_above() {
    let model = ScriptedModel::answering(|request| {
        match request.messages().last().map(|m| m.content.as_str()) {
            Some("go") => {
                let task = json!({"tasks": [{"agent": "ada", "task": "leaf"}]});
                Reply::tool("delegate", task)
            }
            Some("leaf") => Reply::tool("bash", json!({"command": "ls"})),
            Some(last) => Reply::text(last),
            None => Reply::text(""),
        }
    });
    let (rig, shell) = rig_with_shell(model, Some(Mode::ReadOnly));
    let mut catalog = (*rig.runtime.catalog()).clone();
    let mut crab = agent("crab");
    crab.mode = Some(Mode::ReadOnly);
    crab.scope.members = vec!["ada".into()];
    crab.scope.tools = vec!["*".into()];
    let mut ada = agent("ada");
    ada.mode = Some(Mode::Full);
    for agent in [crab, ada] {
        catalog.agents.insert(agent.name.clone(), Arc::new(agent));
    }
    rig.runtime.set_catalog(catalog);
    rig.run("go").await;
    assert_eq!(shell.ran(), ["ls read-only "]);
}
