//! Members at work for a run (RUN-9).

use crate::rig::*;
use crabtalk_domain::{AgentEvent, ConversationKey, Origin, Permission, Role};
use crabtalk_runtime::{Catalog, RunRequest};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::{Value, json};
use std::sync::Arc;

/// `crab` may send `ada` and `bob`, `ada` may send `bob`; the tool `danger`
/// asks.
fn team() -> Catalog {
    let mut catalog = catalog();
    for (name, members) in [
        ("crab", &["ada", "bob"][..]),
        ("ada", &["bob"]),
        ("bob", &[]),
    ] {
        let mut member = agent(name);
        member.description = format!("{name} works");
        member.scope.members = members.iter().map(|m| (*m).to_owned()).collect();
        // With members alone the tools of these tests would be out of scope.
        member.scope.tools = vec!["*".into()];
        catalog.agents.insert(member.name.clone(), Arc::new(member));
    }
    catalog
}

fn member(agent: &str, number: u64) -> ConversationKey {
    ConversationKey::new(agent, &format!("delegate:{number}")).expect("valid")
}

fn send(tasks: &[(&str, &str)]) -> Reply {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(agent, task)| json!({"agent": agent, "task": task}))
        .collect();
    Reply::tool("delegate", json!({"tasks": tasks}))
}

/// The request by its last message: members differ by their tasks.
fn team_rig(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Rig {
    let model = ScriptedModel::answering(move |request| {
        let last = request.messages().last().map(|m| match m.role {
            Role::Tool => format!("result {}", m.content),
            Role::User | Role::Assistant => m.content.clone(),
        });
        answer(&last.unwrap_or_default())
    });
    rig_on(model, MemoryStore::default(), team())
}

fn result(events: &[String]) -> Value {
    let line = events.iter().find(|e| e.starts_with("result"));
    let line = line.expect("a result");
    let json = line.split_once(' ').expect("a text").1;
    serde_json::from_str(json).expect("JSON")
}

#[tokio::test]
async fn members_work_concurrently_in_own_conversations() {
    let rig = team_rig(|last| match last {
        "go" => send(&[("ada", "one"), ("bob", "two")]),
        "one" | "two" => Reply::hang(),
        _ => Reply::text("both are done"),
    });
    let run = rig.submit("go");
    // Both hang at once, so neither waits for the other.
    rig.model.until(|p| p.hung == 2).await;
    rig.model.release();
    rig.model.release();
    let events = read(run).await;
    assert_eq!(
        result(&events),
        json!([
            {"agent": "ada", "sender": "delegate:1", "answer": "released"},
            {"agent": "bob", "sender": "delegate:2", "answer": "released"},
        ])
    );
    let mut lines = rig.store.lines(&member("ada", 1));
    lines.retain(|line| line != "meta");
    assert_eq!(
        lines,
        [
            "run 1 start",
            "user: one",
            "assistant: released",
            "run 1 end 0"
        ]
    );
    rig.model_was_content();
}

#[tokio::test]
async fn only_agents_with_members_have_delegate() {
    let rig = team_rig(|_| Reply::text("hi"));
    rig.run("hi").await;
    let bob = ConversationKey::new("bob", "user").expect("valid");
    let request = RunRequest::new(bob, "hi");
    rig.send(request).await;
    let requests = rig.model.requests();
    let delegate = |n: usize| requests[n].tools.iter().find(|t| t.name == "delegate");
    let described = &delegate(0).expect("crab has members").description;
    assert!(
        described.ends_with("Members:\n- ada: ada works\n- bob: bob works"),
        "{described}"
    );
    assert!(delegate(1).is_none());
    assert!(
        requests[0]
            .system
            .ends_with("<scope>\ntools: *\nmembers: ada, bob\n</scope>"),
        "{}",
        requests[0].system
    );
}

#[tokio::test]
async fn failures_are_results_of_their_members() {
    let rig = team_rig(|last| match last {
        "go" => send(&[
            ("ada", "fail"),
            ("bob", "work"),
            ("eve", "x"),
            ("crab", "y"),
        ]),
        "fail" => Reply::cut("half"),
        "work" => Reply::text("worked"),
        _ => Reply::text("ok"),
    });
    let events = rig.run("go").await;
    let results = result(&events);
    let error = |n: usize| results[n]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error(0).contains("ended early"), "{results}");
    assert_eq!(results[1]["answer"], "worked");
    for (n, name) in [(2, "eve"), (3, "crab")] {
        assert!(
            error(n).starts_with(&format!(
                "the member {name:?} is not in the scope of agent crab"
            )),
            "{results}"
        );
    }
    assert_eq!(rig.runtime.violations(), 2);
    assert_eq!(last(&events), "end 0");
}

#[tokio::test]
async fn all_failures_are_an_error_and_unknown_members_are_named() {
    let mut catalog = team();
    let mut crab = agent("crab");
    crab.scope.members = vec!["*".into()];
    catalog.agents.insert(crab.name.clone(), Arc::new(crab));
    let replies = vec![send(&[("nobody", "x")]), Reply::text("ok")];
    let rig = rig_on(ScriptedModel::new(replies), MemoryStore::default(), catalog);
    let events = rig.run("go").await;
    let line = events.iter().find(|e| e.starts_with("result!"));
    assert!(
        line.is_some_and(|l| l.contains("there is no agent \\\"nobody\\\"")),
        "{events:?}"
    );
}

#[tokio::test]
async fn kill_of_the_root_ends_all_members() {
    let rig = team_rig(|last| match last {
        "go" => send(&[("ada", "mid"), ("ada", "mid"), ("ada", "mid")]),
        "mid" => send(&[("bob", "leaf"), ("bob", "leaf"), ("bob", "leaf")]),
        "leaf" => Reply::tool("wait", json!({})),
        _ => Reply::text("never"),
    });
    let run = rig.submit("go");
    rig.tools.until_waiting(9).await;
    let attached = rig
        .runtime
        .live_all()
        .into_iter()
        .filter(|live| live.running);
    let keys: Vec<ConversationKey> = attached.map(|live| live.key).collect();
    assert_eq!(keys.len(), 1 + 3 + 9);
    let logs: Vec<_> = keys
        .iter()
        .filter_map(|key| rig.runtime.attach(key))
        .collect();
    rig.runtime.kill(&key()).expect("in flight");
    assert_eq!(last(&read(run).await), "end 499 cancelled");
    rig.tools.until_waiting(0).await;
    for log in logs {
        let events = read(log.subscribe_to_end()).await;
        assert_eq!(last(&events), "end 499 cancelled");
    }
    assert_eq!(rig.runtime.load().1, 0);
}

#[tokio::test]
async fn killed_members_fail_only_their_call() {
    let rig = team_rig(|last| match last {
        "go" => send(&[("ada", "one"), ("bob", "two")]),
        "one" => Reply::hang(),
        "two" => Reply::text("fine"),
        _ => Reply::text("ok"),
    });
    let run = rig.submit("go");
    rig.model.until(|p| p.hung == 1).await;
    rig.runtime.kill(&member("ada", 1)).expect("in flight");
    let events = read(run).await;
    assert_eq!(
        result(&events),
        json!([
            {"agent": "ada", "sender": "delegate:1", "error": "cancelled"},
            {"agent": "bob", "sender": "delegate:2", "answer": "fine"},
        ])
    );
}

#[tokio::test]
async fn delegation_depth_is_bounded() {
    let mut catalog = team();
    catalog.limits.delegate_depth = 1;
    let model = ScriptedModel::answering(|request| {
        match request.messages().last().map(|m| m.content.as_str()) {
            Some("go") => send(&[("ada", "deeper")]),
            Some("deeper") => send(&[("bob", "too deep")]),
            Some(last) => Reply::text(last),
            None => Reply::text(""),
        }
    });
    let rig = rig_on(model, MemoryStore::default(), catalog);
    let events = rig.run("go").await;
    let answer = result(&events)[0]["answer"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        answer
            .starts_with("this run is 1 delegations deep, the limit (limits.delegate_depth) is 1"),
        "{answer}"
    );
}

#[tokio::test]
async fn members_asks_appear_at_the_root() {
    let rig = team_rig(|last| match last {
        "go" => send(&[("ada", "middle")]),
        "middle" => send(&[("bob", "leaf")]),
        "leaf" => Reply::tool("danger", json!({})),
        "result done" => Reply::tool(
            "ask_user",
            json!({"questions": [{"question": "Colour?", "options": [{"label": "Red"}]}]}),
        ),
        _ => Reply::text("ok"),
    });
    let mut run = rig.submit("go");
    read_until(&mut run, "ask Allow bob to run danger").await;
    let pending = rig.runtime.asks(Some("crab"), Some("user"));
    assert_eq!(pending.len(), 1);
    assert!(rig.runtime.asks(Some("bob"), None).is_empty());
    // Without an id: it was shown in this conversation's stream.
    rig.reply("yes").await;
    read_until(&mut run, "ask Colour?").await;
    rig.reply("red").await;
    assert_eq!(last(&read(run).await), "end 0");
    let bob = rig.store.lines(&member("bob", 2));
    assert!(bob.contains(&"tool: done".to_owned()), "{bob:?}");
    assert!(
        bob.contains(&r#"tool: {"Colour?":"Red"}"#.to_owned()),
        "{bob:?}"
    );
}

#[tokio::test]
async fn members_have_the_authority_of_the_root() {
    let model = || {
        ScriptedModel::answering(|request| {
            match request.messages().last().map(|m| m.content.as_str()) {
                Some("go") => send(&[("bob", "leaf")]),
                Some("leaf") => Reply::tool("danger", json!({})),
                Some(last) => Reply::text(last),
                None => Reply::text(""),
            }
        })
    };
    // No person can be asked for a cron entry's member.
    let rig = rig_on(model(), MemoryStore::default(), team());
    let mut request = RunRequest::new(ConversationKey::new("crab", "cron").expect("valid"), "go");
    request.origin = Origin::Cron {
        id: 1,
        by: String::new(),
    };
    let events = rig.send(request).await;
    assert!(
        result(&events)[0]["answer"].to_string().contains("denied"),
        "{events:?}"
    );
    assert!(rig.runtime.asks(None, None).is_empty());

    // A stranger's member asks the owner, not the stranger.
    let rig = rig_on(model(), MemoryStore::default(), team());
    let stranger = ConversationKey::new("crab", "tg:1").expect("valid");
    let mut watch = rig.runtime.watch();
    let run = rig
        .try_submit(RunRequest::new(stranger.clone(), "go"))
        .expect("accepted");
    let asked = loop {
        let event = watch.next().await.expect("open").expect("not slow");
        if let crabtalk_domain::AgentEvent::AskUser(ask) = &event.event {
            assert_eq!(event.key.as_deref(), Some(&stranger));
            break Arc::clone(ask);
        }
    };
    let error = rig
        .runtime
        .reply(&stranger, None, "yes")
        .await
        .expect_err("not his");
    assert_eq!(error.code(), 404);
    rig.runtime
        .reply(&stranger, Some(&asked.id), "Deny: no")
        .await
        .expect("by id");
    let events = read(run).await;
    assert!(!events.iter().any(|e| e.starts_with("ask")), "{events:?}");
    assert!(
        result(&events)[0]["answer"]
            .to_string()
            .contains("denied by the user: no")
    );
}

#[tokio::test]
async fn members_get_no_folder_beyond_the_parents() {
    let cases = [
        ("/w", "sub", None, Some("/w/sub")),
        ("/w", ".", None, Some("/w")),
        ("/w", "/w/sub", None, Some("/w/sub")),
        ("/w", "..", Some("is not below"), None),
        ("/w", "/etc", Some("is not below"), None),
        ("/w", "~/.ssh", Some("is not below"), None),
        ("/w", "link", Some("is not below"), None),
        // The run's folder has been replaced by a link.
        ("/moved", ".", Some("is not below"), None),
    ];
    for (folder, cwd, error, works_in) in cases {
        let tasks = json!({"tasks": [{"agent": "bob", "task": "leaf", "cwd": cwd}]});
        let model = ScriptedModel::new(vec![
            Reply::tool("delegate", tasks),
            Reply::text("leaf done"),
            Reply::text("done"),
        ]);
        let rig = rig_resolving(model, MemoryStore::default(), team(), |path| {
            match path.to_str()? {
                "/w" | "/w/." => Some("/w".into()),
                "/w/sub" => Some("/w/sub".into()),
                "/w/.." => Some("/".into()),
                "/w/link" => Some("/etc".into()),
                "/etc" | "/moved" | "/moved/." => Some("/etc".into()),
                _ => None,
            }
        });
        let mut request = RunRequest::new(key(), "go");
        request.cwd = Some(folder.into());
        let events = rig.send(request).await;
        let result = result(&events);
        match error {
            Some(error) => assert!(
                result[0]["error"].to_string().contains(error),
                "{cwd}: {result}"
            ),
            None => assert_eq!(result[0]["answer"], "leaf done", "{cwd}"),
        }
        let live = rig
            .runtime
            .live(&member("bob", 1))
            .map(|live| live.meta.cwd);
        assert_eq!(live.as_deref(), works_in, "{cwd}");
    }
}

#[tokio::test]
async fn members_can_be_steered() {
    let rig = team_rig(|last| match last {
        "go" => send(&[("bob", "leaf")]),
        "leaf" => Reply::tool("wait", json!({})),
        last => Reply::text(format!("heard {last}")),
    });
    let mut run = rig.submit("go");
    rig.tools.until_waiting(1).await;
    rig.runtime
        .steer(&member("bob", 1), "left".into())
        .await
        .expect("running");
    rig.steer("right").await;
    rig.tools.release.notify_waiters();
    let events = read_until(&mut run, "steered right").await;
    assert_eq!(result(&events)[0]["answer"], "heard left");
    assert_eq!(last(&read(run).await), "end 0");
}

#[tokio::test]
async fn rules_apply_to_delegate() {
    let mut catalog = team();
    let mut crab = (**catalog.agent("crab").expect("there")).clone();
    crab.permissions = vec![rule("delegate", Permission::Deny)];
    catalog.agents.insert(crab.name.clone(), Arc::new(crab));
    let replies = vec![send(&[("ada", "x")]), Reply::text("ok")];
    let rig = rig_on(ScriptedModel::new(replies), MemoryStore::default(), catalog);
    let events = rig.run("go").await;
    assert!(
        events.iter().any(|e| e.starts_with("result! denied")),
        "{events:?}"
    );
    assert!(rig.store.lines(&member("ada", 1)).is_empty());
}

#[tokio::test]
async fn member_events_name_the_root_run_and_its_tokens() {
    let rig = team_rig(|last| match last {
        "go" => send(&[("ada", "pass it on")]),
        "pass it on" => send(&[("bob", "ask")]),
        "ask" => Reply::tool("ask_user", json!({"question": "Colour?"})),
        _ => Reply::text("done"),
    });
    let mut watch = rig.runtime.watch();
    let mut run = rig.submit("go");
    read_until(&mut run, "ask Colour?").await;
    rig.reply("red").await;
    read(run).await;
    let (mut asked, mut spent) = (0, Vec::new());
    loop {
        let event = watch
            .next()
            .await
            .expect("open")
            .expect("nothing is missed");
        let own = event.key.as_deref() == Some(&key());
        let root = event.root.as_ref().map(|(key, run)| (&**key, *run));
        assert_eq!(root, (!own).then_some((&key(), 1)), "{event:?}");
        if let AgentEvent::AskUser(ask) = &event.event {
            assert!(own, "asks appear in the stream of the root run");
            assert_eq!(ask.delegate, "delegate:2");
            asked += 1;
        }
        if let AgentEvent::End(_) = &event.event {
            spent.push(event.tokens);
            if own {
                break;
            }
        }
    }
    assert_eq!(asked, 1);
    assert!(spent.len() == 3 && !spent.contains(&0), "{spent:?}");
}
