//! The client crate with a real daemon.

#[path = "../../../crabtalk-client/examples/ask.rs"]
#[expect(dead_code, reason = "its `main` is for people")]
mod example;

use crate::rig::{CRABTALK, TestEnv, within};
use crabtalk_client::{
    AttachMsg, Client, Endpoint, Error, GetStats, RunNews, Starter, StreamMsg, stream_event::Event,
};
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
    assert_eq!(connection.welcome().default_sender, "user");
    env.run(&["daemon", "stop"]).await.ok();

    env.config("model = 7\n");
    let error = client.find_or_start(&starter).await.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("the daemon ended at once"), "{said}");
    assert!(said.contains("config.toml"), "{said}");
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

fn is_end(news: &RunNews) -> bool {
    matches!(news, RunNews::Event(event) if event.is_end())
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
    // A new attachment returns the end of that run.
    let over = client.attach(AttachMsg::default()).next().await;
    assert!(is_end(&over.unwrap().unwrap()));
}
