//! The facts that clients were told, and checks that they are in the history.

use crabtalk_client::Connection;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AskUserEvent, Client, ClientError, GetHistoryMsg, HistoryEntry, StreamEvent};

/// Entries per page of history.
const PAGE: u32 = 200;

/// A fact that a client was told and that must therefore be on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Calls(Vec<String>),
    Result(String, String),
    Text(String),
    Steered(String),
}

/// The meaning of an event for a reader of a run.
pub(crate) enum Taken {
    More,
    Asks(Box<AskUserEvent>),
    Ended,
}

/// A user's message and the facts about its run.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    /// The text of the message, which is unique and also the request's id.
    pub(crate) words: String,
    pub(crate) started: bool,
    pub(crate) ended: bool,
    pub(crate) told: Vec<Told>,
    /// Text that no event has made durable yet.
    text: String,
}

impl Said {
    pub(crate) fn new(words: String) -> Self {
        Self {
            words,
            started: false,
            ended: false,
            told: Vec::new(),
            text: String::new(),
        }
    }

    /// Records the fact in an event.
    pub(crate) fn take(&mut self, event: StreamEvent) -> Taken {
        match event.event.expect("an event of a version") {
            Event::Start(_) => self.started = true,
            Event::Chunk(chunk) => self.text.push_str(&chunk.content),
            Event::ToolStart(start) => {
                self.tell_text();
                let ids = start.calls.into_iter().map(|call| call.call_id);
                self.told.push(Told::Calls(ids.collect()));
            }
            Event::ToolResult(result) => {
                self.told.push(Told::Result(result.call_id, result.output));
            }
            Event::UserSteered(steered) => self.told.push(Told::Steered(steered.content)),
            Event::AskUser(ask) => return Taken::Asks(ask),
            Event::End(end) => {
                if end.code == 0 {
                    self.tell_text();
                }
                self.cut();
                self.ended = true;
                return Taken::Ended;
            }
            Event::Thinking(_)
            | Event::ToolsComplete(_)
            | Event::TextStart(_)
            | Event::TextEnd(_)
            | Event::ThinkingStart(_)
            | Event::ThinkingEnd(_)
            | Event::UserMessage(_)
            | Event::Compacted(_)
            | Event::Interrupted(_)
            | Event::Waiting(_)
            | Event::AskSettled(_)
            | Event::ToolProgress(_)
            | Event::Queued(_)
            | Event::Notice(_) => {}
        }
        Taken::More
    }

    /// Records an acknowledged steer.
    pub(crate) fn steered(&mut self, words: &str) {
        self.told.push(Told::Steered(words.into()));
    }

    /// Drops text that was cut off, since it was never promised.
    pub(crate) fn cut(&mut self) {
        self.text.clear();
    }

    fn tell_text(&mut self) {
        if !self.text.is_empty() {
            self.told.push(Told::Text(std::mem::take(&mut self.text)));
        }
    }

    /// Asserts that every fact is in the history, in order, before the next of all
    /// messages.
    pub(crate) fn check<'a>(&self, history: &[HistoryEntry], all: impl Iterator<Item = &'a Self>) {
        let all: Vec<&str> = all.map(|said| said.words.as_str()).collect();
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
        let is_next = |entry: &HistoryEntry| entry.role == "user" && all.contains(&&*entry.content);
        let rest = history[at + 1..].iter();
        let rest: Vec<Told> = rest
            .take_while(|entry| !is_next(entry))
            .flat_map(as_told)
            .collect();
        let mut kept = rest.iter();
        for told in &self.told {
            // Results are told as they arrive but stored in the order of the calls;
            // durable facts are told after text that needs no sync.
            let is_there = match told {
                Told::Result(..) | Told::Steered(_) => rest.contains(told),
                Told::Calls(_) | Told::Text(_) => kept.any(|kept| kept == told),
            };
            assert!(
                is_there,
                "{:?}: {told:?} of {:?} was told and is not there; history: {:#?}",
                self.words,
                self.told,
                &history[at..]
            );
        }
    }
}

/// The facts that an entry corresponds to.
fn as_told(entry: &HistoryEntry) -> Vec<Told> {
    match entry.role.as_str() {
        "tool" => {
            let (id, output) = (entry.tool_call_id.clone(), entry.content.clone());
            return vec![Told::Result(id, output)];
        }
        "user" => return vec![Told::Steered(entry.content.clone())],
        _ => {}
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

/// Reads the whole history of a conversation.
pub(crate) async fn history(
    connection: &mut Connection,
    agent: &str,
    sender: &str,
) -> Result<Vec<HistoryEntry>, ClientError> {
    let mut all: Vec<HistoryEntry> = Vec::new();
    loop {
        let request = GetHistoryMsg {
            agent: agent.into(),
            sender: sender.into(),
            before: all.first().map(|entry| entry.index),
            limit: PAGE,
            first: false,
        };
        let page = connection.get_history(request).await?;
        let more = page.more;
        all.splice(0..0, page.entries);
        if !more {
            return Ok(all);
        }
    }
}
