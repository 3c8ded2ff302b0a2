//! Members at work in a real daemon.

use super::{say, tool};
use crate::rig::{TestEnv, end_of, eventually, gone, within};
use crabtalk_proto::{
    AttachMsg, Client, KillMsg, ListActiveConversationsMsg, ListConversationsMsg,
};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// `crab` delegates to `mid`, `mid` to `leaf`, which has this rule for `bash`.
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
    // Outside the sandbox, process ids are the machine's.
    env.agent("crab", "members: [mid]\nmode: full");
    let _daemon = env.daemon().await;
    // `$$` makes the names unique: nine run concurrently.
    let work = "echo $$ > pid-$$.tmp && mv pid-$$.tmp pid-$$ && sleep 1000 & wait";
    let leaf = tool("bash", &json!({"command": work}));
    let content = three("mid", &three("leaf", &leaf));
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(say(&env, content)));
    let pids = eventually("nine commands", async || {
        // The stream progresses only while it is read.
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
