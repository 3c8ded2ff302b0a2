//! `kill -9` at random instants under load: whatever a client was told is
//! there afterwards, nothing ran twice, and every history is one that a
//! provider takes.

use crate::world::{Chance, World, setting};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, GetHistoryMsg, HistoryEntry, StreamMsg};
use crabtalk_testkit::scripted::{Action, Reply, Script, Server, openai};
use crabtalk_transport::UnixConnection;
use futures_util::StreamExt;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const KILLS: &str = "CRABTALK_TORTURE_KILLS";
const SEED: &str = "CRABTALK_TORTURE_SEED";

/// Kills as a test; `cargo xtask torture` does 200.
const KILLS_IN_TESTS: u64 = 10;

const USERS: u64 = 6;

/// A daemon lives so long at most: runs here take some tens of milliseconds.
const LIFE_MS: u64 = 700;

/// Lives after which users begin new conversations, so that histories, which
/// the model is sent whole each time, stay short.
const LIVES_OF_A_CONVERSATION: u64 = 10;

/// Entries of a page of history.
const PAGE: u32 = 200;

/// Something that a client was told and that is therefore on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    Calls(Vec<String>),
    Result(String, String),
    Text(String),
}

/// A message of a user and what came of it.
#[derive(Debug, Clone)]
struct Said {
    /// Unique, so that it is found again; the request's id too.
    words: String,
    started: bool,
    ended: bool,
    told: Vec<Told>,
}

#[derive(Debug, Clone)]
struct User {
    name: String,
    said: Vec<Said>,
}

/// How much was told, to see that there was something to lose.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    messages: usize,
    calls: usize,
    results: usize,
    texts: usize,
}

impl Tally {
    fn count(&mut self, users: &[User]) {
        for said in users.iter().flat_map(|user| &user.said) {
            self.messages += usize::from(said.started);
            for told in &said.told {
                *match told {
                    Told::Calls(_) => &mut self.calls,
                    Told::Result(..) => &mut self.results,
                    Told::Text(_) => &mut self.texts,
                } += 1;
            }
        }
    }
}

impl User {
    fn new(number: u64, epoch: u64) -> Self {
        Self {
            name: format!("user-{number}-{epoch}"),
            said: Vec::new(),
        }
    }

    /// What to say now: what has no end yet, once more, else something new.
    fn next(&mut self) -> StreamMsg {
        if self.said.last().is_none_or(|said| said.ended) {
            let words = format!("{} says thing {}.", self.name, self.said.len());
            self.said.push(Said {
                words,
                started: false,
                ended: false,
                told: Vec::new(),
            });
        }
        let words = &self.said.last().expect("pushed at least once").words;
        StreamMsg {
            content: words.clone(),
            sender: Some(self.name.clone()),
            request_id: Some(words.clone()),
            ..StreamMsg::default()
        }
    }

    /// Talks until the daemon dies, or once.
    async fn talk(mut self, world: Arc<World>, once: bool) -> Self {
        let Some(mut connection) = world.try_connect().await else {
            return self;
        };
        loop {
            let request = self.next();
            let said = self.said.last_mut().expect("just said");
            if !said.follow(&mut connection, request).await || once {
                return self;
            }
        }
    }
}

impl Said {
    /// Reads a run. False when the daemon has gone.
    async fn follow(&mut self, connection: &mut UnixConnection, request: StreamMsg) -> bool {
        let mut text = String::new();
        let mut events = Box::pin(connection.stream(request));
        while let Some(event) = events.next().await {
            let Ok(event) = event else { return false };
            match event.event.expect("an event of a version") {
                Event::Start(_) => self.started = true,
                Event::Chunk(chunk) => text.push_str(&chunk.content),
                Event::ToolStart(start) => {
                    self.tell_text(&mut text);
                    let ids = start.calls.into_iter().map(|call| call.call_id);
                    self.told.push(Told::Calls(ids.collect()));
                }
                Event::ToolResult(result) => {
                    self.told.push(Told::Result(result.call_id, result.output));
                }
                Event::End(end) => {
                    if end.code == 0 {
                        self.tell_text(&mut text);
                    }
                    self.ended = true;
                    return true;
                }
                Event::Thinking(_)
                | Event::ToolsComplete(_)
                | Event::AskUser(_)
                | Event::UserSteered(_)
                | Event::TextStart(_)
                | Event::TextEnd(_)
                | Event::ThinkingStart(_)
                | Event::ThinkingEnd(_)
                | Event::UserMessage(_)
                | Event::Compacted(_)
                | Event::Interrupted(_)
                | Event::Waiting(_)
                | Event::Notice(_) => {}
            }
        }
        false
    }

    fn tell_text(&mut self, text: &mut String) {
        if !text.is_empty() {
            self.told.push(Told::Text(std::mem::take(text)));
        }
    }

    /// Everything told is in the history, in its order.
    fn check(&self, history: &[HistoryEntry]) {
        let is_it = |entry: &&HistoryEntry| entry.role == "user" && entry.content == self.words;
        let times = history.iter().filter(is_it).count();
        let least = usize::from(self.started);
        assert!(
            (least..=1).contains(&times),
            "{:?} is there {times} times, was started: {}",
            self.words,
            self.started
        );
        let Some(at) = history.iter().position(|entry| is_it(&entry)) else {
            return;
        };
        let rest = history[at + 1..].iter().take_while(|e| e.role != "user");
        let kept: Vec<Told> = rest.flat_map(as_told).collect();
        let mut kept = kept.iter();
        for told in &self.told {
            assert!(
                kept.any(|kept| kept == told),
                "{:?}: {told:?} was told and is not there; history: {:#?}",
                self.words,
                &history[at..]
            );
        }
    }
}

/// What an entry would have been told as.
fn as_told(entry: &HistoryEntry) -> Vec<Told> {
    if entry.role == "tool" {
        let (id, output) = (entry.tool_call_id.clone(), entry.content.clone());
        return vec![Told::Result(id, output)];
    }
    let mut told = Vec::new();
    if !entry.content.is_empty() {
        told.push(Told::Text(entry.content.clone()));
    }
    if !entry.tool_calls.is_empty() {
        let ids = entry.tool_calls.iter().map(|call| call.call_id.clone());
        told.push(Told::Calls(ids.collect()));
    }
    told
}

async fn history(connection: &mut UnixConnection, sender: &str) -> Vec<HistoryEntry> {
    let mut all: Vec<HistoryEntry> = Vec::new();
    loop {
        let request = GetHistoryMsg {
            sender: sender.into(),
            before: all.first().map(|entry| entry.index),
            limit: PAGE,
            ..GetHistoryMsg::default()
        };
        let page = connection.get_history(request).await.unwrap();
        let more = page.more;
        all.splice(0..0, page.entries);
        if !more {
            return all;
        }
    }
}

async fn check(world: &World, users: &[User]) {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    for user in users.iter().filter(|u| u.said.iter().any(|s| s.started)) {
        let history = history(&mut connection, &user.name).await;
        for said in &user.said {
            said.check(&history);
        }
    }
}

/// Answers that take a moment: in pieces, with thinking, with tools.
fn script() -> Script {
    let paced = |reply: Reply, ms: u64| {
        let actions = reply.actions.into_iter();
        Reply::new(actions.flat_map(|action| [Action::SleepMs(ms), action]))
    };
    let bash =
        |id: &str, command: &str| openai::tools(id, &[("bash", json!({"command": command}))]);
    Script::openai([
        paced(openai::pieces(&["One ", "moment", ", please."]), 3),
        paced(bash("quick", "echo quick"), 1),
        openai::text("At once."),
        paced(bash("slow", "sleep 0.05; echo slow"), 2),
        paced(openai::pieces(&["It ", "was ", "slow", "."]), 8),
        bash("wrong", "echo wrong >&2; exit 3"),
        openai::pieces(&["Done", "."]),
    ])
    .repeating()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_told_is_lost_by_a_kill() {
    let (kills, seed) = (setting(KILLS, KILLS_IN_TESTS), setting(SEED, 1));
    let mut chance = Chance::new(seed);
    let model = Server::start(script()).await;
    let world = Arc::new(World::new(&model.url()));
    let mut users: Vec<User> = Vec::new();
    let mut told = Tally::default();
    for life in 0..kills {
        if life % LIVES_OF_A_CONVERSATION == 0 {
            told.count(&users);
            let epoch = life / LIVES_OF_A_CONVERSATION;
            users = (0..USERS).map(|number| User::new(number, epoch)).collect();
        }
        let daemon = world.start().await;
        check(&world, &users).await;
        let mut talking = JoinSet::new();
        for user in users.drain(..) {
            talking.spawn(user.talk(Arc::clone(&world), false));
        }
        tokio::time::sleep(Duration::from_millis(chance.below(LIFE_MS))).await;
        daemon.kill().await;
        users = talking.join_all().await;
        println!(
            "life {life} of seed {seed}: {} runs so far",
            model.progress().requests
        );
    }
    let daemon = world.start().await;
    check(&world, &users).await;
    let mut talking = JoinSet::new();
    for user in users.drain(..) {
        talking.spawn(user.talk(Arc::clone(&world), true));
    }
    users = talking.join_all().await;
    assert!(users.iter().all(|u| u.said.iter().all(|s| s.ended)));
    check(&world, &users).await;
    daemon.terminate().await;
    told.count(&users);
    assert_eq!(model.problems(), Vec::<String>::new(), "seed {seed}");
    println!("{kills} kills: {told:?} were told and are there");
    let Tally {
        messages,
        calls,
        results,
        texts,
    } = told;
    assert!(
        messages.min(calls).min(results).min(texts) > 0,
        "the daemon was killed too soon: {told:?}"
    );
}
