//! Over a network that is slow, loses packets and is cut off.
//!
//! Its clock is a real one. So a way takes 20 ms in place of the 200 that are meant,
//! where much is tried, and 200 where one run is. No run ends before both who hear it
//! were cut off and came back, however slow the machine is.

use super::{Elsewhere, PLAIN, TLS, client_at, token};
use crate::rig::{Chance, ModelServer, Network, TestEnv, Weather, within};
use bytes::BytesMut;
use crabtalk_client::{
    AttachMsg, Client, GetHistoryMsg, NewToken, Run, RunNews, StreamMsg, stream_event::Event,
};
use crabtalk_proto::{ClientMessage, HelloMsg, PROTOCOL_VERSION, ServerMessage, TooLarge, codec};
use crabtalk_testkit::scripted::{Action, Reply, Script, openai};
use futures_util::StreamExt;
use std::cell::Cell;
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(20);

/// A way around the world, and how slowly the model speaks then: its words last
/// for as long as it takes to come back after a cut, a few times.
const FAR: Duration = Duration::from_millis(200);
const FAR_PACE: u64 = 20;

/// Two of its connections lose one of their first sixteen packets: none of them need
/// live for a hundred.
const FAR_SEED: u64 = 24;

/// Connections of one client that are cut.
const CUTS: usize = 6;

/// What the daemon sends before it says anything over TLS, and some more.
const TLS_HANDSHAKE: u64 = 1500;

/// Milliseconds between two words.
const PACE: u64 = 3;

/// What the model says in pieces, for half a second.
const WORDS: usize = 160;

fn words(of: &str) -> String {
    let words: Vec<String> = (0..WORDS).map(|n| format!("{of}{n}")).collect();
    words.join(" ")
}

/// The last words of an answer that was held back.
const LAST: &str = " and no more";

/// An answer of words, whose last ones come when it is released.
fn held_back(pace: u64) -> Reply {
    let content = words("w");
    let mut pieces: Vec<&str> = content.split_inclusive(' ').collect();
    pieces.push(LAST);
    let mut actions = Vec::new();
    for (n, action) in openai::pieces(&pieces).actions.into_iter().enumerate() {
        // What stands before the words begins the message.
        if n == pieces.len() {
            actions.push(Action::Stall);
        }
        actions.extend([action, Action::SleepMs(pace)]);
    }
    Reply::new(actions)
}

/// Holds the answer back until everybody who listens was cut off, is back, and has
/// heard what was said so far.
struct Held<'a> {
    model: &'a ModelServer,
    content: String,
    missing: Cell<usize>,
}

impl Held<'_> {
    /// Whether this listener need not be waited for any more.
    async fn heard(&self, heard: &Heard) -> bool {
        if heard.back == 0 || !heard.text.ends_with(&self.content) {
            return false;
        }
        self.missing.set(self.missing.get() - 1);
        if self.missing.get() == 0 {
            self.model.release().await;
        }
        true
    }
}

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: format!("/slow {PACE} {content}"),
        ..StreamMsg::default()
    }
}

/// What was heard of a run.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    kinds: Vec<&'static str>,
    lost: usize,
    back: usize,
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "nothing else belongs into these runs"
)]
async fn to_end(mut run: Run, mut held: Option<&Held<'_>>) -> Heard {
    let mut heard = Heard::default();
    let mut seen = 0;
    loop {
        if let Some(listened) = held
            && listened.heard(&heard).await
        {
            held = None;
        }
        let Some(news) = within("the run", run.next()).await else {
            return heard;
        };
        match news.unwrap() {
            RunNews::Event(event) => {
                assert!(event.seq >= seen, "{event:?} after {seen}");
                seen = event.seq;
                heard.kinds.push(match event.event.unwrap() {
                    Event::Chunk(chunk) => {
                        heard.text.push_str(&chunk.content);
                        continue;
                    }
                    Event::Start(_) => "start",
                    Event::UserMessage(_) => "said",
                    Event::TextStart(_) => "text",
                    Event::TextEnd(_) => "text end",
                    Event::End(end) => {
                        assert_eq!(end.code, 0, "{end:?}");
                        "end"
                    }
                    other => panic!("{other:?}"),
                });
            }
            RunNews::Lost { .. } => heard.lost += 1,
            RunNews::Back => heard.back += 1,
            RunNews::Missing { behind } => panic!("something is missing behind {behind}"),
        }
    }
}

/// Cuts at points that follow from the seed; the first connection lives until it
/// has heard something of the run.
fn cuts(seed: u64, handshake: u64) -> Vec<(u64, u64)> {
    let mut chance = Chance::new(seed);
    let mut cuts = vec![(u64::MAX, handshake + 500 + chance.below(700))];
    // Often in the middle of the handshake, or of a request.
    cuts.extend((1..CUTS).map(|_| (40 + chance.below(1200), 40 + chance.below(3000))));
    cuts
}

async fn network(address: &str, seed: u64, cuts: Vec<(u64, u64)>) -> Network {
    network_of(LATENCY, address, seed, cuts).await
}

async fn network_of(latency: Duration, address: &str, seed: u64, cuts: Vec<(u64, u64)>) -> Network {
    let weather = Weather {
        latency,
        seed,
        cuts,
    };
    Network::start(address.to_owned(), weather).await
}

/// What stands in the history of the sender's conversation.
async fn history(client: &Client) -> Vec<(String, String)> {
    let page = match client.call(GetHistoryMsg::default()).await {
        Ok(page) => page,
        Err(error) if error.code() == Some(404) => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let entries = page.entries.into_iter();
    entries.map(|entry| (entry.role, entry.content)).collect()
}

/// One asks and another attaches, each over a bad network of its own. Counts what was
/// cut and lost.
async fn asked_and_attached(
    latency: Duration,
    model: &ModelServer,
    made: &NewToken,
    seed: u64,
) -> (usize, usize) {
    let direct = &made.listen[0];
    let handshake = match made.fingerprint.is_empty() {
        true => 0,
        false => TLS_HANDSHAKE,
    };
    let (of_asker, of_other) = tokio::join!(
        network_of(latency, direct, seed, cuts(seed, handshake)),
        network_of(latency, direct, seed + 100, cuts(seed + 100, handshake)),
    );
    let asker = client_at(of_asker.address(), made);
    let other = client_at(of_other.address(), made);
    let before = history(&client_at(direct, made)).await.len();
    let held = Held {
        model,
        content: words("w"),
        missing: Cell::new(2),
    };
    let mut asking = asker.stream(StreamMsg {
        content: "tell me all".into(),
        ..StreamMsg::default()
    });
    // The other one comes when the run is there.
    let first = within("the start", asking.next()).await.unwrap().unwrap();
    assert!(matches!(&first, RunNews::Event(e) if matches!(e.event, Some(Event::Start(_)))));
    let attaching = other.attach(AttachMsg::default());
    let (mut asked, attached) =
        tokio::join!(to_end(asking, Some(&held)), to_end(attaching, Some(&held)));
    asked.kinds.insert(0, "start");
    let whole = format!("{}{LAST}", held.content);
    for (heard, kinds) in [
        (&asked, &["start", "text", "text end", "end"][..]),
        (&attached, &["start", "said", "text", "text end", "end"]),
    ] {
        assert_eq!(heard.text, whole, "{heard:?}");
        assert_eq!(heard.kinds, kinds);
        // Each loss is said, and that it is over.
        assert!(heard.lost >= 1 && heard.lost == heard.back, "{heard:?}");
    }
    let entries = history(&client_at(direct, made)).await;
    let roles: Vec<&str> = entries[before..].iter().map(|(role, _)| &**role).collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert_eq!(entries.last().unwrap().1, whole);
    (
        of_asker.cut() + of_other.cut(),
        of_asker.lost() + of_other.lost(),
    )
}

/// A daemon that listens, and its model, which says its words at this pace.
async fn speaking(config: &str, pace: u64) -> (ModelServer, Elsewhere, NewToken) {
    let model = ModelServer::start(Script::openai([held_back(pace)]).repeating()).await;
    let elsewhere = Elsewhere::speaking(&model, config).await;
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    (model, elsewhere, made)
}

#[tokio::test]
async fn a_run_over_a_bad_network_is_heard_whole_and_once() {
    for config in [PLAIN, TLS] {
        let (model, _elsewhere, made) = speaking(config, PACE).await;
        let (mut cut, mut lost) = (0, 0);
        for seed in 1..=3 {
            let counted = asked_and_attached(LATENCY, &model, &made, seed).await;
            (cut, lost) = (cut + counted.0, lost + counted.1);
        }
        assert!(cut >= 2 * CUTS && lost > 0, "{cut} cuts, {lost} lost");
    }
}

#[tokio::test]
async fn a_run_around_the_world_is_heard_whole_and_once() {
    for config in [PLAIN, TLS] {
        let (model, _elsewhere, made) = speaking(config, FAR_PACE).await;
        let (cut, lost) = asked_and_attached(FAR, &model, &made, FAR_SEED).await;
        assert!(cut >= 2 && lost >= 1, "{cut} cuts, {lost} lost");
    }
}

/// Bytes of a message with its frame.
fn bytes_of(encode: impl FnOnce(&mut BytesMut) -> Result<(), TooLarge>) -> u64 {
    let mut frame = BytesMut::new();
    encode(&mut frame).unwrap();
    frame.len() as u64
}

#[tokio::test]
async fn a_request_that_is_cut_off_on_its_way_or_before_its_answer_runs_once() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    let direct = &made.listen[0];
    let phone = client_at(direct, &made);
    let welcome = phone.connect().await.unwrap().welcome().unwrap().clone();
    let welcome = bytes_of(|frame| codec::encode(&ServerMessage::from(welcome), frame));
    let hello = ClientMessage::from(HelloMsg {
        protocol_version: PROTOCOL_VERSION,
        token: made.token.clone(),
        client: "e2e/remote".into(),
        ..HelloMsg::default()
    });
    let hello = bytes_of(|frame| codec::encode(&hello, frame));
    // The request does not arrive; it does, and nothing of its answer is heard.
    for (n, cut) in [(hello + 1, u64::MAX), (u64::MAX, welcome + 1)]
        .into_iter()
        .enumerate()
    {
        let network = network(direct, 7, vec![cut; 2]).await;
        let client = client_at(network.address(), &made);
        let heard = to_end(client.stream(say("only once")), None).await;
        assert_eq!(network.cut(), 2);
        assert_eq!((heard.lost, heard.back), (1, 1), "{heard:?}");
        assert_eq!(heard.kinds, ["start", "text", "text end", "end"]);
        let entries = history(&phone).await;
        let said = entries.iter().filter(|(role, _)| role == "user").count();
        assert_eq!(said, n + 1, "{entries:?}");
    }
}

#[tokio::test]
async fn the_command_line_says_that_it_was_cut_off_and_goes_on_where_it_was() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    // What is short passes, and the answer does not, three times.
    let network = network(&made.listen[0], 5, vec![(u64::MAX, 1200); 9]).await;
    let there = TestEnv::new();
    let address = format!("tcp://{}", network.address());
    let add = ["remote", "add", "home", &address];
    there.run_with(&add, Some(&made.token)).await;
    let content = words("w");
    let ask = ["--connect", "home", "ask", &format!("/slow 3 {content}")];
    let asked = there.run(&ask).await;
    let notes = |of: &str| asked.stderr.matches(of).count();
    assert!(notes("; reconnecting") >= 1, "{asked:?}");
    assert_eq!(notes("; reconnecting"), notes("reconnected"));
    assert_eq!(asked.stdout.matches(&content).count(), 1, "{asked:?}");
    assert_eq!(asked.stdout.matches("w0 ").count(), 1, "{asked:?}");
    assert_eq!(asked.code, Some(0));
    assert!(network.cut() >= 1);
}
