//! How older clients answer asks.

use super::*;
use serde_json::{Value, json};

/// Reads a stream up to the ask that somebody waits on, and gives it.
async fn asked(client: &mut RawClient) -> Message {
    loop {
        let event = client.read().await.message(answer::STREAM);
        assert!(!event.fields().contains(&event::END), "{event:?}");
        if event.fields().contains(&event::ASK_USER) {
            return event.message(event::ASK_USER);
        }
    }
}

fn reply(content: &str) -> Fields {
    pair("crab", "user").text(3, content)
}

#[tokio::test]
async fn an_approval_is_answered_by_its_question() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut streaming = RawClient::connect(&env).await;
    let mut client = RawClient::connect(&env).await;
    let order = r#"/tool bash {"command":"touch made"}"#;
    let cwd = env.work.to_str().unwrap();
    let order = say("crab", order, "user").text(5, cwd);
    streaming.send(STREAM, order).await;
    let ask = asked(&mut streaming).await;
    let question = ask.message(1).text(1);
    let labels: Vec<String> = ask
        .message(1)
        .messages(3)
        .iter()
        .map(|o| o.text(1))
        .collect();
    assert_eq!(
        labels,
        ["Allow once", "Allow always", "Deny", "Allow prefix"]
    );

    // What belongs to another question answers none.
    let other = reply(&json!({"Run `rm`?": "Allow once"}).to_string());
    let (code, message) = client.ask(REPLY_TO_ASK, other).await.error();
    assert_eq!(code, 400, "{message}");
    assert!(!env.work.join("made").exists());

    let once = reply(&json!({ question: "Allow once" }).to_string());
    let pong = client.ask(REPLY_TO_ASK, once).await;
    assert_eq!(pong.fields(), [answer::PONG], "{pong:?}");
    let events = to_end(&mut streaming).await;
    assert_eq!(events.last().unwrap().message(event::END).text(2), "");
    assert!(env.work.join("made").exists());
}

/// What the tool's result says of the answers.
fn answers(events: &[Message]) -> Value {
    const TOOL_RESULT: u64 = 5;
    let mut results = events.iter().flat_map(|event| event.messages(TOOL_RESULT));
    serde_json::from_str(&results.next().expect("a result").text(2)).unwrap()
}

#[tokio::test]
async fn several_questions_are_answered_one_at_a_time() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let questions = json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "options": [
            {"label": "Red", "description": ""}, {"label": "Blue", "description": ""},
        ]},
        {"question": "How many?", "header": "Number", "options": []},
        {"question": "Which sizes?", "header": "Sizes", "multi_select": true, "options": [
            {"label": "S", "description": ""}, {"label": "L", "description": ""},
        ]},
    ]});
    let want = json!({"Which colour?": "Blue", "How many?": "7", "Which sizes?": ["S", "L"]});
    let ways: [&[&str]; 3] = [
        &["2", "7", "S, L"],
        &[
            r#"{"Which colour?": "Blue"}"#,
            r#"{"How many?": "7"}"#,
            r#"{"Sizes": ["S", "L"]}"#,
        ],
        &[r#"{"How many?": "7", "Which colour?": "2", "Which sizes?": "1, 2"}"#],
    ];
    for way in ways {
        let mut streaming = RawClient::connect(&env).await;
        let order = format!("/tool ask_user {questions}");
        streaming.send(STREAM, say("crab", &order, "user")).await;
        assert_eq!(asked(&mut streaming).await.messages(1).len(), 3);
        for content in way {
            // Each over a connection of its own, as such clients do.
            let mut client = RawClient::connect(&env).await;
            let pong = client.ask(REPLY_TO_ASK, reply(content)).await;
            assert_eq!(pong.fields(), [answer::PONG], "{content}: {pong:?}");
        }
        assert_eq!(answers(&to_end(&mut streaming).await), want, "{way:?}");
        let mut client = RawClient::connect(&env).await;
        let late = client.ask(REPLY_TO_ASK, reply("more")).await.error();
        assert_eq!(late.0, 404, "{late:?}");
    }
}
