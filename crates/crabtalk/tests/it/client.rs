//! The client crate with a real daemon.

#[path = "../../../crabtalk-client/examples/ask.rs"]
#[expect(dead_code, reason = "its `main` is for people")]
mod example;

use crate::rig::{CRABTALK, ModelServer, Relay, TestEnv, within};
use crabtalk_client::{
    AttachMsg, Client, Endpoint, Error, GetStats, KillMsg, Replied, ReplyToAsk, RunNews, Starter,
    StreamMsg, SubscribeEvents, WatchNews, stream_event::Event,
};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use futures_util::{Stream, StreamExt};

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

fn client(home: impl AsRef<std::path::Path>) -> Client {
    Client::new(Endpoint::of_home(home), "e2e/1")
}

#[tokio::test]
async fn example_prints_the_answer() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut out = Vec::new();
    let asked = example::ask(&env.home, "hello", &mut out);
    within("the example's answer", asked).await.unwrap();
    let answer = String::from_utf8(out).unwrap();
    assert!(answer.contains("You told me: hello"), "{answer}");
}

#[tokio::test]
async fn daemon_starts_once_and_reports_startup_errors() {
    let env = TestEnv::new();
    let client = client(&env.home);
    let error = client.call(GetStats::default()).await.unwrap_err();
    assert!(matches!(error, Error::NoDaemon(_)), "{error:?}");
    assert!(error.advice().unwrap().contains("daemon start"));
    let starter = Starter::new(CRABTALK, &env.home);
    assert!(client.find_or_start(&starter).await.unwrap());
    assert!(!client.find_or_start(&starter).await.unwrap());
    let stats = client.call(GetStats::default()).await.unwrap();
    assert_eq!(stats.version, crabtalk_client::VERSION);
    let connection = client.connect().await.unwrap();
    assert_eq!(connection.difference(), None);
    assert_eq!(connection.welcome().unwrap().default_sender, "user");
    env.run(&["daemon", "stop"]).await.ok();

    env.config("model = 7\n");
    let error = client.find_or_start(&starter).await.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("the daemon ended at once"), "{said}");
    assert!(said.contains("config.toml"), "{said}");
}

#[tokio::test]
async fn errors_have_codes() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let client = client(&env.home);
    let error = client.call(KillMsg::default()).await.unwrap_err();
    assert_eq!(error.code(), Some(404));
    let late = ReplyToAsk {
        content: "y".into(),
        ask_id: Some("none".into()),
        ..ReplyToAsk::default()
    };
    assert_eq!(client.reply(late).await.unwrap(), Replied::TooLate);
    let mut refused = client.stream(say(""));
    let error = refused.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(400));
    assert!(refused.next().await.is_none());
}

/// Reads until an item matches.
async fn until<N, E: std::fmt::Debug>(
    news: &mut (impl Stream<Item = Result<N, E>> + Unpin),
    what: &str,
    is_it: impl Fn(&N) -> bool,
) -> Vec<N> {
    let mut heard = Vec::new();
    within(what, async {
        loop {
            let one = news.next().await.expect("more to come").unwrap();
            let found = is_it(&one);
            heard.push(one);
            if found {
                return;
            }
        }
    })
    .await;
    heard
}

fn text(news: &[RunNews]) -> String {
    let pieces = news.iter().filter_map(|news| match news {
        RunNews::Event(event) => match &event.event {
            Some(Event::Chunk(chunk)) => Some(chunk.content.as_str()),
            _ => None,
        },
        RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. } => None,
    });
    pieces.collect()
}

fn is_end(news: &RunNews) -> bool {
    matches!(news, RunNews::Event(event) if event.is_end())
}

#[tokio::test]
async fn streams_resume_after_lost_connections() {
    let words = ["one ", "two ", "three ", "four "];
    let reply = [4, 3, 2]
        .into_iter()
        .fold(openai::pieces(&words), Reply::held_after);
    let model = ModelServer::start(Script::openai([reply])).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let relay = Relay::start(&env);
    let client = client(relay.home());
    let mut run = client.stream(say("hello"));
    let is_text = |news: &RunNews| !text(std::slice::from_ref(news)).is_empty();
    let mut heard = until(&mut run, "the first word", is_text).await;
    for _ in 0..3 {
        relay.cut();
        let lost = until(&mut run, "the loss", |news| matches!(news, RunNews::Back)).await;
        assert!(matches!(lost[0], RunNews::Lost { .. }), "{lost:?}");
        model.release().await;
        heard.extend(until(&mut run, "another word", is_text).await);
    }
    heard.extend(until(&mut run, "the end", is_end).await);
    assert_eq!(text(&heard), words.concat());
    let of_kind = |kind: fn(&Event) -> bool| {
        let events = heard.iter().filter(|news| match news {
            RunNews::Event(event) => event.event.as_ref().is_some_and(kind),
            RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. } => false,
        });
        events.count()
    };
    assert_eq!(of_kind(|event| matches!(event, Event::Start(_))), 1);
    assert_eq!(of_kind(|event| matches!(event, Event::TextStart(_))), 1);
    assert_eq!(of_kind(|event| matches!(event, Event::UserMessage(_))), 0);
    assert!(run.next().await.is_none(), "nothing follows the end");
}

#[tokio::test]
async fn streams_report_runs_interrupted_by_a_crash() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let client = client(&env.home);
    let mut run = client.stream(say("/slow 60000 never to be said"));
    until(&mut run, "the start", |news| {
        matches!(news, RunNews::Event(_))
    })
    .await;
    daemon.kill().await;
    until(&mut run, "the loss", |news| {
        matches!(news, RunNews::Lost { .. })
    })
    .await;
    let _daemon = env.daemon().await;
    let heard = until(&mut run, "the end", is_end).await;
    let missing = |news: &RunNews| matches!(news, RunNews::Missing { .. });
    assert!(heard.iter().any(missing), "{heard:?}");
    let Some(RunNews::Event(event)) = heard.last() else {
        panic!("{heard:?}")
    };
    let Some(Event::End(end)) = &event.event else {
        panic!("{event:?}")
    };
    assert_eq!(end.run, 1);
    assert_ne!(end.code, 0, "{end:?}");
    // A new attachment gets the end of that run.
    let over = client.attach(AttachMsg::default()).next().await;
    assert!(is_end(&over.unwrap().unwrap()));
}

#[tokio::test]
async fn watches_resume_and_report_a_new_daemon() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let relay = Relay::start(&env);
    // The restart notice shows that the subscription has begun.
    let mut watch = client(relay.home()).watch(SubscribeEvents {
        life: "another".into(),
        ..SubscribeEvents::default()
    });
    let is_new = |news: &WatchNews| matches!(news, WatchNews::Restarted { .. });
    until(&mut watch, "the subscription", is_new).await;
    let direct = client(&env.home);
    let is_done = |news: &WatchNews| matches!(news, WatchNews::Event(event) if event.kind == 5);
    let run = async |content: &str| {
        direct
            .stream(say(content))
            .map(Result::unwrap)
            .collect::<Vec<_>>()
            .await
    };
    let (first, _) = tokio::join!(until(&mut watch, "a run", is_done), run("one"));
    let last = |news: &[WatchNews]| match news.last() {
        Some(WatchNews::Event(event)) => event.seq,
        other => panic!("{other:?}"),
    };
    relay.cut();
    run("two").await;
    let second = until(&mut watch, "the run meanwhile", is_done).await;
    assert!(matches!(second[0], WatchNews::Lost { .. }), "{second:?}");
    assert_eq!(second[1], WatchNews::Back { missed: 0 });
    let WatchNews::Event(event) = &second[2] else {
        panic!("{second:?}")
    };
    assert_eq!(event.seq, last(&first) + 1);
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    until(&mut watch, "the new daemon", is_new).await;
}
