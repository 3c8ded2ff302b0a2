//! Providers that fail: what is tried again, what is not, what is said.

mod connections;
#[path = "../support/mod.rs"]
mod support;

use crabtalk_domain::Message;
use crabtalk_domain::model::{Chunk, ErrorKind, Model};
use crabtalk_model::{Kind, ModelConfig, ProviderConfig, Registry, Secret};
use crabtalk_testkit::scripted::openai::{self, delta};
use crabtalk_testkit::scripted::{Action, Reply, Script, Server};
use futures_util::StreamExt;
use serde_json::json;
use std::time::Duration;
use support::{Bench, provider, request, site};
use tokio::time::Instant;

async fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Kind::OpenAi, Script::openai(replies)).await
}

/// Runs with paused time, which moves only while everybody waits; a real
/// socket would make it jump, so that a timeout is fed by a stalled server.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begin = Instant::now();
    (work.await, begin.elapsed())
}

#[tokio::test]
async fn invalid_requests_fail_at_once_with_the_reason() {
    for (reply, part) in [
        (Reply::page(404, &[], "<html>"), "404"),
        (Reply::page(404, &[], ""), "base_url"),
        (Reply::error(422, "x", "no such field"), "no such field"),
    ] {
        let bench = bench([reply, openai::text("never")]).await;
        let error = bench.send(&request("hi")).await.expect_err(part);
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
        assert!(error.message.contains(part), "{error}");
        assert_eq!(bench.server.progress().requests, 1, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_tried_again() {
    let hi = || delta(&json!({"content": ""}));
    for reply in [
        Reply::error(500, "server_error", "oops"),
        Reply::error(503, "x", "busy"),
        Reply::error(529, "overloaded_error", "busy"),
        Reply::page(429, &[], ""),
        Reply::rate_limited("0"),
        Reply::new([Action::Cut]),
        Reply::new([Action::Raw("garbage\r\n\r\n".into()), Action::Cut]),
        Reply::events([hi()]).then([Action::Cut]),
        Reply::events(["{oops"]),
        Reply::events([json!({"error": {"message": "busy"}}).to_string()]),
    ] {
        let bench = bench([reply.clone(), reply.clone(), openai::text("at last")]).await;
        let answer = bench.send(&request("hi")).await.expect("the third attempt");
        assert_eq!(answer.content, "at last", "{reply:?}");
        assert_eq!(bench.server.progress().requests, 3, "{reply:?}");
        let sent = bench.server.requests();
        assert_eq!(sent[0].text, sent[2].text);
    }
}

/// Notices before an answer begins.
fn notices(chunks: &[Chunk]) -> Vec<&str> {
    let notice = |chunk: &Chunk| matches!(chunk, Chunk::Notice(_));
    assert!(chunks.iter().is_sorted_by_key(|chunk| !notice(chunk)));
    let all = chunks.iter();
    all.filter_map(|chunk| {
        let Chunk::Notice(what) = chunk else {
            return None;
        };
        Some(what.as_str())
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn long_wait_is_announced() {
    let bench = bench([Reply::rate_limited("8"), openai::text("ok")]).await;
    let mut stream = bench.registry.stream(request("hi"));
    let (told, took) = timed(stream.next()).await;
    let Some(Ok(Chunk::Notice(told))) = told else {
        panic!("{told:?}")
    };
    assert!(
        told.contains("429") && told.ends_with("; retrying in 8 s"),
        "{told}"
    );
    assert!(took < Duration::from_secs(1), "{took:?}");
    let rest: Vec<_> = stream.collect().await;
    assert!(rest.contains(&Ok(Chunk::Text("ok".into()))), "{rest:?}");
    // Short waits are not reported.
    let bench = self::bench([Reply::error(500, "x", "oops"), openai::text("ok")]).await;
    let chunks = bench
        .chunks(&request("hi"))
        .await
        .expect("the second attempt");
    assert_eq!(notices(&chunks), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn fallback_is_announced() {
    let first = Server::start(Script::openai([Reply::error(401, "x", "bad key")])).await;
    let second = Server::start(Script::openai([openai::text("here")])).await;
    let providers = vec![
        provider("a", Kind::OpenAi, &first.url(), &["one"]),
        provider("b", Kind::OpenAi, &second.url(), &["two"]),
    ];
    let registry = Registry::new(providers, None).expect("a good configuration");
    let mut asked = request("hi");
    asked.fallback = vec!["two".into()];
    let chunks: Vec<_> = registry.stream(asked).map(Result::unwrap).collect().await;
    let [told] = notices(&chunks)[..] else {
        panic!("{chunks:?}")
    };
    assert!(told.contains("bad key"), "{told}");
    assert!(told.ends_with("; trying two instead"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn waits_double_within_their_upper_half() {
    let script = Script::openai([Reply::error(500, "x", "oops")]).repeating();
    let bench = Bench::with(Kind::OpenAi, script, |config| config.max_retries = 3).await;
    for _ in 0..20 {
        let (_, took) = timed(bench.send(&request("hi"))).await;
        let ms = took.as_millis();
        assert!(
            (350..=710).contains(&ms),
            "50..100 + 100..200 + 200..400, got {ms}"
        );
    }
}

#[tokio::test]
async fn missing_key_is_an_error() {
    let mut config = ProviderConfig::new("openai", Kind::OpenAi);
    config.models = vec![ModelConfig::new("gpt")];
    config.key_problem = Some("the environment variable OPENAI_API_KEY is not set".into());
    let offline = ProviderConfig::offline();
    let registry = Registry::new(vec![config, offline], None).expect("a good configuration");
    let error = registry.send(request("hi")).await.expect_err("no key");
    assert_eq!(error.kind, ErrorKind::NotConfigured);
    assert!(
        error.message.contains("OPENAI_API_KEY is not set"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn fallbacks_are_tried_in_order_and_say_who_answered() {
    let first = Server::start(Script::openai([Reply::error(401, "x", "bad key")])).await;
    let second = Server::start(Script::openai(
        (0..3).map(|_| Reply::error(500, "x", "down")),
    ))
    .await;
    let third = Server::start(Script::openai([openai::text("here")])).await;
    let registry = Registry::new(
        vec![
            provider("a", Kind::OpenAi, &first.url(), &["one"]),
            provider("b", Kind::OpenAi, &second.url(), &["two"]),
            provider("c", Kind::OpenAi, &third.url(), &["three"]),
        ],
        None,
    )
    .expect("a good configuration");
    let mut asked = request("hi");
    asked.fallback = vec!["two".into(), "gone".into(), "three".into()];
    let answer = registry.send(asked.clone()).await.expect("the third one");
    assert_eq!(
        (answer.provider.as_str(), answer.model.as_str()),
        ("c", "three")
    );
    assert_eq!(answer.content, "here");
    assert_eq!(
        (first.progress().requests, second.progress().requests),
        (1, 3)
    );

    // All fail: the kind of the first, the messages of all.
    asked.fallback = vec!["two".into(), "gone".into()];
    first.push(Reply::error(401, "x", "bad key"));
    (0..3).for_each(|_| second.push(Reply::error(500, "x", "down")));
    let error = registry.send(asked).await.expect_err("all fail");
    assert_eq!(error.kind, ErrorKind::Refused);
    for part in ["bad key", "down", "the model \"gone\" is unknown"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn no_fallback_after_content_or_for_long_histories() {
    let cut = openai::pieces(&["a", "b"]).cut_after(2);
    let long = Reply::error(400, "context_length_exceeded", "too long");
    let first = Server::start(Script::openai([cut, long])).await;
    let second = Server::start(Script::openai([openai::text("never")])).await;
    let registry = Registry::new(
        vec![
            provider("a", Kind::OpenAi, &first.url(), &["one"]),
            provider("b", Kind::OpenAi, &second.url(), &["two"]),
        ],
        None,
    )
    .expect("a good configuration");
    let mut asked = request("hi");
    asked.fallback = vec!["two".into()];
    let error = registry.send(asked.clone()).await.expect_err("cut");
    assert_eq!(error.kind, ErrorKind::Malformed);
    let error = registry.send(asked).await.expect_err("too long");
    assert_eq!(error.kind, ErrorKind::TooLong);
    assert_eq!(second.progress().requests, 0);
}

#[tokio::test]
async fn azure_and_ollama_speak_the_same_format_with_their_own_keys() {
    let server = Server::start(Script::openai([openai::text("a"), openai::text("b")])).await;
    let url = format!(
        "http://{}/openai/deployments/d?api-version=1",
        server.address()
    );
    let mut azure = provider("az", Kind::Azure, &url, &["a"]);
    azure.headers.push(("x-team".into(), "crab-team".into()));
    let mut ollama = provider(
        "ol",
        Kind::Ollama,
        &format!("http://{}", server.address()),
        &["o"],
    );
    ollama.api_key = None;
    let registry = Registry::new(vec![azure, ollama], None).expect("good");
    registry.send(request("hi")).await.expect("azure");
    let mut asked = request("hi");
    asked.model = "o".into();
    registry.send(asked).await.expect("ollama");
    let got = server.requests();
    assert_eq!(
        got[0].path,
        "/openai/deployments/d/chat/completions?api-version=1"
    );
    assert_eq!(got[0].header("api-key"), Some("sk-planted"));
    assert_eq!(got[0].header("x-team"), Some("crab-team"));
    assert_eq!(got[0].header("authorization"), None);
    assert_eq!(got[1].path, "/v1/chat/completions");
    assert_eq!(got[1].header("authorization"), None);
}

#[tokio::test]
async fn secrets_stay_out_of_errors_even_when_echoed() {
    let echo = "you sent Bearer sk-planted and header-planted";
    let bench = Bench::with(
        Kind::OpenAi,
        Script::openai([Reply::error(400, "x", echo)]),
        |config| {
            config.api_key = Some(Secret::new("sk-planted"));
            config
                .headers
                .push(("x-secret".into(), "header-planted".into()));
        },
    )
    .await;
    let error = bench.send(&request("hi")).await.expect_err("400");
    assert!(
        error.message.contains("you sent Bearer *** and ***"),
        "{error}"
    );
}

#[tokio::test]
async fn scripted_server_reports_unfinished_histories() {
    let bench = bench([openai::text("never")]).await;
    let orphan = support::history(vec![Message::user("a"), Message::tool("x", "r", false)]);
    let error = bench.send(&orphan).await.expect_err("an orphan");
    assert!(error.message.contains("result of no call"), "{error}");
}

#[tokio::test]
async fn web_site_is_not_taken_for_a_model_server() {
    let script = Script::openai([site()]);
    let bench = Bench::with(Kind::OpenAi, script, |config| config.max_retries = 0).await;
    let error = bench.send(&request("hi")).await.expect_err("a page");
    assert_eq!(error.kind, ErrorKind::Malformed);
    assert!(
        error
            .message
            .contains("check base_url. It begins with: <html>Welcome"),
        "{error}"
    );
}
