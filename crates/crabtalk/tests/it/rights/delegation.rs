//! Members at work in the real daemon.

use super::{call, say, tool};
use crate::rig::{TestEnv, asked, end_of, eventually, gone, stream_to_end, within};
use crabtalk_proto::{
    AttachMsg, Client, KillMsg, ListActiveConversationsMsg, ListConversationsMsg, ReplyToAsk,
    StreamMsg,
};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// `crab` sends `mid`, `mid` sends `leaf`, whose rule for `bash` is this.
fn team(env: &TestEnv, bash: &str) {
    env.agent("crab", "members: [mid]");
    env.agent("mid", "members: [leaf]");
    env.agent("leaf", &format!("permissions: {{ bash: {bash} }}"));
}

fn three(agent: &str, task: &str) -> String {
    let task = json!({"agent": agent, "task": task});
    tool("delegate", &json!({"tasks": [task, task, task]}))
}

#[tokio::test]
async fn kill_at_the_top_ends_all_members() {
    let env = TestEnv::new();
    team(&env, "allow");
    // Outside the sandbox, so that their numbers are the machine's.
    env.agent("crab", "members: [mid]\nmode: full");
    let _daemon = env.daemon().await;
    // `$$` makes the names differ: nine run at once.
    let work = "echo $$ > pid-$$.tmp && mv pid-$$.tmp pid-$$ && sleep 1000 & wait";
    let leaf = tool("bash", &json!({"command": work}));
    let content = three("mid", &three("leaf", &leaf));
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(say(&env, content)));
    let pids = eventually("nine commands", async || {
        // The stream moves only when it is read.
        let _ = tokio::time::timeout(Duration::from_millis(1), events.next()).await;
        let names = fs::read_dir(&env.work).unwrap();
        let pids: Vec<i32> = names
            .filter_map(|e| {
                e.unwrap()
                    .file_name()
                    .to_str()?
                    .strip_prefix("pid-")?
                    .parse()
                    .ok()
            })
            .collect();
        (pids.len() == 9).then_some(pids)
    })
    .await;

    let mut other = env.connect().await;
    let listed = other.list_conversations(ListConversationsMsg::default());
    let listed = listed.await.unwrap().conversations;
    let of = |agent: &str| listed.iter().filter(|c| c.agent == agent).count();
    assert_eq!((of("crab"), of("mid"), of("leaf")), (1, 3, 9));
    let mut numbers: Vec<&str> = listed
        .iter()
        .filter_map(|c| c.sender.strip_prefix("delegate:"))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 12);
    let leaf = listed.iter().find(|c| c.agent == "leaf").unwrap();
    let mut attached = env.connect().await;
    let mut leaf_events = std::pin::pin!(attached.attach(AttachMsg {
        agent: "leaf".into(),
        sender: leaf.sender.clone(),
        ..AttachMsg::default()
    }));
    within("the leaf's beginning", leaf_events.next())
        .await
        .unwrap()
        .unwrap();

    other.kill(KillMsg::default()).await.unwrap();
    for pid in pids {
        gone(pid).await;
    }
    let rest: Vec<_> = within("the end", events.collect()).await;
    assert_eq!(
        end_of(&rest.into_iter().map(Result::unwrap).collect::<Vec<_>>()).code,
        499
    );
    let rest: Vec<_> = within("the leaf's end", leaf_events.collect()).await;
    assert_eq!(
        end_of(&rest.into_iter().map(Result::unwrap).collect::<Vec<_>>()).code,
        499
    );
    eventually("nothing to run", async || {
        let active = other.list_active_conversations(ListActiveConversationsMsg::default());
        let active = active.await.unwrap().conversations;
        active.iter().all(|c| !c.running).then_some(())
    })
    .await;
}

#[tokio::test]
async fn asks_of_members_are_answered_at_the_top() {
    let env = TestEnv::new();
    team(&env, "ask");
    let daemon = env.daemon().await;
    let leaf = tool("bash", &json!({"command": "touch made"}));
    let middle = tool("delegate", &json!({"agent": "leaf", "task": leaf}));
    let content = tool("delegate", &json!({"agent": "mid", "task": middle}));
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(say(&env, content)));
    let ask = asked(&mut events).await;
    assert_eq!(
        (ask.tool.as_str(), ask.detail.as_str()),
        ("bash", "touch made")
    );
    // By words alone, to the conversation in whose stream it was shown.
    let reply = ReplyToAsk {
        agent: "crab".into(),
        sender: "user".into(),
        content: "Allow once".into(),
        ask_id: None,
    };
    env.connect_silently()
        .await
        .reply_to_ask(reply)
        .await
        .unwrap();
    let rest: Vec<_> = within("the end", events.collect()).await;
    assert_eq!(
        end_of(&rest.into_iter().map(Result::unwrap).collect::<Vec<_>>()).code,
        0
    );
    assert!(env.work.join("made").exists());

    // Numbers are not reused, and other clients may not use them as senders.
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let before = env.logs().len();
    call(&env, "delegate", json!({"agent": "mid", "task": "hello"})).await;
    assert_eq!(env.logs().len(), before + 1);
    let mut connection = env.connect().await;
    let intruder = StreamMsg {
        agent: "mid".into(),
        sender: Some("delegate:1".into()),
        ..say(&env, "hello")
    };
    let refused = std::pin::pin!(connection.stream(intruder))
        .next()
        .await
        .unwrap();
    assert!(format!("{refused:?}").contains("reserved"), "{refused:?}");
    drop(stream_to_end(&env, say(&env, "and on it goes")).await);
}
