//! Connections that are silent, die, rest or are left.

use super::bench;
use crate::support::{Bench, provider, request};
use crabtalk_domain::model::{Chunk, ErrorKind, Model};
use crabtalk_model::{Kind, Registry};
use crabtalk_testkit::scripted::openai::{self, delta};
use crabtalk_testkit::scripted::{Action, Reply, Script};
use futures_util::StreamExt;
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn active_stream_never_stalls() {
    let step = |text: &str| {
        [
            Action::SleepMs(100_000),
            Action::Event(delta(&json!({"content": text}))),
        ]
    };
    let slow = Reply::events([delta(&json!({"content": "a"}))])
        .then(step("b"))
        .then(step("c"));
    let bench = bench([slow.then(openai::text("d").actions)]).await;
    assert_eq!(
        bench
            .send(&request("hi"))
            .await
            .expect("slow but alive")
            .content,
        "abcd"
    );
}

#[tokio::test]
async fn finished_answer_returns_its_connection() {
    let bench = bench([
        openai::text("a"),
        openai::text("b"),
        Reply::error(400, "x", "no"),
        openai::text("c"),
    ])
    .await;
    for _ in 0..4 {
        drop(bench.send(&request("hi")).await);
    }
    let progress = bench.server.progress();
    assert_eq!((progress.requests, progress.connections), (4, 1));
}

#[tokio::test]
async fn dead_pooled_connection_is_replaced() {
    // The answer ends properly, then the server closes.
    let last = openai::text("a").then([Action::Raw("0\r\n\r\n".into()), Action::Cut]);
    let bench = Bench::with(
        Kind::OpenAi,
        Script::openai([last, openai::text("b")]),
        |config| {
            config.max_retries = 0;
        },
    )
    .await;
    assert_eq!(
        bench.send(&request("hi")).await.expect("an answer").content,
        "a"
    );
    assert_eq!(
        bench
            .send(&request("hi"))
            .await
            .expect("a new connection")
            .content,
        "b"
    );
    assert_eq!(bench.server.progress().connections, 2);
}

#[tokio::test]
async fn unreachable_server_is_named() {
    let mut config = provider(
        "p",
        Kind::OpenAi,
        "http://127.0.0.1:1/v1?key=planted",
        &["m"],
    );
    config.max_retries = 0;
    let registry = Registry::new(vec![config], None).expect("a good configuration");
    let error = registry.send(request("hi")).await.expect_err("no server");
    assert_eq!(error.kind, ErrorKind::Unreachable);
    assert!(
        error
            .message
            .contains("http://127.0.0.1:1/v1/chat/completions"),
        "{error}"
    );
    assert!(!error.message.contains("planted"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn idle_connection_expires() {
    let bench = bench((0..3).map(|_| openai::text("a"))).await;
    for (rest, connections) in [(0, 1), (29, 1), (31, 2)] {
        // The connection comes back first; its rest begins then.
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_secs(rest)).await;
        bench.send(&request("hi")).await.expect("an answer");
        assert_eq!(
            bench.server.progress().connections,
            connections,
            "after {rest}s"
        );
    }
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    const AT_ONCE: usize = 12;
    let held = || {
        let begin = Reply::events([delta(&json!({"content": "a"}))]);
        begin.then([Action::Stall]).then(openai::text("b").actions)
    };
    let bench = bench((0..2 * AT_ONCE).map(|_| held())).await;
    for round in 1..=2 {
        let mut streams: Vec<_> = (0..AT_ONCE)
            .map(|_| bench.registry.stream(request("hi")))
            .collect();
        for stream in &mut streams {
            assert!(matches!(
                stream.next().await,
                Some(Ok(Chunk::Answering { .. }))
            ));
        }
        (0..AT_ONCE).for_each(|_| bench.server.release());
        for stream in streams {
            let rest: Vec<_> = stream.collect().await;
            assert!(matches!(rest.last(), Some(Ok(Chunk::Stop(_)))), "{rest:?}");
        }
        // Eight of the first twelve were kept.
        let want = if round == 1 { AT_ONCE } else { AT_ONCE + 4 };
        assert_eq!(bench.server.progress().connections, want, "round {round}");
    }
}
