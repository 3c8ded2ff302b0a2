//! Servers that say more than anybody reads, of themselves or in an answer.

use super::rogue::{Does, Rogue, calls, lists, tool};
use super::{allowing, call, comes_to_be, components, with_error};
use crate::rig::{TestEnv, eventually};
use crabtalk_proto::{Client, ListMcpsMsg, Ping, TestMcpMsg};
use serde_json::{Value, json};

/// Two of them are longer than a frame of the protocol.
const LONG: usize = 9 << 20;

/// What a list shows of one server's words.
const A_SCREEN: usize = 4 << 10;

/// Says so of itself in the handshake.
fn calls_itself(name: String) -> Box<super::rogue::Behaviour> {
    Box::new(move |method, params| match method {
        "initialize" => Does::Answers(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
        })),
        "tools/list" => Does::Answers(json!({"tools": [tool("t", "")]})),
        _ => Does::Refuses(name.clone()),
    })
}

/// Refuses to list its tools, in many words.
fn refuses(why: String) -> Box<super::rogue::Behaviour> {
    Box::new(move |method, _| match method {
        "initialize" => Does::Usual,
        _ => Does::Refuses(why.clone()),
    })
}

/// One list is told to every client, so that one server's words could cost all the list.
#[tokio::test]
async fn words_of_a_server_without_end_cost_no_client_its_list() {
    let env = TestEnv::new();
    allowing(&env);
    let mut servers = Vec::new();
    for at in 0..2 {
        let proud = Rogue::start(calls_itself("N".repeat(LONG)), false).await;
        proud.announce(&env, &format!("proud{at}"));
        let sorry = Rogue::start(refuses("E".repeat(LONG)), false).await;
        sorry.announce(&env, &format!("sorry{at}"));
        servers.extend([proud, sorry]);
    }
    let daemon = env.daemon().await;
    for at in 0..2 {
        eventually("a list with all of them", async || {
            let all = components(&env).await;
            let known = |name: String| all.iter().find(|known| known.name == name).cloned();
            let (proud, sorry) = (known(format!("proud{at}"))?, known(format!("sorry{at}"))?);
            assert!(proud.server.len() <= A_SCREEN, "{}", proud.server.len());
            assert!(sorry.error.len() <= A_SCREEN, "{}", sorry.error.len());
            let both = proud.server.starts_with('N') && sorry.error.contains("EEE");
            both.then_some(())
        })
        .await;
    }
    let mcps = env.connect().await.list_mcps(ListMcpsMsg {}).await.unwrap();
    assert!(mcps.mcps.iter().all(|one| one.error.len() <= A_SCREEN));
    for name in ["proud0", "sorry0"] {
        let test = TestMcpMsg {
            name: name.into(),
            config: String::new(),
        };
        let tested = env.connect().await.test_mcp(test).await.unwrap();
        let said = tested.steps.join("\n").len() + tested.error.len() + tested.server.len();
        assert!(said <= 2 * A_SCREEN, "{name}: {said} bytes");
    }
    assert!(daemon.stderr().len() < 1 << 20, "{}", daemon.stderr().len());
    // A model is given no more of a refusal than of a text, and the whole is kept.
    let refused = call(&env, "proud0__t", json!({})).await;
    assert!(refused.is_error);
    assert!(refused.output.len() < 40_000, "{}", refused.output.len());
    assert!(refused.output.contains("the whole output is in"));
}

#[tokio::test]
async fn a_list_of_tools_has_a_bound_in_bytes() {
    let env = TestEnv::new();
    let pages = Box::new(|method: &str, params: &Value| match method {
        "initialize" => Does::Usual,
        _ => {
            let at: usize = params["cursor"]
                .as_str()
                .map_or(0, |at| at.parse().unwrap());
            let page = json!([tool(&format!("t{at:02}"), &"d".repeat(1 << 20))]);
            let next = (at < 23).then(|| (at + 1).to_string());
            Does::Answers(json!({"tools": page, "nextCursor": next}))
        }
    });
    let server = Rogue::start(pages, false).await;
    server.announce(&env, "heavy");
    let daemon = env.daemon().await;
    let known = comes_to_be(&env, "heavy", "connected").await;
    assert!((1..=4).contains(&known.tool_count), "{known:?}");
    eventually("the log", async || {
        daemon.stderr().contains("what is beyond").then_some(())
    })
    .await;
}

/// An object takes some hundred times the memory of its two brackets.
#[tokio::test]
async fn an_answer_of_a_million_small_values_is_refused_unread() {
    let env = TestEnv::new();
    allowing(&env);
    let block = json!({"type": "text", "text": ""});
    let many = json!({"content": vec![block; 400_000]});
    let listed = many.clone();
    let events = json!({"jsonrpc": "2.0", "id": "ID", "result": many.clone()});
    let events = format!("data: {events}\n\n");
    let text = Rogue::start(calls("t", move || Does::Answers(many.clone())), false).await;
    let stream = Rogue::start(calls("t", move || Does::Streams(events.clone())), false).await;
    let list = Rogue::start(lists(listed), false).await;
    text.announce(&env, "text");
    stream.announce(&env, "stream");
    list.announce(&env, "list");
    let _daemon = env.daemon().await;
    for name in ["text", "stream"] {
        comes_to_be(&env, name, "connected").await;
        let answer = call(&env, &format!("{name}__t"), json!({})).await;
        assert!(answer.is_error, "{name}: {:.200}", answer.output);
        assert!(answer.output.contains("values"), "{name}: {answer:?}");
    }
    let listed = with_error(&env, "list").await;
    assert!(listed.error.contains("values"), "{listed:?}");
    env.connect().await.ping(Ping {}).await.unwrap();
}
