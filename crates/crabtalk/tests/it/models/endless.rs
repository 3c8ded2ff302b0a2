//! Models that never stop (MODEL-9).

use super::say;
use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, GetStats, Ping};
use crabtalk_testkit::scripted::{Action, Format, Reply, Script, openai};
use futures_util::StreamExt;
use futures_util::future::{Either, join_all};
use serde_json::json;
use std::cell::Cell;

/// What ten models that never stop may cost the daemon.
const MAX_RSS: u64 = 100 << 20;

/// Pings that are answered while all of ten answers are under way. Were one of them
/// never interrupted, they would not be under way together.
const MANY_PINGS: usize = 3;

/// An answer that repeats an event until nobody listens.
fn endless(event: &str) -> Reply {
    Reply::new([Action::Flood(format!("data: {event}\n\n"))])
}

/// An answer that goes on letter by letter until it is released, and then in long
/// pieces. Of letters as many fit under the limit as take some minutes to read.
fn held(long: &str) -> Reply {
    let letter = openai::delta(&json!({"content": "x"}));
    Reply::new([
        Action::FloodHeld(format!("data: {letter}\n\n")),
        flood(long),
    ])
}

fn words() -> String {
    openai::delta(&json!({"content": "and so on ".repeat(40)}))
}

async fn env(server: &ModelServer, more: &str) -> TestEnv {
    let env = TestEnv::with_model(server);
    let text = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!("{text}max_retries = 0\n{more}"));
    env
}

#[tokio::test]
async fn ten_models_that_never_stop_cost_little_memory_and_nobodys_time() {
    let server = ModelServer::start(Script::openai([held(&words())]).repeating()).await;
    let env = env(&server, "").await;
    let _daemon = env.daemon().await;
    let senders: Vec<String> = (0..10).map(|n| format!("user/{n}")).collect();
    let (begun, ended) = (Cell::new(0), Cell::new(0));
    let follow = async |sender: &str| {
        let mut connection = env.connect().await;
        let mut events = Vec::new();
        let mut stream = std::pin::pin!(connection.stream(say("crab", sender, "go on")));
        let mut speaks = false;
        while let Some(event) = stream.next().await {
            let event = event.unwrap();
            if matches!(event.event, Some(Event::Chunk(_))) && !std::mem::replace(&mut speaks, true)
            {
                begun.set(begun.get() + 1);
            }
            events.push(event);
        }
        ended.set(ended.get() + 1);
        events
    };
    let runs = senders.iter().map(|sender| follow(sender));
    let mut connection = env.connect().await;
    let (mut pings, mut released) = (0, 0);
    let all_speak = || (begun.get(), ended.get()) == (10, 0);
    let mut looked = async || {
        let before = all_speak();
        connection.ping(Ping::default()).await.unwrap();
        pings += usize::from(before && all_speak());
        if pings == MANY_PINGS {
            // They may come to their limit now.
            while released < senders.len() {
                server.release().await;
                released += 1;
            }
        }
        let stats = connection.get_stats(GetStats::default()).await.unwrap();
        assert!(stats.rss_bytes < MAX_RSS, "{} MiB", stats.rss_bytes >> 20);
    };
    let mut runs = std::pin::pin!(join_all(runs));
    let ended = within("ten runs to be stopped", async {
        loop {
            let look = std::pin::pin!(looked());
            match futures_util::future::select(&mut runs, look).await {
                Either::Left((ended, look)) => {
                    look.await;
                    return ended;
                }
                Either::Right(((), _)) => {}
            }
        }
    })
    .await;
    assert!(pings >= MANY_PINGS, "{pings} pings were answered meanwhile");
    assert_eq!(released, senders.len());
    for events in ended {
        let end = end_of(&events);
        assert_eq!(end.code, 422, "{end:?}");
        assert_eq!(
            end.error,
            "scripted said more than 2097152 bytes in one answer, the limit of \
             limits.answer_bytes; the answer was stopped and is not kept"
        );
    }
}

#[tokio::test]
async fn twenty_thousand_calls_in_one_answer_run_none() {
    let calls = (0..20_000).map(|n| {
        let id = format!("call_{n}");
        openai::fragment(n, Some((&id, "bash")), r#"{"command":"echo x >> ran"}"#)
    });
    let many = openai::ended(calls.collect(), "tool_calls");
    let server = ModelServer::start(Script::openai([many])).await;
    let env = env(&server, "\n[limits]\nanswer_calls = 100\n").await;
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    let end = end_of(&stream_to_end(&env, say("crab", "user", "go")).await);
    assert_eq!(end.code, 422, "{end:?}");
    assert!(end.error.contains("limits.answer_calls"), "{end:?}");
    assert!(!env.work.join("ran").exists());
}

/// Whatever it is that has no end: the run ends, and says which limit it was.
#[tokio::test]
async fn nothing_that_a_model_sends_may_be_endless() {
    let call = openai::fragment(0, None, "word word word word ");
    let begin = openai::fragment(0, Some(("call_1", "bash")), "");
    let thought = openai::delta(&json!({"reasoning_content": "hm, hm, hm, hm "}));
    let sse = |actions: Vec<Action>| Reply::new(actions);
    let page = Action::Head {
        status: 500,
        headers: Vec::new(),
    };
    let cases = [
        (
            "arguments",
            sse(vec![Action::Event(begin), flood(&call)]),
            "limits.answer_bytes",
        ),
        ("thinking", endless(&thought), "limits.answer_bytes"),
        (
            "an event",
            sse(vec![
                Action::Body("data: ".into()),
                Action::Flood("word ".into()),
            ]),
            "event of more than 4 MiB",
        ),
        (
            "lines of an event",
            sse(vec![Action::Flood("data: word\n".into())]),
            "event of more than 4 MiB",
        ),
        (
            "an error's body",
            sse(vec![page, Action::Flood("no ".into())]),
            "answered 500: no no no",
        ),
        (
            "a header",
            sse(vec![
                Action::Raw("HTTP/1.1 200 OK\r\nx: ".into()),
                Action::RawFlood("word ".into()),
            ]),
            "broke the connection",
        ),
        (
            "headers",
            sse(vec![
                Action::Raw("HTTP/1.1 200 OK\r\n".into()),
                Action::RawFlood("x: y\r\n".into()),
            ]),
            "broke the connection",
        ),
    ];
    for (what, reply, said) in cases {
        let server = ModelServer::start(Script::openai([reply])).await;
        let env = env(&server, "").await;
        let _daemon = env.daemon().await;
        let end = end_of(&stream_to_end(&env, say("crab", "user", "go")).await);
        assert!(end.error.contains(said), "{what}: {end:?}");
        let mut connection = env.connect().await;
        let stats = connection.get_stats(GetStats::default()).await.unwrap();
        assert!(
            stats.rss_bytes < MAX_RSS,
            "{what}: {} MiB",
            stats.rss_bytes >> 20
        );
    }
}

fn flood(event: &str) -> Action {
    Action::Flood(format!("data: {event}\n\n"))
}

/// What says nothing, again and again, has as long as an answer has.
#[tokio::test]
async fn an_answer_that_never_begins_has_its_time() {
    let nothing = || endless(&openai::usage(1, 1, 0));
    let comments = Reply::new([Action::Flood(": still here\n\n".into())]);
    let ping = Reply::new([Action::Flood(
        "event: ping\ndata: {\"type\":\"ping\"}\n\n".into(),
    )]);
    for (kind, format, reply) in [
        ("openai", Format::OpenAi, nothing()),
        ("openai", Format::OpenAi, comments),
        ("anthropic", Format::Anthropic, ping),
    ] {
        let server = ModelServer::start(Script::new(format, [reply])).await;
        let env = env(&server, "\n[limits]\nanswer_secs = 1\n").await;
        let file = env.home.join("config/config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        env.config(&text.replace("\"openai\"", &format!("{kind:?}")));
        let _daemon = env.daemon().await;
        let end = end_of(&stream_to_end(&env, say("crab", "user", "go")).await);
        assert_eq!(end.code, 504, "{end:?}");
        assert!(
            end.error
                .contains("longer than 1s, the limit of limits.answer_secs"),
            "{end:?}"
        );
        let mut connection = env.connect().await;
        let stats = connection.get_stats(GetStats::default()).await.unwrap();
        assert!(stats.rss_bytes < MAX_RSS, "{} MiB", stats.rss_bytes >> 20);
    }
}
