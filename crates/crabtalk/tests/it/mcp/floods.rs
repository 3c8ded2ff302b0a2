//! Servers that take nothing, answer nothing, or never stop talking.

use super::rogue::{Does, Rogue, announce, calls, lists, request, tool};
use super::{allowing, call, comes_to_be, components, declining, result, say, with_error};
use crate::rig::{TestEnv, eventually, gone, has_tools, stream_to_end, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, Ping};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Answers the handshake and lists its tools, and reads nothing after that.
const DEAF: &str = r#"
import json, os, sys, time
with open(os.environ["START"], "a") as starts:
    starts.write(f"{os.getpid()}\n")
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        said = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "deaf", "version": "1"}}
    elif asked.get("method") == "tools/list":
        said = {"tools": [{"name": "hear", "inputSchema": {"type": "object"}}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
    if asked["method"] == "tools/list":
        break
while True:
    time.sleep(60)
"#;

#[tokio::test]
async fn a_program_that_never_reads_costs_its_calls_and_is_ended() {
    if !has_tools("deaf", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let starts = env.root().join("starts");
    let config = json!(DEAF).to_string();
    env.config(&format!(
        "[mcp.deaf]\ncommand = \"python3\"\nargs = [\"-c\", {config}]\ntimeout_secs = 1\n\
         env = {{ START = \"{}\" }}\n",
        starts.display()
    ));
    let daemon = env.daemon().await;
    let pids = || -> Vec<i32> {
        let text = fs::read_to_string(&starts).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    // What fits the pipe is taken by nobody, and the call ends in time.
    let small = call(&env, "deaf__hear", json!({})).await;
    assert!(small.output.contains("no answer within 1 s"), "{small:?}");
    assert_eq!(pids().len(), 1);
    // What does not fit holds up nobody but itself, and ends the program.
    let big = json!({"text": "x".repeat(1 << 20)});
    let (big, ()) = tokio::join!(call(&env, "deaf__hear", big.clone()), async {
        env.connect().await.ping(Ping {}).await.unwrap();
    });
    assert!(big.is_error, "{big:.200?}");
    gone(pids()[0]).await;
    eventually("why it was ended", async || {
        daemon.stderr().contains("standard input").then_some(())
    })
    .await;
    // The next call has another program, and the daemon ends under it in time.
    let text = format!("/tool deaf__hear {}", json!({"text": "x".repeat(1 << 20)}));
    let last = async {
        let mut connection = env.connect().await;
        connection.stream(say(text)).collect::<Vec<_>>().await
    };
    let end = async {
        eventually("another program under a call", async || {
            let known = components(&env).await;
            (pids().len() == 2 && known[0].calls == 1).then_some(())
        })
        .await;
        assert!(daemon.terminate().await.success());
    };
    within("the end", async { tokio::join!(last, end) }).await;
    gone(pids()[1]).await;
}

/// The library sends sixteen at once, and a ping is one of them.
#[tokio::test]
async fn a_crowd_of_calls_reaches_a_server_at_once_and_leaves_room_for_a_sign_of_life() {
    let mut env = TestEnv::new();
    env.set("CRABTALK_MCP_PING_MS", "3000");
    allowing(&env);
    let go = Arc::new(Semaphore::new(0));
    let until = Arc::clone(&go);
    let waits = calls("wait", move || {
        Does::Waits(Arc::clone(&until), json!({"content": []}))
    });
    let server = Rogue::start(waits, false).await;
    server.announce(&env, "slow");
    let _daemon = env.daemon().await;
    comes_to_be(&env, "slow", "connected").await;
    let crowd = join_all((0..4).map(|number| {
        let calls = ["/tool slow__wait {}"; 10].join("\n");
        let mut request = say(calls);
        request.sender = Some(format!("caller-{number}"));
        stream_to_end(&env, request)
    }));
    let looks = async {
        eventually("all calls to be there", async || {
            (server.counts.waiting.load(Ordering::Relaxed) == 40).then_some(())
        })
        .await;
        let pings = server.counts.pings.load(Ordering::Relaxed);
        eventually("two pings", async || {
            (server.counts.pings.load(Ordering::Relaxed) >= pings + 2).then_some(())
        })
        .await;
        comes_to_be(&env, "slow", "connected").await;
        go.add_permits(1000);
    };
    let (ended, ()) = tokio::join!(crowd, looks);
    for events in ended {
        let answers = events.iter().filter_map(|event| match &event.event {
            Some(Event::ToolResult(result)) => Some(result.is_error),
            _ => None,
        });
        assert_eq!(answers.collect::<Vec<_>>(), [false; 10]);
    }
}

#[tokio::test]
async fn a_server_that_answers_no_ping_has_one_of_them_at_a_time() {
    let mut env = TestEnv::new();
    env.set("CRABTALK_MCP_PING_MS", "50");
    allowing(&env);
    let server = Rogue::start(lists(json!([tool("t", "")])), false).await;
    server.announce(&env, "mute");
    let _daemon = env.daemon().await;
    comes_to_be(&env, "mute", "connected").await;
    server.counts.is_silent.store(true, Ordering::Relaxed);
    comes_to_be(&env, "mute", "hanging").await;
    eventually("many pings", async || {
        (server.counts.pings.load(Ordering::Relaxed) >= 60).then_some(())
    })
    .await;
    // One, and one that is about to end.
    eventually("few connections", async || {
        (server.counts.open_pings.load(Ordering::Relaxed) <= 2).then_some(())
    })
    .await;
    server.counts.is_silent.store(false, Ordering::Relaxed);
    // On a slow machine an answer may take longer than the time of a ping even so.
    eventually("an answer", async || {
        let answered = call(&env, "mute__t", json!({})).await;
        (answered.output == "called").then_some(())
    })
    .await;
}

/// Events of a stream, and then the answer to the call.
fn events(said: impl Iterator<Item = Value>) -> String {
    let last = json!({"jsonrpc": "2.0", "id": "ID", "result": {"content": [{"type": "text", "text": "done"}]}});
    said.chain([last])
        .map(|said| format!("data: {said}\n\n"))
        .collect()
}

fn streaming(said: String) -> Box<super::rogue::Behaviour> {
    calls("talk", move || Does::Streams(said.clone()))
}

#[tokio::test]
async fn a_flood_of_questions_asks_a_person_a_few_and_the_call_goes_on() {
    const ASKED: u64 = 300;
    let env = TestEnv::new();
    allowing(&env);
    let asks = (0..ASKED).map(|at| {
        json!({"jsonrpc": "2.0", "id": format!("q{at}"), "method": "elicitation/create", "params": {
            "message": format!("Question {at}?"),
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }})
    });
    let server = Rogue::start(streaming(events(asks)), false).await;
    server.announce(&env, "curious");
    let _daemon = env.daemon().await;
    comes_to_be(&env, "curious", "connected").await;
    let seen = declining(&env, say("/tool curious__talk {}")).await;
    assert_eq!(result(&seen).output, "done");
    let asks = seen.iter();
    let asks = asks.filter(|event| matches!(event.event, Some(Event::AskUser(_))));
    let asked = asks.count();
    assert!(
        (1..=32).contains(&asked),
        "a person was asked {asked} times"
    );
    // Each has had its answer.
    eventually("all answers", async || {
        (server.counts.answered.load(Ordering::Relaxed) >= ASKED).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_progress_and_of_news_is_told_now_and_then_and_logged_never() {
    let env = TestEnv::new();
    allowing(&env);
    // The token of the first call.
    let said = (0..20_000).map(|at| match at % 3 {
        0 => json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "FLOODED"}}),
        1 => json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": at % 50, "progress": at, "message": "FLOODED"}}),
        _ => json!({"jsonrpc": "2.0", "method": "notifications/made/up", "params": {"data": "FLOODED"}}),
    });
    let server = Rogue::start(streaming(events(said)), false).await;
    server.announce(&env, "chatty");
    let daemon = env.daemon().await;
    comes_to_be(&env, "chatty", "connected").await;
    let seen = stream_to_end(&env, say("/tool chatty__talk {}")).await;
    assert_eq!(result(&seen).output, "done");
    assert!(
        !daemon.stderr().contains("FLOODED"),
        "what it says fills the log"
    );
    env.connect().await.ping(Ping {}).await.unwrap();
}

#[tokio::test]
async fn a_redirect_to_another_host_is_named_and_not_followed() {
    let env = TestEnv::new();
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}/mcp", elsewhere.local_addr().unwrap());
    let target = to.clone();
    let redirects = Box::new(move |_: &str, _: &Value| Does::Redirects(target.clone()));
    let server = Rogue::start(redirects, false).await;
    server.announce(&env, "mover");
    env.config(&format!(
        "[mcp.far]\nurl = \"http://127.0.0.1:{}/mcp\"\nheaders = {{ Authorization = \"secret\" }}\n",
        server.port
    ));
    let _daemon = env.daemon().await;
    for name in ["mover", "far"] {
        let known = with_error(&env, name).await;
        assert!(known.error.contains(&to), "{known:?}");
    }
    // Both have been there and back, and nobody has come here.
    let come = futures_util::FutureExt::now_or_never(elsewhere.accept());
    assert!(come.is_none(), "{come:?}");
}

#[tokio::test]
async fn a_handshake_that_is_a_stream_without_end_leaves_no_connection() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let file = announce(&env, "endless", listener.local_addr().unwrap().port());
    let (mut stream, _) = within("the handshake", listener.accept()).await.unwrap();
    within("its request", request(&mut stream)).await.unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let noise = ": nothing\n\ndata:\n\n".repeat(100);
    for _ in 0..100 {
        stream.write_all(noise.as_bytes()).await.unwrap();
    }
    fs::remove_file(file).unwrap();
    let (mut reads, mut writes) = stream.split();
    let talks = async { while writes.write_all(noise.as_bytes()).await.is_ok() {} };
    let ends = async { while matches!(reads.read(&mut [0; 64]).await, Ok(1..)) {} };
    within("its end", async { tokio::join!(talks, ends) }).await;
    env.connect().await.ping(Ping {}).await.unwrap();
}

#[tokio::test]
async fn a_port_file_that_is_replaced_a_thousand_times_ends_at_the_last() {
    let env = TestEnv::new();
    allowing(&env);
    let first = Rogue::start(lists(json!([tool("t", "")])), false).await;
    let last = Rogue::start(lists(json!([tool("last", "")])), false).await;
    let _daemon = env.daemon().await;
    let run = env.home.join("run");
    fs::create_dir_all(&run).unwrap();
    let replace = |server: &Rogue, at: usize| {
        let next = run.join(".flipper.next");
        fs::write(&next, format!("{}\n{at}\n", server.port)).unwrap();
        fs::rename(&next, run.join("flipper.port")).unwrap();
    };
    for at in 0..1_000 {
        replace(if at % 2 == 0 { &first } else { &last }, at);
    }
    replace(&last, 1_000);
    let known = eventually("the last one", async || {
        let mut all = components(&env).await.into_iter();
        all.find(|known| known.state == "connected" && known.port == u32::from(last.port))
    })
    .await;
    assert_eq!(known.name, "flipper", "{known:?}");
    // It may be connected once more, for the last of the files.
    eventually("its tool", async || {
        let answer = call(&env, "flipper__last", json!({})).await;
        (answer.output == "called").then_some(())
    })
    .await;
}
