//! Refusals of the command line, and the audit of remote clients.

use super::{Elsewhere, PLAIN, token};
use crabtalk_client::{ReplyToAsk, StreamMsg};
use futures_util::StreamExt;
use std::fs;

#[tokio::test]
async fn audit_records_decisions_and_refusals() {
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
    assert!(refused.contains("the audit chain is intact"), "{refused}");
}

#[tokio::test]
async fn full_disk_refuses_audited_requests_but_not_kill() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let owner = elsewhere.owner();
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    // A folder at the file's path makes it unwritable, even for root.
    let path = elsewhere.env.home.join("state/records.db");
    let Elsewhere { daemon, env } = elsewhere;
    daemon.kill().await;
    fs::rename(&path, env.root().join("aside")).unwrap();
    fs::create_dir(&path).unwrap();
    let elsewhere = Elsewhere::of(env).await;
    let phone = super::client_at(&elsewhere.address().await, &made);
    let Err(error) = phone.connect().await else {
        panic!("a login that cannot be recorded");
    };
    assert!(
        error.to_string().contains("audit entry cannot be written"),
        "{error:?}"
    );
    let set = elsewhere
        .env
        .run(&["config", "set", "limits.queued_runs", "3"])
        .await;
    assert!(set.fails(1).contains("audit entry cannot be written"));
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
