//! The guide, followed word by word over loopback, and the record of it.

use super::{Elsewhere, PLAIN, TLS, token};
use crate::rig::TestEnv;
use crabtalk_client::{ReplyToAsk, StreamMsg};
use futures_util::StreamExt;
use std::fs;

const GUIDE: &str = include_str!("../../../../../docs/guide/remote.md");

/// The commands of a section.
fn commands(section: &str) -> Vec<String> {
    let begin = GUIDE.find(&format!("## {section}\n")).expect("a section");
    let text = &GUIDE[begin + 3..];
    let text = &text[..text.find("\n## ").unwrap_or(text.len())];
    let blocks = text.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_guide_lets_a_phone_in_and_out_again() {
    let machine = TestEnv::new();
    let phone = TestEnv::new();
    let daemon = machine.daemon().await;
    let sh = |line: &str| line.replacen("crabtalk", "\"$CRABTALK\"", 1);
    let [open, add] = &commands("On the machine")[..] else {
        panic!("two commands")
    };
    machine
        .shell(&sh(&open.replace("0.0.0.0:6688", "127.0.0.1:0")))
        .await
        .ok();
    let added = machine.shell(&sh(add)).await;
    let said = |begin: &str| {
        let line = added
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix(begin));
        line.unwrap_or_else(|| panic!("{begin}: {added:?}"))
            .to_owned()
    };
    let address = said("crabtalk: listening on ");
    let fingerprint = said("crabtalk: certificate ");
    let secret = added.stdout.trim().to_owned();
    assert!(secret.starts_with("ctk_"), "{secret}");

    let there = |line: &str| {
        sh(line)
            .replace("192.168.1.7:6688", &address)
            .replace("SHA256:77c2..", &fingerprint)
    };
    let [remote, ask, history] = &commands("On the phone")[..] else {
        panic!("three commands")
    };
    let added = phone
        .shell(&format!("echo {secret} | {}", there(remote)))
        .await;
    assert!(
        added.stderr.contains("role talk, speaking as phone"),
        "{added:?}"
    );
    let answer = phone.shell(&there(ask)).await.ok();
    assert!(answer.contains("hello from the train"), "{answer}");
    let shown = phone.shell(&there(history)).await.ok();
    assert!(shown.contains("hello from the train"), "{shown}");

    let [remove] = &commands("When it is lost")[..1] else {
        panic!("a command")
    };
    machine.shell(&sh(remove)).await.ok();
    let refused = phone.shell(&there(ask)).await.fails(3);
    assert!(
        refused.contains("this token is unknown or has expired"),
        "{refused}"
    );
    let [_, audit, verify] = &commands("When it is lost")[..] else {
        panic!("three commands")
    };
    let record = machine.shell(&sh(audit)).await.ok();
    for what in ["config-set", "token-created", "login", "token-removed"] {
        assert!(record.contains(what), "{what}: {record}");
    }
    assert!(!record.contains(&secret));
    let said = machine.shell(&sh(verify)).await;
    assert!(said.stderr.contains("all of them fit"), "{said:?}");
    let kept = fs::read_to_string(phone.home.join("state/remotes.toml")).unwrap();
    assert!(kept.contains(&fingerprint));
    drop(daemon);
}

#[tokio::test]
async fn a_changed_certificate_and_an_address_in_clear_are_refused_by_the_command_line() {
    let elsewhere = Elsewhere::with(TLS).await;
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    let wrong = format!("SHA256:{}", "0".repeat(64));
    let address = format!("tcp://{}", made.listen[0]);
    let words = ["remote", "add", "home", &address, "--fingerprint", &wrong];
    let refused = elsewhere
        .env
        .run_with(&words, Some(&made.token))
        .await
        .fails(1);
    assert!(refused.contains("nothing was added"), "{refused}");
    let words = ["--connect", "tcp://192.0.2.1", "ask", "hello"];
    let refused = elsewhere.env.run(&words).await.fails(2);
    assert!(
        refused.contains("nothing goes there unencrypted"),
        "{refused}"
    );
    let words = ["--connect", "nowhere", "daemon", "stop"];
    let refused = elsewhere.env.run(&words).await.fails(2);
    assert!(refused.contains("run it there"), "{refused}");
}

#[tokio::test]
async fn what_was_allowed_denied_refused_and_out_of_scope_is_recorded_with_what_was_shown() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let owner = elsewhere.owner();
    elsewhere.env.agent("narrow", "tools: [read]");
    elsewhere.env.run(&["daemon", "reload"]).await.ok();
    let phone = elsewhere.talker("phone", &[]).await;
    for (command, answer) in [("echo one", "Allow once"), ("echo two", "Deny: not now")] {
        let call = format!("/tool bash {{\"command\":\"{command}\"}}");
        let said = StreamMsg {
            content: call,
            ..StreamMsg::default()
        };
        let mut run = owner.stream(said);
        while let Some(news) = run.next().await {
            if let crabtalk_client::RunNews::Event(event) = news.unwrap()
                && let Some(crabtalk_proto::stream_event::Event::AskUser(ask)) = event.event
            {
                let reply = ReplyToAsk {
                    ask_id: Some(ask.ask_id),
                    content: answer.into(),
                    ..ReplyToAsk::default()
                };
                owner.call(reply).await.unwrap();
            }
        }
    }
    let out_of_scope = StreamMsg {
        agent: "narrow".into(),
        content: "/tool bash {\"command\":\"true\"}".into(),
        ..StreamMsg::default()
    };
    let mut run = owner.stream(out_of_scope);
    while let Some(news) = run.next().await {
        news.unwrap();
    }
    let refused = phone.call(crabtalk_proto::GetConfig {}).await.unwrap_err();
    assert_eq!(refused.code(), Some(403));
    let record = crate::rig::eventually("the record of all", async || {
        let record = elsewhere.env.run(&["audit", "--json"]).await.ok();
        let all = [
            "\"allowed\"",
            "\"denied\"",
            "\"scope-violation\"",
            "\"a-request-was-refused\"",
        ];
        all.iter()
            .all(|what| record.contains(what))
            .then_some(record)
    })
    .await;
    let of = |what: &str| {
        let line = record
            .lines()
            .find(|line| line.contains(&format!("\"{what}\"")));
        line.unwrap_or_else(|| panic!("{what}: {record}"))
            .to_owned()
    };
    let allowed = of("allowed");
    assert!(
        allowed.contains("echo one") && allowed.contains("\"by\":\"local\""),
        "{allowed}"
    );
    let denied = of("denied");
    assert!(
        denied.contains("echo two") && denied.contains("not now"),
        "{denied}"
    );
    assert!(of("a-request-was-refused").contains("token/phone"));
    let refused = elsewhere.env.run(&["audit", "new-chain"]).await.fails(1);
    assert!(
        refused.contains("all entries of the audit fit"),
        "{refused}"
    );
}

#[tokio::test]
async fn on_a_disk_that_takes_nothing_what_needs_an_entry_is_refused_and_a_kill_is_not() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let owner = elsewhere.owner();
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    // A folder in the file's place: nothing can be written there, whoever tries.
    let path = elsewhere.env.home.join("state/records.db");
    let Elsewhere { daemon, env } = elsewhere;
    daemon.kill().await;
    fs::rename(&path, env.root().join("aside")).unwrap();
    fs::create_dir(&path).unwrap();
    let elsewhere = Elsewhere::of(env).await;
    let phone = super::client_at(&elsewhere.address().await, &made);
    let Err(error) = phone.connect().await else {
        panic!("a login that nobody can record");
    };
    assert!(
        error.to_string().contains("cannot be recorded"),
        "{error:?}"
    );
    let set = elsewhere
        .env
        .run(&["config", "set", "limits.queued_runs", "3"])
        .await;
    assert!(set.fails(1).contains("cannot be recorded"));
    let slow = StreamMsg {
        content: "/slow 60000 a b c d e f g h".into(),
        ..StreamMsg::default()
    };
    let mut run = owner.stream(slow);
    run.next().await.unwrap().unwrap();
    owner
        .call(crabtalk_client::KillMsg::default())
        .await
        .unwrap();
}
