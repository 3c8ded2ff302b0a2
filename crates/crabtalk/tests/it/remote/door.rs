//! Listeners, tokens and certificates.

use super::{Elsewhere, PLAIN, TLS, client_at, token};
use crate::rig::{ModelServer, eventually, within};
use crabtalk_client::{
    AttachMsg, Error, GetStats, ListTokensMsg, NewToken, RemoveTokenMsg, RunNews, StreamMsg,
    stream_event::Event,
};
use crabtalk_proto::Ping;
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use std::fs;
use tokio::net::TcpStream;

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

#[tokio::test]
async fn nothing_listens_by_default() {
    let elsewhere = Elsewhere::with("").await;
    let listed = elsewhere.owner().call(ListTokensMsg {}).await.unwrap();
    assert!(listed.listen.is_empty() && listed.fingerprint.is_empty());
    let stats = elsewhere.owner().call(GetStats::default()).await.unwrap();
    assert!(stats.services.iter().all(|service| service.name != "tcp"));
    let log = elsewhere.daemon.stderr();
    assert!(!log.contains("listening"), "{log}");
    let folder = elsewhere.env.home.join("state/tls");
    assert!(!folder.exists());
}

#[tokio::test]
async fn token_talks_under_its_own_name() {
    for config in [PLAIN, TLS] {
        let elsewhere = Elsewhere::with(config).await;
        let made = elsewhere.token(token("phone", "talk", &[])).await;
        let phone = client_at(&made.listen[0], &made);
        let connection = phone.connect().await.unwrap();
        let welcome = connection.welcome();
        assert_eq!(welcome.default_sender, "phone");
        assert_eq!(welcome.role, "talk");
        let mut run = phone.stream(say("hello"));
        let mut said = String::new();
        while let Some(news) = within("the run", run.next()).await {
            if let RunNews::Event(event) = news.unwrap()
                && let Some(Event::Chunk(chunk)) = event.event
            {
                said.push_str(&chunk.content);
            }
        }
        assert!(said.contains("You told me: hello"), "{said}");
        let logs = elsewhere.env.logs();
        let first = fs::read_to_string(&logs[0]).unwrap();
        assert!(first.contains("\"created_by\":\"phone\""), "{first}");
        assert!(first.contains("client:token/phone"), "{first}");
        // The file has only a hash of the token.
        let kept = fs::read_to_string(elsewhere.env.home.join("config/config.toml")).unwrap();
        assert!(kept.contains("sha256:") && !kept.contains(&made.token));
        // Each refusal is delayed.
        for wrong in ["", &made.token[..20]] {
            let thief = NewToken {
                token: wrong.to_owned(),
                ..made.clone()
            };
            let Err(error) = client_at(&made.listen[0], &thief).connect().await else {
                panic!("{wrong} is a token");
            };
            assert_eq!(error.code(), Some(401), "{wrong}: {error:?}");
        }
        let log = elsewhere.daemon.stderr();
        assert!(log.contains("a token was refused") && !log.contains(&made.token));
    }
}

#[tokio::test]
async fn removed_token_loses_its_connections() {
    let answer = openai::pieces(&["one ", "two"]).held_after(2);
    let model = ModelServer::start(Script::openai([answer])).await;
    let elsewhere = Elsewhere::speaking(&model, TLS).await;
    let phone = elsewhere.talker("phone", &[]).await;
    let other = elsewhere.talker("other", &[]).await;
    let mut idle = phone.connect().await.unwrap();
    let mut kept = other.connect().await.unwrap();
    let mut run = phone.stream(say("count"));
    loop {
        let news = within("the first word", run.next()).await.unwrap().unwrap();
        if let RunNews::Event(event) = news
            && let Some(Event::Chunk(_)) = event.event
        {
            break;
        }
    }
    let remove = RemoveTokenMsg {
        name: "phone".into(),
    };
    elsewhere.owner().call(remove).await.unwrap();
    let error = loop {
        match within("the stream's end", run.next()).await {
            Some(Ok(RunNews::Event(event))) => {
                assert!(
                    !matches!(event.event, Some(Event::End(_))),
                    "cut before its end"
                );
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("ended without a word"),
        }
    };
    assert_eq!(error.code(), Some(401), "{error:?}");
    let error = crabtalk_proto::Client::ping(&mut idle, Ping {}).await;
    assert!(error.is_err());
    crabtalk_proto::Client::ping(&mut kept, Ping {})
        .await
        .unwrap();
    // The run continues without its client (CONV-4).
    let attach = AttachMsg {
        sender: "phone".into(),
        ..AttachMsg::default()
    };
    let mut attached = elsewhere.owner().attach(attach);
    let (mut said, mut last) = (String::new(), None);
    while let Some(news) = within("its end", attached.next()).await {
        let RunNews::Event(event) = news.unwrap() else {
            panic!("the socket was cut")
        };
        if let Some(Event::Chunk(chunk)) = &event.event {
            // No client with the token reads its end.
            if said.is_empty() {
                model.release().await;
            }
            said.push_str(&chunk.content);
        }
        last = event.event;
    }
    let Some(Event::End(end)) = last else {
        panic!("{last:?}")
    };
    assert_eq!((end.code, said.as_str()), (0, "one two"));
}

#[tokio::test]
async fn reload_changes_only_changed_listeners() {
    // Reserves the port while it is closed.
    let listen = format!("listen = \"127.0.0.1:{}\"", crabtalk_testkit::ports::free());
    let plain = format!("[tcp]\n{listen}\n");
    let elsewhere = Elsewhere::with(&plain).await;
    let phone = elsewhere.talker("phone", &[]).await;
    let mut open = phone.connect().await.unwrap();
    let config = elsewhere.env.home.join("config/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let address = elsewhere.address().await;
    let with = |other: &str| text.replace(&listen, other);
    let reload = async |text: String| {
        fs::write(&config, text).unwrap();
        elsewhere.env.run(&["daemon", "reload"]).await
    };
    // A second listener next to the first.
    reload(with(&format!("listen = [\"{address}\", \"[::1]:0\"]")))
        .await
        .ok();
    let listed = elsewhere.owner().call(ListTokensMsg {}).await.unwrap();
    assert_eq!(listed.listen.len(), 2, "{listed:?}");
    crabtalk_proto::Client::ping(&mut open, Ping {})
        .await
        .unwrap();
    // A used port is reported, and the other listeners work.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let both = format!("listen = [\"{address}\", \"127.0.0.1:{port}\"]");
    let said = reload(with(&both)).await;
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(
        said.contains(&format!("port {port} of 127.0.0.1 is taken")),
        "{said}"
    );
    crabtalk_proto::Client::ping(&mut open, Ping {})
        .await
        .unwrap();
    drop(taken);
    eventually("the port that was taken", async || {
        let listed = elsewhere.owner().call(ListTokensMsg {}).await.unwrap();
        (listed.listen.len() == 2).then_some(())
    })
    .await;
    // Without a listener.
    reload(text.replace(&plain, "")).await.ok();
    let listed = elsewhere.owner().call(ListTokensMsg {}).await.unwrap();
    assert!(listed.listen.is_empty());
    eventually("the port to be closed", async || {
        TcpStream::connect(&address).await.is_err().then_some(())
    })
    .await;
    // With TLS on the earlier port.
    let tls = format!("listen = \"{address}\"\ntls = true");
    reload(with(&tls)).await.ok();
    let listed = elsewhere.owner().call(ListTokensMsg {}).await.unwrap();
    assert_eq!(listed.listen, [address]);
    assert!(listed.fingerprint.starts_with("SHA256:"));
}

#[tokio::test]
async fn certificate_is_kept_and_a_changed_one_refused() {
    let elsewhere = Elsewhere::with(TLS).await;
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    let Elsewhere { env, daemon } = elsewhere;
    daemon.kill().await;
    let elsewhere = Elsewhere::of(env).await;
    let address = elsewhere.address().await;
    client_at(&address, &made).connect().await.unwrap();
    let Elsewhere { env, daemon } = elsewhere;
    daemon.kill().await;
    fs::remove_dir_all(env.home.join("state/tls")).unwrap();
    let elsewhere = Elsewhere::of(env).await;
    let address = elsewhere.address().await;
    let error = client_at(&address, &made).connect().await.err().unwrap();
    assert!(matches!(error, Error::Unsafe(_)), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("is not the pinned one"), "{said}");
}
