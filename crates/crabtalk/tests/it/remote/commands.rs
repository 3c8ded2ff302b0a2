//! Commands over `--connect`.

use super::{Elsewhere, PLAIN, token};
use crate::rig::{TestEnv, within};
use crabtalk_client::{RunNews, StreamMsg, stream_event::Event};
use futures_util::StreamExt;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Another machine's home, with the daemon as remote under these tokens.
async fn knowing(elsewhere: &Elsewhere, tokens: &[(&str, &str)]) -> TestEnv {
    let there = TestEnv::new();
    for (name, role) in tokens {
        let made = elsewhere.token(token(name, role, &[])).await;
        let address = format!("tcp://{}", made.listen[0]);
        let add = ["remote", "add", name, &address];
        let added = there.run_with(&add, Some(&made.token)).await;
        assert_eq!(added.code, Some(0), "{added:?}");
    }
    there
}

#[tokio::test]
async fn remote_run_is_followed_and_approved_by_role() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let tokens = [("phone", "talk"), ("ops", "operate"), ("boss", "admin")];
    let there = knowing(&elsewhere, &tokens).await;
    let mut run = elsewhere.owner().stream(StreamMsg {
        content: "/tool bash {\"command\":\"echo sum-$((40 + 2))\"}".into(),
        ..StreamMsg::default()
    });
    let id = within("the question", async {
        loop {
            if let RunNews::Event(event) = run.next().await.unwrap().unwrap()
                && let Some(Event::AskUser(ask)) = event.event
            {
                return ask.ask_id;
            }
        }
    })
    .await;
    // A token without the role neither sees nor answers the ask.
    for who in ["phone", "ops"] {
        let listed = there.run(&["--connect", who, "asks"]).await;
        assert!(
            listed.stderr.contains("no pending questions or approvals"),
            "{listed:?}"
        );
        let words = ["--connect", who, "approve", "--yes", &id];
        let said = there.run(&words).await;
        assert_ne!(said.code, Some(0), "{said:?}");
    }
    let words = ["--connect", "phone", "--as", "user", "attach"];
    let refused = there.run(&words).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let mut attach = there.program(crate::rig::CRABTALK);
    attach.args(["--connect", "boss", "--as", "user", "attach"]);
    attach.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut attached = attach.spawn().unwrap();
    let listed = there.run(&["--connect", "boss", "asks"]).await.ok();
    assert!(
        listed.contains(&id) && listed.contains("echo sum-"),
        "{listed}"
    );
    // The attached client reports the ask.
    let mut said = BufReader::new(attached.stderr.take().unwrap()).lines();
    within("the question, there", async {
        while !said
            .next_line()
            .await
            .unwrap()
            .unwrap()
            .contains("waiting for an answer")
        {}
    })
    .await;
    let words = ["--connect", "boss", "approve", "--yes", &id];
    let allowed = there.run(&words).await;
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let attached = within("the end", attached.wait_with_output())
        .await
        .unwrap();
    let mut shown = String::from_utf8_lossy(&attached.stdout).into_owned();
    while let Some(line) = said.next_line().await.unwrap() {
        shown += &line;
    }
    let ended = attached.status.success();
    assert!(ended && shown.contains("sum-42"), "{shown}");
    let record = elsewhere.env.run(&["audit", "--json"]).await.ok();
    let allowed = record.lines().find(|line| line.contains("\"allowed\""));
    assert!(
        allowed.unwrap().contains("\"by\":\"admin/boss\""),
        "{record}"
    );
}
