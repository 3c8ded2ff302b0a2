//! An agent of the daemon: the conversation (agent, `user/nexus`).
//!
//! Invariants: a message is a run with the letter's id as its request id, so that the
//! daemon never runs it twice; every run of the conversation is followed; an idle
//! agent has no connection.
//!
//! ```text
//! follow   runs as events
//! others   new runs and compactions of all conversations, over one connection
//! ```
//!
//! This backend has no screen, no drafts, and no window for a person.

mod follow;
mod others;

pub use others::Others;

use crate::backend::{
    Answered, Backend, Call, Compressed, Events, Evidence, Failure, Launch, Look, Mark, Probe,
    Prompt, Reply, Source, Submission, Submitted,
};
use crate::files::Files;
use crate::name::Name;
use crabtalk_client::{
    AskUserEvent, Client, CompactMsg, Error, GetHistoryMsg, KillMsg, ListActiveConversationsMsg,
    ListAsksMsg, Replied, ReplyToAsk, StreamMsg, code,
};
use follow::{Follow, Follower, Seen};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// The sender of NEXUS, which is one of the owner.
pub const SENDER: &str = "user/nexus";

/// How long a run is followed over a lost daemon. Replacing a daemon takes
/// seconds, repairing it minutes.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Longest call; only compression waits for a model.
const CALL: Duration = Duration::from_secs(30);

/// Longest compression, which asks a model for a summary.
const COMPRESS: Duration = Duration::from_secs(5 * 60);

/// Capacity of the queue to the follower; one message is in flight at a time.
const QUEUE: usize = 4;

#[derive(Debug)]
pub struct Daemon {
    client: Client,
    name: Name,
    agent: String,
    files: Files,
    tell: mpsc::Sender<Follow>,
    told: Mutex<Option<mpsc::Receiver<Follow>>>,
    seen: Arc<Mutex<Seen>>,
    others: Arc<Others>,
}

impl Daemon {
    /// Creates the backend of the member `name`, with an agent of the daemon.
    pub fn new(
        client: Client,
        name: Name,
        agent: String,
        files: Files,
        others: Arc<Others>,
    ) -> Self {
        let (tell, told) = mpsc::channel(QUEUE);
        Self {
            client: client.with_patience(PATIENCE),
            name,
            agent,
            files,
            tell,
            told: Mutex::new(Some(told)),
            seen: Arc::default(),
            others,
        }
    }

    fn call<'a, T: 'a>(
        &self,
        within: Duration,
        work: impl Future<Output = Result<T, Failure>> + Send + 'a,
    ) -> Call<'a, T> {
        Box::pin(async move {
            match tokio::time::timeout(within, work).await {
                Ok(result) => result,
                Err(_) => Err(Failure::Timeout("the daemon does not answer".into())),
            }
        })
    }

    fn session(&self) -> String {
        session(&self.agent)
    }

    /// Prefix of the request ids of this agent's letters.
    fn request_prefix(&self) -> String {
        format!("nexus-{}-", self.name)
    }

    /// Reads at how many tokens the daemon compacts the conversation; the setting may
    /// change between two messages.
    async fn read_settings(&self) -> Result<(), Error> {
        let agent = crabtalk_client::GetAgentMsg {
            name: self.agent.clone(),
        };
        let known = self.client.call(agent).await?;
        if let Ok(mut seen) = self.seen.lock() {
            seen.compact_at = known.compact_threshold.map(u64::from);
        }
        Ok(())
    }

    /// The request id of the run in flight, if there is one. The follower reports the end of the run
    /// even if this call fails.
    async fn run_in_flight(&self) -> Option<String> {
        let list = ListActiveConversationsMsg {
            agent: self.agent.clone(),
            sender: SENDER.into(),
            limit: 1,
        };
        let active = self.client.call(list).await.ok()?;
        let mut running = active.conversations.into_iter().filter(|one| one.running);
        running.next().map(|one| one.request_id)
    }
}

fn session(agent: &str) -> String {
    format!("{agent}/{SENDER}")
}

fn failure(error: Error) -> Failure {
    match &error {
        Error::NotWelcome(_) | Error::Unsafe(_) => Failure::Missing(error.to_string()),
        // The daemon may return.
        Error::NoDaemon(_) | Error::NotStarted(_) | Error::Lost { .. } => {
            Failure::Unreachable(error.to_string())
        }
        Error::Refused(_) | Error::Broken(_) | Error::RunGone { .. } | Error::Unexpected(_) => {
            Failure::Failed(error.to_string())
        }
    }
}

impl Backend for Daemon {
    fn events(&self) -> Events {
        let told = self.told.lock().ok().and_then(|mut told| told.take());
        let news = self.others.news(&self.agent);
        let follower = Follower::new(
            self.client.clone(),
            (self.agent.clone(), self.request_prefix()),
            told,
            news,
            Arc::clone(&self.seen),
        );
        Box::pin(futures_util::stream::unfold(
            follower,
            async |mut follower| {
                let event = follower.next().await?;
                Some((event, follower))
            },
        ))
    }

    fn launch(&self, _: Launch) -> Call<'_, ()> {
        self.call(CALL, async move {
            // The conversation may begin with its first message, but the daemon
            // and its agent must exist.
            let known = self.read_settings().await;
            known.map_err(|error| match error.code() {
                Some(code::NOT_FOUND) => Failure::Missing(error.to_string()),
                _ => failure(error),
            })?;
            let in_flight = self.run_in_flight().await;
            let full = |_| Failure::Failed("NEXUS is stopping".into());
            self.tell
                .send(Follow::Ready { in_flight })
                .await
                .map_err(full)
        })
    }

    fn mark(&self) -> Call<'_, Mark> {
        // The daemon recognises a repeated request by its id.
        Box::pin(async { Ok(Mark::default()) })
    }

    fn submit(&self, message: Submission) -> Call<'_, Submitted> {
        self.call(CALL, async move {
            let (files, name, line) = (self.files.clone(), self.name.clone(), message.text.clone());
            let behind = tokio::task::spawn_blocking(move || files.behind(&name, &line));
            let behind = behind.await.map_err(|e| Failure::Failed(e.to_string()))?;
            // If this fails, the last known settings are used.
            let _ = self.read_settings().await;
            let request_id = format!("{}{}", self.request_prefix(), message.id);
            let said = format!("Stream with request_id {request_id}");
            let request = StreamMsg {
                agent: self.agent.clone(),
                sender: Some(SENDER.into()),
                content: format!("{}{behind}", message.text),
                cwd: self.files.root().to_str().map(str::to_owned),
                request_id: Some(request_id),
                ..StreamMsg::default()
            };
            let run = Box::new(self.client.stream(request));
            let follow = Follow::Run(message.id, run);
            let full = |_| Failure::Failed("NEXUS is stopping".into());
            self.tell.send(follow).await.map_err(full)?;
            Ok(Submitted::Sent(Evidence::new(Source::Wire, said)))
        })
    }

    fn reply<'a>(&'a self, prompt: &'a Prompt, reply: &'a Reply) -> Call<'a, Answered> {
        let content = match reply {
            Reply::Allow => "1".into(),
            Reply::Always => "Allow always".into(),
            Reply::Deny(reason) if prompt.is_question => format!("No. {reason}"),
            Reply::Deny(reason) if reason.trim().is_empty() => "Deny".into(),
            Reply::Deny(reason) => format!("Deny: {}", reason.trim()),
            Reply::Text(text) => text.clone(),
        };
        let reply = ReplyToAsk {
            agent: self.agent.clone(),
            sender: SENDER.into(),
            content: content.clone(),
            ask_id: Some(prompt.id.clone()),
        };
        self.call(CALL, async move {
            let said = format!("ReplyToAsk {} with {content:?}", prompt.id);
            match self.client.reply(reply).await.map_err(failure)? {
                Replied::Taken => Ok(Answered::Taken(Evidence::new(Source::Wire, said))),
                Replied::TooLate => {
                    let said = format!("{said}: 404");
                    Ok(Answered::Stale(Evidence::new(Source::Wire, said)))
                }
            }
        })
    }

    fn probe(&self) -> Call<'_, Probe> {
        self.call(CALL, async move {
            let list = ListAsksMsg {
                agent: Some(self.agent.clone()),
                sender: Some(SENDER.into()),
            };
            let asks = self.client.call(list).await.map_err(failure)?;
            let asked = asks.asks.into_iter().find_map(|pending| pending.ask);
            let (events, busy) = self
                .seen
                .lock()
                .map_or((0, false), |seen| (seen.events, seen.busy));
            let prompt = asked.map(|ask| prompt(&ask));
            let waits = prompt.as_ref().map_or("", |prompt| prompt.id.as_str());
            Ok(Probe {
                alive: true,
                digest: format!("{events} {busy} {waits}"),
                evidence: Evidence::new(
                    Source::Wire,
                    format!("ListAsks: [{waits}]; {events} events, busy: {busy}"),
                ),
                prompt,
            })
        })
    }

    fn compress(&self) -> Call<'_, Compressed> {
        // The daemon makes this idempotent: without new messages it returns the last
        // summary again, and work in flight comes first.
        self.call(COMPRESS, async move {
            let request = CompactMsg {
                agent: self.agent.clone(),
                sender: SENDER.into(),
                ..CompactMsg::default()
            };
            let done = self.client.call(request).await.map_err(failure)?;
            let bytes = done.summary.len();
            let said = format!("Compact: a summary of {bytes} bytes");
            Ok(Compressed {
                session: self.session(),
                evidence: Evidence::new(Source::Wire, said),
            })
        })
    }

    fn cancel(&self) -> Call<'_, bool> {
        self.call(CALL, async move {
            let kill = KillMsg {
                agent: self.agent.clone(),
                sender: SENDER.into(),
            };
            match self.client.call(kill).await {
                Ok(()) => Ok(true),
                Err(error) if error.code() == Some(code::NOT_FOUND) => Ok(false),
                Err(error) => Err(failure(error)),
            }
        })
    }

    fn stop(&self) -> Call<'_, ()> {
        Box::pin(async { self.cancel().await.map(drop) })
    }

    fn look(&self) -> Call<'_, Look> {
        self.call(CALL, async move {
            let request = GetHistoryMsg {
                agent: self.agent.clone(),
                sender: SENDER.into(),
                before: None,
                limit: 20,
                first: false,
            };
            let page = match self.client.call(request).await {
                Ok(page) => page,
                Err(error) if error.code() == Some(code::NOT_FOUND) => Default::default(),
                Err(error) => return Err(failure(error)),
            };
            let line = |entry: &crabtalk_client::HistoryEntry| {
                format!("{}: {}\n", entry.role, entry.content.trim())
            };
            Ok(Look {
                text: page.entries.iter().map(line).collect(),
                attach: ["crabtalk", "--agent", &self.agent, "--as", SENDER, "attach"]
                    .map(str::to_owned)
                    .to_vec(),
            })
        })
    }
}

fn prompt(ask: &AskUserEvent) -> Prompt {
    let questions: Vec<&str> = ask.questions.iter().map(|q| q.question.as_str()).collect();
    let is_question = ask.kind != "approval";
    let mut text = questions.join("\n");
    for part in [&ask.detail, &ask.preview] {
        if !part.is_empty() && !text.contains(part.as_str()) {
            text.push('\n');
            text.push_str(part);
        }
    }
    let options = ask.questions.first().map(|first| &first.options);
    Prompt {
        id: ask.ask_id.clone(),
        tool: if is_question {
            "ask_user".into()
        } else {
            ask.tool.clone()
        },
        subject: ask.detail.clone(),
        exact: false,
        text,
        is_question,
        options: options
            .into_iter()
            .flatten()
            .map(|option| option.label.clone())
            .collect(),
        always: ask.always.as_ref().map_or_else(String::new, |rule| {
            format!("{} {} in {}", rule.tool, rule.exact, rule.cwd)
        }),
    }
}
