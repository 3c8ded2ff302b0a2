//! Clients of the 0.0.20 generation: their numbers, no Hello, nothing new sent
//! back (wire.md).

mod asks;
mod edits;
mod events;

use crate::rig::{Fields, Message, RawClient, TestEnv, within};

const SEND: u64 = 1;
const STREAM: u64 = 2;
const REPLY_TO_ASK: u64 = 3;
const LIST_ACTIVE: u64 = 4;
const KILL: u64 = 5;
const LIST: u64 = 7;
const LIST_PROVIDERS: u64 = 8;
const SET_PROVIDER: u64 = 9;
const GET_AGENT: u64 = 16;
const UPDATE_AGENT: u64 = 18;
const PING: u64 = 30;
const GET_CONFIG: u64 = 31;
const RELOAD: u64 = 32;
const GET_STATS: u64 = 33;
const SUBSCRIBE_EVENTS: u64 = 34;
const GET_CONVERSATION_HISTORY: u64 = 38;

/// Members of the answer's envelope.
mod answer {
    pub(super) const PONG: u64 = 2;
    pub(super) const RESPONSE: u64 = 3;
    pub(super) const STREAM: u64 = 4;
    pub(super) const ACTIVE: u64 = 5;
    pub(super) const LIST: u64 = 7;
    pub(super) const PROVIDERS: u64 = 8;
    pub(super) const AGENT: u64 = 11;
    pub(super) const CONFIG: u64 = 19;
    pub(super) const STATS: u64 = 20;
    pub(super) const EVENT: u64 = 21;
    pub(super) const HISTORY: u64 = 24;
}

/// Members of a stream event.
mod event {
    pub(super) const START: u64 = 1;
    pub(super) const CHUNK: u64 = 2;
    pub(super) const END: u64 = 7;
    pub(super) const ASK_USER: u64 = 8;
    pub(super) const SEQ: u64 = 50;
    pub(super) const FIRST_NEW: u64 = 60;
}

fn pair(agent: &str, sender: &str) -> Fields {
    Fields::default().text(1, agent).text(2, sender)
}

/// A SendMsg or StreamMsg.
fn say(agent: &str, content: &str, sender: &str) -> Fields {
    pair(agent, content).text(4, sender)
}

/// Reads a stream to its End; nothing that is new may be in it.
async fn to_end(client: &mut RawClient) -> Vec<Message> {
    let mut events = Vec::new();
    loop {
        let message = client.read().await;
        assert_eq!(message.fields(), [answer::STREAM], "{message:?}");
        let event = message.message(answer::STREAM);
        let members = event.fields().into_iter().filter(|f| *f != event::SEQ);
        assert!(members.clone().count() == 1, "{event:?}");
        assert!(members.clone().all(|f| f < event::FIRST_NEW), "{event:?}");
        let is_end = event.fields().contains(&event::END);
        events.push(event);
        if is_end {
            return events;
        }
    }
}

fn text(events: &[Message]) -> String {
    let chunks = events.iter().flat_map(|event| event.messages(event::CHUNK));
    chunks.map(|chunk| chunk.text(1)).collect()
}

#[tokio::test]
async fn an_old_client_talks_and_lists() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;

    let pong = client.ask(PING, Fields::default()).await;
    assert_eq!(pong.fields(), [answer::PONG]);

    let response = client.ask(SEND, say("crab", "good morning", "tg:7")).await;
    let response = response.message(answer::RESPONSE);
    assert_eq!(response.text(1), "crab");
    assert!(response.text(2).contains("You told me: good morning"));
    assert_eq!(
        (response.text(4), response.text(5)),
        ("offline".into(), "offline".into())
    );
    assert!(response.message(6).number(3) > 0, "{response:?}");

    client.send(STREAM, say("", "and again", "tg:7")).await;
    let events = to_end(&mut client).await;
    assert_eq!(events[0].message(event::START).text(1), "crab");
    assert!(text(&events).contains("You told me: and again"));
    let end = events.last().unwrap().message(event::END);
    assert_eq!((end.text(1), end.text(2)), ("crab".into(), String::new()));

    let active = client.ask(LIST_ACTIVE, pair("", "")).await;
    let active = active.message(answer::ACTIVE).message(1);
    assert_eq!(
        (active.text(1), active.text(2)),
        ("crab".into(), "tg:7".into())
    );
    assert_eq!(active.number(3), 4);

    let listed = client.ask(LIST, pair("", "tg:7")).await;
    let listed = listed.message(answer::LIST).message(1);
    assert_eq!(
        (listed.text(1), listed.text(2)),
        ("crab".into(), "tg:7".into())
    );
    assert_eq!((listed.number(3), listed.number(6)), (1, 4));
    // As such clients show it; around midnight it is both.
    let date = listed.text(8);
    assert!(["Today", "Yesterday"].contains(&date.as_str()), "{date}");
    let file = listed.text(5);
    assert!(env.sessions().join(&file).is_file(), "{file}");

    let history = Fields::default().text(1, &file);
    let history = client.ask(GET_CONVERSATION_HISTORY, history).await;
    let history = history.message(answer::HISTORY);
    assert_eq!(history.text(3), "crab");
    let said: Vec<_> = history
        .messages(1)
        .iter()
        .map(|message| (message.text(1), message.text(2)))
        .collect();
    assert_eq!(said.len(), 4);
    assert_eq!(said[0], ("user".into(), "good morning".into()));
    assert_eq!(said[3], ("assistant".into(), text(&events)));

    let stats = client.ask(GET_STATS, Fields::default()).await;
    let stats = stats.message(answer::STATS);
    assert_eq!((stats.number(3), stats.text(4)), (1, "offline".into()));
    let config = client.ask(GET_CONFIG, Fields::default()).await;
    assert!(config.message(answer::CONFIG).text(1).starts_with('{'));
    let reload = client.ask(RELOAD, Fields::default()).await;
    assert_eq!(reload.fields(), [answer::PONG]);
}

#[tokio::test]
async fn an_old_client_kills_and_is_refused_in_words() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut streaming = RawClient::connect(&env).await;
    let mut client = RawClient::connect(&env).await;

    let (code, message) = client.ask(KILL, pair("crab", "me")).await.error();
    assert_eq!(code, 404, "{message}");
    let (code, message) = client.ask(SEND, say("nobody", "hi", "me")).await.error();
    assert_eq!(code, 404);
    assert!(message.contains("crab"), "{message}");

    streaming
        .send(STREAM, say("crab", "/slow 60000 so slow", "me"))
        .await;
    let start = streaming.read().await.message(answer::STREAM);
    assert_eq!(start.fields()[0], event::START, "{start:?}");
    let killed = client.ask(KILL, pair("crab", "me")).await;
    assert_eq!(killed.fields(), [answer::PONG]);
    let events = to_end(&mut streaming).await;
    let end = events.last().unwrap().message(event::END);
    assert_eq!((end.text(2), end.number(50)), ("cancelled".into(), 499));
}

#[tokio::test]
async fn an_old_client_is_not_told_of_what_it_cannot_read() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    // A run that the next one will tell modern clients about.
    client
        .send(STREAM, say("crab", "/slow 60000 cut off", "me"))
        .await;
    let start = client.read().await.message(answer::STREAM);
    assert_eq!(start.fields()[0], event::START);
    daemon.kill().await;

    let _daemon = env.daemon().await;
    let mut watching = RawClient::connect(&env).await;
    watching.send(SUBSCRIBE_EVENTS, Fields::default()).await;
    // An answer on another connection comes after the subscription is there:
    // requests are begun in the order in which they come.
    let mut client = RawClient::connect(&env).await;
    client.ask(PING, Fields::default()).await;
    client.send(STREAM, say("crab", "once more", "me")).await;
    assert!(text(&to_end(&mut client).await).contains("once more"));
    // Nor is one that is killed anything else to it than an end.
    client
        .send(STREAM, say("crab", "/slow 60000 killed", "me"))
        .await;
    client.read().await;
    let mut other = RawClient::connect(&env).await;
    other.ask(KILL, pair("crab", "me")).await;
    to_end(&mut client).await;

    const DONE: u64 = 5;
    let mut kinds = Vec::new();
    within("both ends among the events", async {
        while kinds.iter().filter(|kind| **kind == DONE).count() < 2 {
            let event = watching.read().await.message(answer::EVENT);
            assert_eq!(event.text(1), "crab");
            kinds.push(event.number(3));
            assert!(kinds.iter().all(|kind| *kind < 50), "{kinds:?}");
        }
    })
    .await;
}
