//! Routing of asks, permitted answers, and asks without an answer (RUN-7,
//! GATE-4).

use crate::rig::*;
use crabtalk_domain::{AgentEvent, ConversationKey, Origin, Role};
use crabtalk_runtime::{ApprovalBook, HubSubscription, RunRequest};
use crabtalk_testkit::{Reply, ScriptedModel};
use futures_util::FutureExt;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn stranger() -> ConversationKey {
    ConversationKey::new("crab", "tg:1").expect("valid")
}

fn danger() -> Vec<Reply> {
    vec![Reply::tool("danger", json!({})), Reply::text("ok")]
}

/// The next ask that watchers of the daemon are told of: whose, and its id.
async fn asked(watch: &mut HubSubscription) -> (ConversationKey, String) {
    loop {
        let event = watch.next().await.expect("open").expect("not slow");
        if let AgentEvent::AskUser(ask) = &event.event {
            let key = event.key.as_deref().expect("of a conversation");
            return (key.clone(), ask.id.clone());
        }
    }
}

#[tokio::test]
async fn strangers_approvals_go_to_the_inbox() {
    let rig = rig(danger());
    let mut watch = rig.runtime.watch();
    let run = rig
        .try_submit(RunRequest::new(stranger(), "go"))
        .expect("accepted");
    let (whose, id) = asked(&mut watch).await;
    assert_eq!(whose, stranger());
    let listed = rig.runtime.asks(None, Some("tg:1"));
    assert_eq!(listed.len(), 1);
    assert!(listed[0].inbox);
    for reply in ["1", "yes", "Allow always"] {
        let error = rig.runtime.reply(&stranger(), None, reply).await;
        assert_eq!(error.expect_err("not theirs").code(), 404);
    }
    rig.runtime
        .reply(&key(), Some(&id), "Allow once")
        .await
        .expect("by id");
    let events = read(run).await;
    assert!(!events.iter().any(|e| e.starts_with("ask")), "{events:?}");
    // They know that it waits, and for whom.
    assert!(
        events.contains(&"waiting for an owner".to_owned()),
        "{events:?}"
    );
    assert!(events.contains(&"result done".to_owned()));
}

#[tokio::test]
async fn duration_of_a_call_excludes_the_approval() {
    let rig = rig(danger());
    let mut watch = rig.runtime.watch();
    let mut run = rig.submit("go");
    let (_, id) = asked(&mut watch).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(600)).await;
    let reply = rig.runtime.reply(&key(), Some(&id), "Allow once").await;
    reply.expect("pending");
    let took = loop {
        let next = run.next().await.expect("not refused").expect("not over");
        if let AgentEvent::ToolResult { duration_ms, .. } = next.event {
            break duration_ms;
        }
    };
    assert!(took < 600_000, "{took} ms");
}

#[tokio::test]
async fn answers_without_id_need_a_shown_ask() {
    let rig = rig(danger());
    let mut watch = rig.runtime.watch();
    let mut run = rig.submit("go");
    let (_, id) = asked(&mut watch).await;
    // No reader has shown the ask yet.
    let early = rig.runtime.reply(&key(), None, "yes").await;
    assert_eq!(early.expect_err("not shown").code(), 404);
    // A reader of the end only does not show it either.
    let log = rig.runtime.attach(&key()).expect("in flight");
    let mut blind = std::pin::pin!(log.subscribe(0).answer());
    assert!(blind.as_mut().now_or_never().is_none(), "it waits");
    let early = rig.runtime.reply(&key(), None, "yes").await;
    assert_eq!(early.expect_err("not shown").code(), 404);
    assert_eq!(rig.runtime.asks(None, None)[0].ask.id, id);
    read_until(&mut run, "ask").await;
    let reply = rig.runtime.reply(&key(), None, "yes").await;
    reply.expect("shown by now");
    let events = read(run).await;
    assert!(events.contains(&"result done".to_owned()), "{events:?}");
}

#[tokio::test]
async fn failed_storage_of_an_approval_allows_nothing() {
    let rig = rig(danger());
    rig.approvals.is_full.store(true, Ordering::SeqCst);
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    let refused = rig.runtime.reply(&key(), None, "Allow always").await;
    let error = refused.expect_err("not kept");
    assert_eq!(error.code(), 500);
    assert!(error.to_string().contains("no room on the disk"), "{error}");
    assert!(rig.tools.called().is_empty());
    // The question stays, for an answer that can be kept.
    let once = rig.runtime.reply(&key(), None, "Allow once").await;
    once.expect("still pending");
    let events = read(run).await;
    assert!(events.contains(&"result done".to_owned()), "{events:?}");
    assert!(rig.approvals.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn inbox_asks_are_denied_after_the_timeout() {
    let rig = rig(danger());
    let started = tokio::time::Instant::now();
    let run = rig
        .try_submit(RunRequest::new(stranger(), "go"))
        .expect("accepted");
    let events = read(run).await;
    assert!(
        events.contains(&"result! denied: the approval was not answered in time".to_owned()),
        "{events:?}"
    );
    assert_eq!(started.elapsed().as_secs(), 86_400);
    assert!(rig.runtime.asks(None, None).is_empty());
    assert!(rig.tools.called().is_empty());
}

#[tokio::test(start_paused = true)]
async fn owners_asks_have_no_timeout() {
    let rig = rig(danger());
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    drop(run);
    tokio::time::sleep(Duration::from_secs(30 * 86_400)).await;
    assert_eq!(rig.runtime.asks(None, None).len(), 1);
    let log = rig.runtime.attach(&key()).expect("in flight");
    rig.reply("yes").await;
    let events = read(log.subscribe(0)).await;
    assert!(events.contains(&"result done".to_owned()), "{events:?}");
}

#[tokio::test]
async fn strangers_see_their_own_questions() {
    let question = json!({"questions": [{"question": "Colour?"}]});
    let rig = rig(vec![Reply::tool("ask_user", question), Reply::text("ok")]);
    let mut run = rig
        .try_submit(RunRequest::new(stranger(), "go"))
        .expect("accepted");
    read_until(&mut run, "ask Colour?").await;
    rig.runtime
        .reply(&stranger(), None, "blue")
        .await
        .expect("shown");
    let events = read(run).await;
    assert_eq!(events[1], r#"result {"Colour?":"blue"}"#, "{events:?}");
}

#[tokio::test]
async fn answers_without_id_reach_the_oldest_ask() {
    let rig = rig(vec![
        Reply::tools([("danger", json!({"n": 1})), ("danger", json!({"n": 2}))]),
        Reply::text("ok"),
    ]);
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    read_until(&mut run, "ask").await;
    let details: Vec<String> = rig
        .runtime
        .asks(None, None)
        .iter()
        .map(|pending| pending.ask.detail.clone())
        .collect();
    let second = rig.runtime.asks(None, None)[1].ask.id.clone();
    assert_eq!(details.len(), 2);
    rig.reply("Deny: first").await;
    let left = rig.runtime.asks(None, None);
    assert_eq!((left.len(), left[0].ask.id.as_str()), (1, second.as_str()));
    rig.runtime
        .reply(&key(), Some(&second), "1")
        .await
        .expect("second");
    let events = read(run).await;
    assert!(events.contains(&"result! denied by the user: first".to_owned()));
    assert!(events.contains(&"result done".to_owned()));
}

#[tokio::test]
async fn allow_always_stores_the_call_and_who_gave_it() {
    let rig = rig([danger(), danger(), danger()].concat());
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    rig.runtime
        .reply_from(&key(), None, "Allow always", &laptop())
        .await
        .expect("pending");
    read(run).await;
    let kept = rig.approvals.list();
    let approval = &kept[0];
    assert_eq!(
        (
            approval.agent.as_str(),
            approval.sender.as_str(),
            approval.tool.as_str(),
            approval.exact.as_str(),
            approval.cwd.as_str(),
            approval.by.as_str(),
        ),
        ("crab", "user", "danger", "{}", "/", "token/laptop")
    );
    assert_eq!(approval.at, "2026-01-02T03:04:05.000Z");
    // The same call asks no more, another sender's still does.
    let events = rig.run("again").await;
    assert!(!events.iter().any(|e| e.starts_with("ask")), "{events:?}");
    let mut request = RunRequest::new(key(), "by the clock");
    request.origin = Origin::Cron {
        id: 1,
        by: String::new(),
    };
    let events = rig.send(request).await;
    assert!(
        events.iter().any(|e| e.starts_with("result! denied")),
        "{events:?}"
    );
}

#[tokio::test]
async fn topics_share_the_approvals_of_their_folder() {
    let rig = rig([danger(), danger(), danger()].concat());
    let of = |sender| ConversationKey::new("crab", sender).expect("valid");
    let roof = of("user/house/roof");
    let request = RunRequest::new(roof.clone(), "go");
    let mut run = rig.try_submit(request).expect("accepted");
    read_until(&mut run, "ask").await;
    let reply = rig.runtime.reply(&roof, None, "Allow always").await;
    reply.expect("pending");
    read(run).await;
    assert_eq!(rig.approvals.list()[0].sender, "user/house");
    for (sender, asks) in [("user/house", false), ("user/garden", true)] {
        let request = RunRequest::new(of(sender), "go");
        let mut run = rig.try_submit(request).expect("accepted");
        let events = match asks {
            true => read_until(&mut run, "ask").await,
            false => read(run).await,
        };
        let asked = events.iter().any(|e| e.starts_with("ask"));
        assert_eq!(asked, asks, "{sender}: {events:?}");
    }
}

#[tokio::test]
async fn oversized_results_are_truncated_with_a_note() {
    let text = "é".repeat(600 * 1024);
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": text})),
        Reply::text("ok"),
    ]);
    let events = rig.run("go").await;
    let result = events
        .iter()
        .find(|e| e.starts_with("result"))
        .expect("a result");
    assert!(result.len() < 1024 * 1024 + 100);
    assert!(
        result.ends_with("\n[cut: 180224 more bytes; request less at a time]"),
        "{}",
        &result[result.len() - 80..]
    );
}

#[tokio::test]
async fn out_of_scope_tools_are_hidden_and_refused_after_reload() {
    let rig = rig(vec![
        Reply::tools([("danger", json!({})), ("echo", json!({"text": "x"}))]),
        Reply::text("ok"),
    ]);
    let mut narrow = catalog();
    let mut crab = agent("crab");
    crab.scope.tools = vec!["ask_user".into()];
    narrow
        .agents
        .insert(crab.name.clone(), std::sync::Arc::new(crab));
    rig.runtime.set_catalog(narrow);
    let events = rig.run("go").await;
    for tool in ["danger", "echo"] {
        let refusal =
            format!("result! {tool:?} is outside the scope of crab; in scope are: ask_user");
        assert!(events.contains(&refusal), "{events:?}");
    }
    assert_eq!(rig.runtime.violations(), 2);
    assert!(rig.tools.called().is_empty());
    let offered: Vec<_> = rig.model.requests()[0]
        .tools
        .iter()
        .map(|t| t.name.clone())
        .collect();
    assert_eq!(offered, ["ask_user"]);
}

/// The results that a model reads after a crash and a restart.
async fn results_after_a_restart(rig: &Rig) -> Vec<String> {
    let replies = vec![Reply::text("hi")];
    let next = rig_on(
        ScriptedModel::new(replies),
        rig.store.power_cut(),
        catalog(),
    );
    next.run("back").await;
    next.model_was_content();
    let requests = next.model.requests();
    let results = requests[0].messages().filter(|m| m.role == Role::Tool);
    results
        .map(|m| m.content.split(':').next().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn restart_reports_the_fate_of_waiting_calls() {
    let rig = rig(vec![Reply::tools([
        ("danger", json!({})),
        ("wait", json!({})),
        ("ask_user", json!({"question": "Colour?"})),
        ("danger", json!({"n": 2})),
    ])]);
    let mut run = rig.submit("go");
    for _ in 0..3 {
        read_until(&mut run, "ask").await;
    }
    rig.tools.until_waiting(1).await;
    assert_eq!(
        results_after_a_restart(&rig).await,
        ["not executed", "unknown", "not answered", "not executed"]
    );
    // One that was allowed may have begun by now. Calls are judged at once, so
    // which of them asks first is not settled: it is named.
    let asks = rig.runtime.asks(None, None);
    let first = asks
        .iter()
        .find(|p| p.ask.tool == "danger" && !p.ask.detail.contains('2'));
    let first = first.expect("pending").ask.id.clone();
    rig.runtime
        .reply(&key(), Some(&first), "yes")
        .await
        .expect("pending");
    read_until(&mut run, "result done").await;
    assert_eq!(
        results_after_a_restart(&rig).await,
        ["done", "unknown", "not answered", "not executed"]
    );
}

#[tokio::test]
async fn allowed_calls_begin_after_the_sync() {
    let rig = rig(danger());
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    rig.store.hold_syncs(true);
    rig.reply("yes").await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(rig.tools.called().is_empty());
}
