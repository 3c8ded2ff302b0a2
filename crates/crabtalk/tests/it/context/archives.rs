//! Long archives: search works even if the index is lost or damaged.

use super::{recall, say};
use crate::rig::{ModelServer, TestEnv, eventually};
use crabtalk_proto::{Client, RemoveConversationMsg};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::json;
use std::fmt::Write as _;

/// Bytes of the largest archive, most of them what tools put out.
const LARGE: usize = 20 << 20;

const OLDEST: &str = "My passport lies in the blue tin above the stove.";

const QUESTION: &str = "Where does my passport lie?";

fn line(log: &mut String, value: &serde_json::Value) {
    writeln!(log, "{value}").unwrap();
}

fn turn(log: &mut String, role: &str, text: &str) {
    // A time of its own each, as turns have.
    let at = format!("2026-01-01T00:00:00.{:09}Z", log.len());
    line(log, &json!({ "role": role, "content": text, "at": at }));
}

fn marker(log: &mut String, title: &str) {
    let summary = format!("{title}. Much was said.");
    let at = "2026-01-02T00:00:00Z";
    line(
        log,
        &json!({ "compact": summary, "title": title, "archived_at": at }),
    );
}

/// Three archives, the second one large; the oldest turn says where the
/// passport is.
fn write_log(env: &TestEnv) {
    let mut log = String::new();
    let created = "2026-01-01T00:00:00Z";
    line(
        &mut log,
        &json!({ "agent": "crab", "created_by": "user", "created_at": created }),
    );
    turn(&mut log, "user", OLDEST);
    turn(&mut log, "assistant", "Noted.");
    marker(&mut log, "Papers");
    let output = "drwxr-xr-x 2 ada ada 4096 and so on\n".repeat(2_000);
    let mut number = 0;
    while log.len() < LARGE {
        number += 1;
        turn(
            &mut log,
            "user",
            &format!("Look at folder {number}, please."),
        );
        let call = json!({ "id": "1", "type": "function",
            "function": { "name": "bash", "arguments": "{}" } });
        line(
            &mut log,
            &json!({ "role": "assistant", "content": "", "tool_calls": [call] }),
        );
        line(
            &mut log,
            &json!({ "role": "tool", "content": output, "tool_call_id": "1" }),
        );
        turn(
            &mut log,
            "assistant",
            &"It holds what was expected. ".repeat(40),
        );
    }
    marker(&mut log, "Folders");
    turn(&mut log, "user", "The fence has to be painted.");
    marker(&mut log, "Garden");
    turn(&mut log, "user", "Good morning.");
    turn(&mut log, "assistant", "Good morning.");
    std::fs::create_dir_all(env.sessions()).unwrap();
    std::fs::write(env.sessions().join("crab_user_1.jsonl"), log).unwrap();
}

async fn found(env: &TestEnv) -> bool {
    let found = env.run(&["search", "passport"]).await.ok();
    found.contains("| archive 1 | 20") && found.contains("blue tin")
}

#[tokio::test]
async fn the_oldest_turn_of_long_archives_is_found_at_once() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    write_log(&env);
    let daemon = env.daemon().await;
    // A turn waits for none of it, and has it indexed.
    say(&env, "user", "Hello there").await;
    eventually("the index", async || found(&env).await.then_some(())).await;
    assert!(daemon.terminate().await.success());

    let daemon = env.daemon().await;
    assert!(found(&env).await, "the first search");
    say(&env, "user", QUESTION).await;
    let block = recall(model.requests().await.last().unwrap()).unwrap();
    assert!(block.contains(OLDEST), "{block}");
    daemon.kill().await;

    // It is derived: gone, it comes back.
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _ = std::fs::remove_file(env.home.join("state").join(name));
    }
    let daemon = env.daemon().await;
    eventually("the mended index", async || found(&env).await.then_some(())).await;
    let pair = RemoveConversationMsg {
        agent: "crab".into(),
        sender: "user".into(),
    };
    env.connect().await.remove_conversation(pair).await.unwrap();
    assert!(!found(&env).await);
    daemon.kill().await;
}

#[tokio::test]
async fn search_skips_and_reports_too_common_words() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    for (words, says) in [
        (&["the", "a", "of"][..], "stand nearly everywhere"),
        (&["passport"], "no matches"),
    ] {
        let said = env.run(&[&["search"], words].concat()).await;
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains(says), "{said:?}");
    }
}
