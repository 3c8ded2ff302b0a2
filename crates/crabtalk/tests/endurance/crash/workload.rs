//! The work of clients while the daemon is killed: one of every persistent
//! change, in a fixed order, and the facts that they were told.

use crate::told::{Said, Taken, history};
use crate::world::World;
use crabtalk_client::Connection;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    ApprovalList, AskUserEvent, AttachMsg, Client, ClientError, CompactMsg, ConversationInfo,
    DeleteProviderMsg, ForgetMsg, GetConfig, GetStats, HistoryEntry, ListApprovalsMsg,
    ListArchivesMsg, ListConversationsMsg, ListMemoryMsg, RememberMsg, RemoveApprovalMsg,
    RemoveConversationMsg, ReplyToAsk, SetConversationMsg, SetProviderMsg, SteerSessionMsg,
    StreamMsg,
};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;

const TITLE: &str = "Work in the garden";
const SUMMARY: &str = "The garden was worked in.";
const MEMORY: &str = "garden gate";
const PROVIDER: &str = "spare";
const FILE: &str = "written.txt";
const STEER: &str = "Mind the roses.";

/// The sender whose conversation is removed.
const GUEST_OF_A_DAY: &str = "visitor";

/// The file in which commands record that they ran.
const EFFECTS: &str = "effects";

/// The acknowledged or expected state of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Either state is allowed, since no reply was received.
    Either,
    Yes,
    No,
}

/// The facts that clients were told.
#[derive(Debug, Default)]
pub(crate) struct Account {
    runs: Vec<(&'static str, Said)>,
    facts: BTreeMap<&'static str, Holds>,
}

type Done = Result<(), ClientError>;

/// The model's script. Answers depend on the last message, so that they are the
/// same whenever a daemon was killed.
pub(crate) fn script() -> Script {
    let effect =
        |name: &str| json!({"command": format!("echo {name} >> {EFFECTS}; echo {name} ran")});
    let task = json!({"agent": "helper", "task": "Water the garden."});
    Script::openai([openai::text("All right.")])
        .repeating()
        .when("Dig.", openai::tools("dig", &[("bash", effect("dig"))]))
        .when("dig ran", openai::pieces(&["It is ", "dug."]))
        .when(
            "Write.",
            openai::tools(
                "write",
                &[("write", json!({"path": FILE, "content": "green\n"}))],
            ),
        )
        .when(
            "Two at once.",
            openai::tools(
                "two",
                &[
                    ("bash", effect("left")),
                    ("set_title", json!({"title": "Two"})),
                ],
            ),
        )
        .when(
            "Ask for help.",
            openai::tools("help", &[("delegate", json!({"tasks": [task]}))]),
        )
        .when("Water the garden.", openai::text("It is watered."))
        .when("summar", openai::text(SUMMARY))
}

/// A home for the workload.
pub(crate) fn home(url: &str, resume: &str) -> World {
    let world = World::new(url);
    let config = fs::read_to_string(world.home().join("config/config.toml")).unwrap();
    let config = format!("# Kept.\n{config}\n[runs]\nresume = \"{resume}\"\n");
    world.write("config/config.toml", &config);
    world.write(
        "config/agents/crab.md",
        "---\nmembers: [helper]\npermissions: { bash: allow }\n---\nYou are brief.\n",
    );
    world.write(
        "config/agents/helper.md",
        "---\ndescription: helps\n---\nYou help.\n",
    );
    world
}

/// A client at work.
struct Hands<'a> {
    world: &'a World,
    account: &'a mut Account,
}

/// Does everything once, until the daemon dies. Later lives repeat the work with the
/// same request ids, as clients without an answer do.
pub(crate) async fn work(world: &World, account: &mut Account) -> Done {
    let mut hands = Hands { world, account };
    hands.provider().await?;
    hands.say("user", "Hello.", None).await?;
    hands.say("user", "Dig.", None).await?;
    hands.title().await?;
    hands.say("user", "Write.", None).await?;
    hands.memory().await?;
    hands.say("user", "And you?", Some("helper")).await?;
    hands.say("user", "Ask for help.", None).await?;
    hands.compact().await?;
    hands.say("user", "Two at once.", None).await?;
    hands.say("user", "Dig.", None).await?;
    hands.visitor().await?;
    hands.take_back().await?;
    hands.forget().await
}

async fn connect(world: &World) -> Result<Connection, ClientError> {
    let gone = || std::io::Error::from(std::io::ErrorKind::NotConnected);
    let connection = world.try_connect().await;
    connection.ok_or_else(|| ClientError::Connection(gone().into()))
}

impl Hands<'_> {
    /// Makes a change; its fact is known again once it was acknowledged.
    async fn change<T>(
        &mut self,
        fact: &'static str,
        holds: Holds,
        work: impl AsyncFnOnce(Connection) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let connection = connect(self.world).await?;
        self.account.facts.insert(fact, Holds::Either);
        let done = work(connection).await?;
        self.account.facts.insert(fact, holds);
        Ok(done)
    }

    async fn provider(&mut self) -> Done {
        let set = SetProviderMsg {
            name: PROVIDER.into(),
            config: json!({"kind": "openai", "base_url": "http://127.0.0.1:9/v1",
                "api_key": "sk-spare", "models": ["spare-model"]})
            .to_string(),
        };
        let work = async |mut connection: Connection| connection.set_provider(set).await;
        self.change(PROVIDER, Holds::Yes, work).await.map(drop)
    }

    async fn title(&mut self) -> Done {
        let set = SetConversationMsg {
            title: Some(TITLE.into()),
            ..SetConversationMsg::default()
        };
        let work = async |mut connection: Connection| connection.set_conversation(set).await;
        self.change(TITLE, Holds::Yes, work).await
    }

    async fn memory(&mut self) -> Done {
        let note = RememberMsg {
            name: MEMORY.into(),
            content: "The garden gate is green.".into(),
            ..RememberMsg::default()
        };
        let work = async |mut connection: Connection| connection.remember(note).await;
        self.change(MEMORY, Holds::Yes, work).await
    }

    async fn forget(&mut self) -> Done {
        let note = ForgetMsg {
            name: MEMORY.into(),
            ..ForgetMsg::default()
        };
        let work = async |mut connection: Connection| connection.forget(note).await;
        self.change(MEMORY, Holds::No, work).await?;
        let spare = DeleteProviderMsg {
            name: PROVIDER.into(),
        };
        let work = async |mut connection: Connection| connection.delete_provider(spare).await;
        self.change(PROVIDER, Holds::No, work).await
    }

    async fn compact(&mut self) -> Done {
        let work = async |mut connection: Connection| {
            let answer = connection.compact(CompactMsg::default()).await?;
            assert_eq!(answer.summary, SUMMARY);
            Ok(())
        };
        self.change(SUMMARY, Holds::Yes, work).await?;
        // The run below sets another title.
        self.account.facts.insert(TITLE, Holds::Either);
        Ok(())
    }

    /// Talks as a sender whose conversation is then removed.
    async fn visitor(&mut self) -> Done {
        self.say(GUEST_OF_A_DAY, "I only look.", None).await?;
        let remove = RemoveConversationMsg {
            sender: GUEST_OF_A_DAY.into(),
            ..RemoveConversationMsg::default()
        };
        let runs = &mut self.account.runs;
        runs.retain(|(sender, _)| *sender != GUEST_OF_A_DAY);
        let work = async |mut connection: Connection| connection.remove_conversation(remove).await;
        self.change(GUEST_OF_A_DAY, Holds::No, work).await
    }

    /// Removes a permanent approval.
    async fn take_back(&mut self) -> Done {
        let work = async |mut connection: Connection| {
            let all = approvals(&mut connection).await?.approvals;
            for approval in all {
                let remove = RemoveApprovalMsg {
                    index: approval.index,
                    ..RemoveApprovalMsg::default()
                };
                connection.remove_approval(remove).await?;
            }
            Ok(())
        };
        self.change("approval", Holds::No, work).await
    }

    /// Sends a message and reads the answer to its end.
    async fn say(
        &mut self,
        sender: &'static str,
        words: &'static str,
        guest: Option<&str>,
    ) -> Done {
        let mut connection = connect(self.world).await?;
        if sender == GUEST_OF_A_DAY {
            self.account.facts.insert(GUEST_OF_A_DAY, Holds::Either);
        }
        let request = StreamMsg {
            content: words.into(),
            sender: Some(sender.into()),
            cwd: Some(self.world.folder().display().to_string()),
            guest: guest.map(str::to_owned),
            request_id: Some(words.into()),
            ..StreamMsg::default()
        };
        let runs = &mut self.account.runs;
        let known = runs
            .iter()
            .position(|(of, said)| *of == sender && said.words == words);
        let at = known.unwrap_or_else(|| {
            runs.push((sender, Said::new(words.into())));
            runs.len() - 1
        });
        // An answer without an end before the daemon died was not acknowledged.
        self.account.runs[at].1.cut();
        let mut events = Box::pin(connection.stream(request));
        while let Some(event) = events.next().await {
            // A retry may be told less than the first attempt.
            let mut again = Said::new(words.into());
            let runs = &mut self.account.runs;
            let said = if runs[at].1.ended {
                &mut again
            } else {
                &mut runs[at].1
            };
            match said.take(event?) {
                Taken::More => {}
                Taken::Asks(ask) => self.answer(*ask, at).await?,
                Taken::Ended => return Ok(()),
            }
        }
        let gone = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        Err(ClientError::Connection(gone.into()))
    }

    /// Steers the run that asks and allows the call permanently. An acknowledged message
    /// is in the history even if no step has read it.
    async fn answer(&mut self, ask: AskUserEvent, run: usize) -> Done {
        let mut connection = connect(self.world).await?;
        let steer = SteerSessionMsg {
            content: STEER.into(),
            ..SteerSessionMsg::default()
        };
        connection.steer_session(steer).await?;
        self.account.runs[run].1.steered(STEER);
        let reply = ReplyToAsk {
            content: "Allow always".into(),
            ask_id: Some(ask.ask_id),
            ..ReplyToAsk::default()
        };
        let work = async |mut connection: Connection| connection.reply_to_ask(reply).await;
        self.change("approval", Holds::Yes, work).await
    }
}

async fn approvals(connection: &mut Connection) -> Result<ApprovalList, ClientError> {
    connection.list_approvals(ListApprovalsMsg::default()).await
}

impl Account {
    /// The number of told facts that could have been lost.
    pub(crate) fn told(&self) -> usize {
        let runs = self.runs.iter();
        let facts = self.facts.values().filter(|holds| **holds != Holds::Either);
        runs.map(|(_, said)| said.told.len() + usize::from(said.started))
            .sum::<usize>()
            + facts.count()
    }

    /// Compares the told facts with the daemon's state.
    pub(crate) async fn check(&self, world: &World) {
        let mut connection = world.try_connect().await.expect("the daemon is there");
        for (fact, holds) in self.facts_now(world, &mut connection).await {
            match self.facts.get(fact) {
                Some(Holds::Yes) => assert!(holds, "{fact}: acknowledged, and not there"),
                Some(Holds::No) => assert!(!holds, "{fact}: acknowledged as gone, and there"),
                Some(Holds::Either) | None => {}
            }
        }
        for (sender, said) in &self.runs {
            let told = history(&mut connection, "", sender).await;
            match told {
                Ok(entries) => said.check(&entries, self.runs.iter().map(|(_, said)| said)),
                Err(error) if error.code() == Some(404) => {
                    assert!(!said.started, "{sender}'s conversation is gone");
                }
                Err(error) => panic!("{sender}: {error}"),
            }
        }
        self.check_conversations(world, &mut connection).await;
        self.check_effects(world);
    }

    async fn facts_now(
        &self,
        world: &World,
        connection: &mut Connection,
    ) -> Vec<(&'static str, bool)> {
        let memory = connection.list_memory(ListMemoryMsg::default()).await;
        let memory = memory.unwrap();
        assert_eq!(memory.warnings, Vec::<String>::new());
        let all = ListConversationsMsg::default();
        let all = connection.list_conversations(all).await.unwrap();
        let archives = connection.list_archives(ListArchivesMsg::default()).await;
        let archives = archives.map(|list| list.archives).unwrap_or_default();
        let approvals = approvals(connection).await.unwrap().approvals;
        let config = connection.get_config(GetConfig {}).await.unwrap().config;
        let text = fs::read_to_string(world.home().join("config/config.toml")).unwrap();
        assert!(text.starts_with("# Kept."), "{text}");
        connection.get_stats(GetStats::default()).await.unwrap();
        vec![
            (MEMORY, memory.entries.iter().any(|e| e.name == MEMORY)),
            (TITLE, all.conversations.iter().any(|c| c.title == TITLE)),
            (
                GUEST_OF_A_DAY,
                all.conversations.iter().any(|c| c.sender == GUEST_OF_A_DAY),
            ),
            (SUMMARY, archives.iter().any(|a| a.title == SUMMARY)),
            ("approval", !approvals.is_empty()),
            (PROVIDER, config.contains("spare-model")),
        ]
    }

    /// Asserts that every conversation can be read and every call has one result.
    async fn check_conversations(&self, world: &World, connection: &mut Connection) {
        let all = ListConversationsMsg::default();
        let all = connection.list_conversations(all).await.unwrap();
        for of in all.conversations {
            follow_to_end(world, connection, &of).await;
            let entries = history(connection, &of.agent, &of.sender).await.unwrap();
            check_groups(&entries);
        }
    }

    /// Asserts that nothing ran twice, and everything that was told to have run did.
    fn check_effects(&self, world: &World) {
        let effects = fs::read_to_string(world.folder().join(EFFECTS)).unwrap_or_default();
        for name in ["dig", "left"] {
            let times = effects.lines().filter(|line| *line == name).count();
            assert!(times <= 1, "{name} ran {times} times");
        }
    }
}

/// Waits for a run that may be resumed, and loads a conversation, which
/// makes it valid. A question of an earlier life is asked again.
async fn follow_to_end(world: &World, connection: &mut Connection, of: &ConversationInfo) {
    let attach = AttachMsg {
        agent: of.agent.clone(),
        sender: of.sender.clone(),
        ..AttachMsg::default()
    };
    let mut events = Box::pin(connection.attach(attach));
    while let Some(event) = events.next().await {
        let ask = match event.map(|event| event.event) {
            Ok(Some(Event::AskUser(ask))) => ask,
            Ok(_) | Err(_) => continue,
        };
        let reply = ReplyToAsk {
            agent: of.agent.clone(),
            sender: of.sender.clone(),
            content: "Allow once".into(),
            ask_id: Some(ask.ask_id),
        };
        let mut other = world.try_connect().await.expect("the daemon is there");
        other.reply_to_ask(reply).await.unwrap();
    }
}

/// Asserts that results follow the message with their calls, in order.
fn check_groups(entries: &[HistoryEntry]) {
    let mut open: Vec<&str> = Vec::new();
    for entry in entries {
        if entry.role == "tool" {
            assert!(!open.is_empty(), "a result without its call: {entry:?}");
            assert_eq!(open.remove(0), entry.tool_call_id);
            continue;
        }
        assert!(open.is_empty(), "no results of {open:?}: {entries:#?}");
        open = entry
            .tool_calls
            .iter()
            .map(|c| c.call_id.as_str())
            .collect();
    }
    assert!(open.is_empty(), "no results of {open:?}: {entries:#?}");
}
