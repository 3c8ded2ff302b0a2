//! `kill -9` at random instants under load: whatever a client was told is
//! there afterwards, nothing ran twice, and every history is one that a
//! provider takes.

use crate::told::{Said, Taken, Told, history};
use crate::world::{Chance, World, setting};
use crabtalk_client::Connection;
use crabtalk_proto::{Client, StreamMsg};
use crabtalk_testkit::scripted::{Action, Reply, Script, Server, openai};
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
                    Told::Steered(_) => continue,
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
            self.said.push(Said::new(words));
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
            if !follow(said, &mut connection, request).await || once {
                return self;
            }
        }
    }
}

/// Reads a run. False when the daemon has gone.
async fn follow(said: &mut Said, connection: &mut Connection, request: StreamMsg) -> bool {
    let mut events = Box::pin(connection.stream(request));
    while let Some(Ok(event)) = events.next().await {
        if let Taken::Ended = said.take(event) {
            return true;
        }
    }
    said.cut();
    false
}

async fn check(world: &World, users: &[User]) {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    for user in users.iter().filter(|u| u.said.iter().any(|s| s.started)) {
        let history = history(&mut connection, "", &user.name).await.unwrap();
        for said in &user.said {
            said.check(&history, user.said.iter());
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
