//! The example of the README: `git diff | crabtalk ask "fix the failing test"` in a real
//! repository, with a person's approval.

use crate::rig::{
    ModelServer, TestEnv, entries, eventually, has_tools, kinds, stream_to_end, within,
};
use crabtalk_proto::{Client, HistoryEntry, ListAsksMsg, ReplyToAsk, StreamMsg, ToolCallInfo};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use serde_json::json;

const BROKEN: &str = "#!/bin/sh\necho \"Helo, $1!\"\n";

const TEST: &str = "#!/bin/sh\n\
    got=$(./greet.sh World)\n\
    [ \"$got\" = 'Hello, World!' ] || { echo \"FAILED: got '$got'\"; exit 1; }\n\
    echo passed\n";

/// A repository whose working tree broke its test.
async fn repository(env: &TestEnv) {
    env.script("greet.sh", &BROKEN.replace("Helo", "Hello"));
    env.script("test.sh", TEST);
    env.shell(
        "git init -q && git config user.name t && git config user.email t@example.org \
         && git add . && git commit -qm 'A greeting and its test'",
    )
    .await
    .ok();
    env.script("greet.sh", BROKEN);
    assert!(env.shell("./test.sh").await.stdout.contains("FAILED"));
}

fn fixing() -> Script {
    let edit = json!({"path": "greet.sh", "old_string": "Helo", "new_string": "Hello"});
    Script::openai([
        openai::tools("look", &[("read", json!({"path": "greet.sh"}))]),
        openai::tools("fix", &[("edit", edit)]),
        openai::tools("test", &[("bash", json!({"command": "./test.sh"}))]),
        openai::pieces(&["A letter was ", "missing; ", "the test passes."]),
    ])
}

/// Approves the asks of the conversation from other connections and returns them.
async fn approve(env: &TestEnv, count: usize) -> Vec<String> {
    let mut approved = Vec::new();
    while approved.len() < count {
        let pending = eventually("an approval to be asked for", async || {
            let list = env.connect().await.list_asks(ListAsksMsg::default()).await;
            list.unwrap().asks.pop()
        })
        .await;
        let ask = pending.ask.unwrap();
        assert_eq!(ask.kind, "approval");
        approved.push(format!("{} {}", ask.tool, ask.detail));
        let reply = ReplyToAsk {
            agent: pending.agent,
            sender: pending.sender,
            content: "yes".into(),
            ask_id: Some(ask.ask_id),
        };
        env.connect().await.reply_to_ask(reply).await.unwrap();
    }
    approved
}

/// Role, text and tool calls of an entry.
fn said(entry: &HistoryEntry) -> (String, String, Vec<(String, String)>) {
    let call = |call: &ToolCallInfo| (call.name.clone(), call.arguments.clone());
    let calls = entry.tool_calls.iter().map(call).collect();
    (entry.role.clone(), entry.content.clone(), calls)
}

#[tokio::test]
async fn failing_test_is_fixed_and_history_survives_a_kill() {
    if !has_tools(
        "failing_test_is_fixed_and_history_survives_a_kill",
        &["git"],
    ) {
        return;
    }
    let model = ModelServer::start(fixing()).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "mode: ask");
    repository(&env).await;
    let daemon = env.daemon().await;

    let asking = env.shell("git diff | \"$CRABTALK\" ask 'fix the failing test' --wait");
    let (asked, approved) =
        within("the fix", async { tokio::join!(asking, approve(&env, 2)) }).await;
    assert_eq!(asked.ok(), "A letter was missing; the test passes.\n");
    assert!(approved[0].contains("greet.sh"), "{approved:?}");
    assert!(approved[1].contains("./test.sh"), "{approved:?}");
    assert_eq!(env.shell("./test.sh").await.ok(), "passed\n");

    let requests = model.requests().await;
    assert_eq!(requests.len(), 4);
    let before = entries(&env, "crab", "user/work").await;
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let after = entries(&env, "crab", "user/work").await;
    assert_eq!(after, before);

    let said: Vec<_> = after.iter().map(said).collect();
    let roles: Vec<&str> = said.iter().map(|(role, ..)| role.as_str()).collect();
    let step = ["assistant", "tool"];
    assert_eq!(
        roles,
        [&["user"], &step[..], &step, &step, &["assistant"]].concat()
    );
    let question = &said[0].1;
    assert!(
        question.starts_with("fix the failing test\n\n"),
        "{question}"
    );
    assert!(question.contains("-echo \"Hello, $1!\"\n+echo \"Helo, $1!\""));
    let calls: Vec<&str> = said
        .iter()
        .flat_map(|(_, _, calls)| calls.iter().map(|(name, _)| name.as_str()))
        .collect();
    assert_eq!(calls, ["read", "edit", "bash"]);
    assert!(said[2].1.contains("Helo, $1!"), "{:?}", said[2]);
    assert!(said[6].1.contains("passed"), "{:?}", said[6]);
    assert_eq!(said[7].1, "A letter was missing; the test passes.");
    // The last model request matches the history.
    let told = requests[3]["messages"].as_array().unwrap();
    let told: Vec<&str> = told
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(told, [&said[2].1, &said[4].1, &said[6].1]);
}

#[tokio::test]
async fn kill_during_a_run_keeps_acknowledged_messages() {
    let read = openai::tools("look", &[("read", json!({"path": "notes.txt"}))]);
    let cut = openai::pieces(&["half an ", "answer"]).stall_after(2);
    let model = ModelServer::start(Script::openai([read, cut, openai::text("Here again.")])).await;
    let env = TestEnv::with_model(&model);
    env.script("notes.txt", "milk\n");
    let daemon = env.daemon().await;

    let mut connection = env.connect().await;
    let request = StreamMsg {
        content: "what do I need?".into(),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    };
    let mut events = std::pin::pin!(connection.stream(request.clone()));
    within("half an answer", async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if format!("{event:?}").contains("half an ") {
                return;
            }
        }
    })
    .await;
    daemon.kill().await;

    let _daemon = env.daemon().await;
    let roles = |entries: &[HistoryEntry]| {
        let roles = entries.iter().map(|entry| entry.role.clone());
        roles.collect::<Vec<_>>().join(" ")
    };
    let after = entries(&env, "crab", "user").await;
    assert_eq!(roles(&after), "user assistant tool");
    assert_eq!(after[0].content, "what do I need?");
    assert!(after[2].content.contains("milk"));

    // The server checks that the next request is valid.
    let events = stream_to_end(&env, request).await;
    // A reconnecting client is informed of the interruption (STORE-7).
    assert_eq!(
        kinds(&events),
        "Start Interrupted TextStart Chunk TextEnd End"
    );
    let after = entries(&env, "crab", "user").await;
    assert_eq!(roles(&after), "user assistant tool user assistant");
    assert_eq!(after[4].content, "Here again.");
    assert_eq!(model.requests().await.len(), 3);
}
