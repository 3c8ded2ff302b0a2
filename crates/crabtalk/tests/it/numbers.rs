//! Requests by their numbers on the wire, without Hello (WIRE-5).

use crate::rig::{Fields, RawClient, TestEnv};
use std::fs;

const SEND: u64 = 1;
const UPDATE_AGENT: u64 = 18;
const PING: u64 = 30;

/// Members of the answer's envelope.
const PONG: u64 = 2;
const RESPONSE: u64 = 3;
const AGENT: u64 = 11;

#[tokio::test]
async fn client_without_hello_is_served() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    let pong = client.ask(PING, Fields::default()).await;
    assert_eq!(pong.fields(), [PONG]);

    let said = Fields::default().text(1, "crab").text(2, "good morning");
    let response = client.ask(SEND, said.text(4, "tg:7")).await;
    let response = response.message(RESPONSE);
    assert_eq!(response.text(1), "crab");
    assert!(response.text(2).contains("You told me: good morning"));
    let (code, message) = client.ask(99, Fields::default()).await.error();
    assert_eq!(code, 400, "{message}");
}

#[tokio::test]
async fn update_with_an_empty_prompt_keeps_it() {
    let env = TestEnv::new();
    let ada = "---\ndescription: first\n---\nYou are Ada, and you rhyme.\n";
    env.write(".crabtalk/config/agents/ada.md", ada);
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    for (agent, prompt) in [
        ("ada", "You are Ada, and you rhyme."),
        ("crab", "You are Crab"),
    ] {
        let edit = Fields::default().text(1, agent);
        let edit = edit.text(2, r#"{"description":"second"}"#).text(3, "");
        let info = client.ask(UPDATE_AGENT, edit).await.message(AGENT);
        assert_eq!(info.text(2), "second");
        let text = fs::read_to_string(env.home.join(format!("config/agents/{agent}.md"))).unwrap();
        assert!(text.contains(prompt), "{text}");
        assert!(text.contains("second") && !text.contains("first"), "{text}");
    }
}
