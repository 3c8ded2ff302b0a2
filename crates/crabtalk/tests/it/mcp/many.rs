//! Components that come and go all at once.

use super::rogue::{Does, Rogue, calls, lists, tool};
use super::{allowing, comes_to_be, components, result, say};
use crate::rig::{Daemon, TestEnv, eventually, stream_to_end};
use crabtalk_proto::{Client, ListMcpsMsg, Ping};
use futures_util::future::join_all;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Semaphore;

const MANY: usize = 200;

/// What the daemon has open.
fn descriptors(daemon: &Daemon) -> usize {
    let folder = format!("/proc/{}/fd", daemon.pid().as_raw_nonzero());
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[tokio::test]
async fn two_hundred_components_come_and_go_at_once_and_no_run_notices() {
    let mut env = TestEnv::new();
    // Not within this test: who looks sees that they have ended.
    env.set("CRABTALK_MCP_PING_MS", "3600000");
    allowing(&env);
    let go = Arc::new(Semaphore::new(0));
    let until = Arc::clone(&go);
    let waits = calls("wait", move || {
        let done = json!({"content": [{"type": "text", "text": "done"}]});
        Does::Waits(Arc::clone(&until), done)
    });
    let steady = Rogue::start(waits, false).await;
    steady.announce(&env, "steady");
    let daemon = env.daemon().await;
    comes_to_be(&env, "steady", "connected").await;
    let runs = join_all(["one", "two"].map(|sender| {
        let mut request = say("/tool steady__wait {}");
        request.sender = Some(sender.to_owned());
        stream_to_end(&env, request)
    }));
    let storm = async {
        eventually("both calls", async || {
            (steady.counts.waiting.load(Ordering::Relaxed) == 2).then_some(())
        })
        .await;
        let before = descriptors(&daemon);
        let mut all = Vec::new();
        for _ in 0..MANY {
            all.push(Rogue::start(lists(json!([tool("t", "")])), false).await);
        }
        for (at, one) in all.iter().enumerate() {
            one.announce(&env, &format!("c{at}"));
        }
        let known = async |state: &str| {
            let all = components(&env).await.into_iter();
            let listed = all.filter(|one| one.name.starts_with('c') && one.state == state);
            (listed.count() == MANY).then_some(())
        };
        eventually("all of them", async || known("connected").await).await;
        drop(all);
        env.connect().await.ping(Ping {}).await.unwrap();
        eventually("the end of all of them", async || known("failed").await).await;
        // Their own tasks know it, too, and tell runs.
        eventually("no tool of theirs", async || {
            let listed = env.connect().await.list_mcps(ListMcpsMsg {}).await;
            let tools = listed.unwrap().mcps.into_iter().map(|one| one.tool_count);
            (tools.sum::<u32>() == 1).then_some(())
        })
        .await;
        for at in 0..MANY {
            let file = env.home.join(format!("run/c{at}.port"));
            std::fs::remove_file(file).unwrap();
        }
        eventually("none of them", async || {
            let all = components(&env).await;
            (all.len() == 1).then_some(())
        })
        .await;
        // Beside those of whoever asks.
        eventually("no descriptor of theirs", async || {
            (descriptors(&daemon) <= before + 4).then_some(())
        })
        .await;
        go.add_permits(2);
    };
    let (ended, ()) = tokio::join!(runs, storm);
    for events in ended {
        assert_eq!(result(&events).output, "done");
    }
    assert!(daemon.terminate().await.success());
}
