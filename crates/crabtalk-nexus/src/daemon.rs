//! An agent of the daemon: the conversation (agent, `user/nexus`).
//!
//! Invariants: a message is a run with the letter's name as its request id, so
//! that the daemon itself sees to it that it never runs twice; a run is followed
//! while it goes, and an idle agent costs no connection; silence is told after the
//! configured while without an event.
//!
//! Absent: a screen, drafts, a person at the window.

use crate::files::Files;
use crate::name::Name;
use crabtalk_backend::{
    Answered, Backend, Call, Compressed, Compression, Event, Events, Evidence, Exit, Failure,
    Launch, Look, Mark, Probe, Prompt, Source, Submission, Submitted, Turn, What,
};
use crabtalk_client::{
    AskUserEvent, Client, CompactMsg, Error, GetHistoryMsg, KillMsg, ListAsksMsg, Replied,
    ReplyToAsk, Run, RunNews, StreamEvent, StreamMsg, code, stream_event,
};
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// The sender of NEXUS, which is an owner's.
pub const SENDER: &str = "user/nexus";

/// How long a run is followed over a lost daemon: one that is replaced needs
/// seconds, one that a person mends, minutes.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Longest call: none waits for a model but compression.
const CALL: Duration = Duration::from_secs(30);

/// Longest compression, which asks a model for a summary.
const COMPRESS: Duration = Duration::from_secs(5 * 60);

/// Messages to the follower of runs: one is in flight at a time.
const QUEUE: usize = 4;

/// Longest output that is passed on.
const MAX_OUTPUT: usize = 1024 * 1024;

/// A conversation, driven.
#[derive(Debug)]
pub struct Daemon {
    client: Client,
    name: Name,
    agent: String,
    files: Files,
    silent: Duration,
    tell: mpsc::Sender<Follow>,
    told: Mutex<Option<mpsc::Receiver<Follow>>>,
    seen: Arc<Mutex<Seen>>,
}

/// What is known of the conversation for probes.
#[derive(Debug, Default)]
struct Seen {
    events: u64,
    busy: bool,
    prompts: Vec<Prompt>,
}

enum Follow {
    Ready,
    Run(String, Box<Run>),
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready => "Ready",
            Self::Run(..) => "Run",
        })
    }
}

impl Daemon {
    /// The agent of this name on the daemon, for the member `name` of the team.
    pub fn new(client: Client, name: Name, agent: String, files: Files, silent: Duration) -> Self {
        let (tell, told) = mpsc::channel(QUEUE);
        Self {
            client: client.with_patience(PATIENCE),
            name,
            agent,
            files,
            silent,
            tell,
            told: Mutex::new(Some(told)),
            seen: Arc::default(),
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
        format!("{}/{SENDER}", self.agent)
    }

    fn reply<'a>(&'a self, prompt: &'a Prompt, content: String) -> Call<'a, Answered> {
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
}

fn failure(error: Error) -> Failure {
    match &error {
        Error::NotWelcome(_) | Error::Unsafe(_) => Failure::Missing(error.to_string()),
        // A daemon comes back.
        Error::NoDaemon(_) | Error::NotStarted(_) | Error::Lost { .. } => {
            Failure::NotRunning(error.to_string())
        }
        Error::Refused(_) | Error::Broken(_) | Error::RunGone { .. } | Error::Unexpected(_) => {
            Failure::Failed(error.to_string())
        }
    }
}

impl Backend for Daemon {
    fn events(&self) -> Events {
        let told = self.told.lock().ok().and_then(|mut told| told.take());
        let follower = Follower {
            told,
            session: self.session(),
            silent: self.silent,
            seen: Arc::clone(&self.seen),
            run: None,
            ready: VecDeque::new(),
            output: String::new(),
            letter: String::new(),
            was_silent: false,
        };
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
            // The conversation is there, or comes with its first message: what
            // has to be there is the daemon and its agent.
            let agent = crabtalk_client::GetAgentMsg {
                name: self.agent.clone(),
            };
            let known = self.client.call(agent).await;
            known.map_err(|error| match error.code() {
                Some(code::NOT_FOUND) => Failure::Missing(error.to_string()),
                _ => failure(error),
            })?;
            let full = |_| Failure::Failed("nobody follows its runs".into());
            self.tell.send(Follow::Ready).await.map_err(full)
        })
    }

    fn mark(&self) -> Call<'_, Mark> {
        // The request id says whether it ran.
        Box::pin(async { Ok(Mark::default()) })
    }

    fn submit(&self, message: Submission) -> Call<'_, Submitted> {
        self.call(CALL, async move {
            let behind = self.files.behind(&self.name, &message.text);
            let request = StreamMsg {
                agent: self.agent.clone(),
                sender: Some(SENDER.into()),
                content: format!("{}{behind}", message.text),
                cwd: self.files.root().to_str().map(str::to_owned),
                request_id: Some(format!("nexus-{}-{}", self.name, message.id)),
                ..StreamMsg::default()
            };
            let run = Box::new(self.client.stream(request));
            let said = format!("Stream with request_id nexus-{}-{}", self.name, message.id);
            let follow = Follow::Run(message.id, run);
            let full = |_| Failure::Failed("nobody follows its runs".into());
            self.tell.send(follow).await.map_err(full)?;
            Ok(Submitted::Sent(Evidence::new(Source::Wire, said)))
        })
    }

    fn allow<'a>(&'a self, prompt: &'a Prompt) -> Call<'a, Answered> {
        self.reply(prompt, "1".into())
    }

    fn allow_always<'a>(&'a self, prompt: &'a Prompt) -> Call<'a, Answered> {
        self.reply(prompt, "Allow always".into())
    }

    fn deny<'a>(&'a self, prompt: &'a Prompt, reason: &'a str) -> Call<'a, Answered> {
        let content = match reason.trim() {
            _ if prompt.is_question => format!("No. {reason}"),
            "" => "Deny".into(),
            reason => format!("Deny: {reason}"),
        };
        self.reply(prompt, content)
    }

    fn answer<'a>(&'a self, prompt: &'a Prompt, text: &'a str) -> Call<'a, Answered> {
        self.reply(prompt, text.to_owned())
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
                busy: Some(busy),
                evidence: Evidence::new(
                    Source::Wire,
                    format!("ListAsks: [{waits}]; {events} events, busy: {busy}"),
                ),
                prompt,
                ended: None,
                draft: None,
            })
        })
    }

    fn nudge<'a>(&'a self, _: &'a str) -> Call<'a, Answered> {
        let evidence = Evidence::new(Source::Wire, "a conversation has no drafts");
        Box::pin(async { Ok(Answered::Stale(evidence)) })
    }

    fn compress(&self, how: Compression) -> Call<'_, Compressed> {
        self.call(COMPRESS, async move {
            let request = CompactMsg {
                agent: self.agent.clone(),
                sender: SENDER.into(),
                fresh: how == Compression::Clear,
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

    fn cancel(&self) -> Call<'_, ()> {
        self.call(CALL, async move {
            let kill = KillMsg {
                agent: self.agent.clone(),
                sender: SENDER.into(),
            };
            match self.client.call(kill).await {
                Ok(()) => Ok(()),
                Err(error) if error.code() == Some(code::NOT_FOUND) => Ok(()),
                Err(error) => Err(failure(error)),
            }
        })
    }

    fn stop(&self) -> Call<'_, ()> {
        self.cancel()
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

/// An ask as a prompt.
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

/// The runs of a conversation as events of an agent.
struct Follower {
    told: Option<mpsc::Receiver<Follow>>,
    session: String,
    silent: Duration,
    seen: Arc<Mutex<Seen>>,
    run: Option<Box<Run>>,
    ready: VecDeque<Event>,
    output: String,
    /// The letter whose run is followed.
    letter: String,
    was_silent: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let told = self.told.as_mut()?;
            let Some(run) = &mut self.run else {
                match told.recv().await? {
                    Follow::Ready => self.say_ready(false),
                    Follow::Run(letter, run) => self.begin(letter, run),
                }
                continue;
            };
            let asks = self.seen.lock().map_or(0, |seen| seen.prompts.len());
            let watch = !self.was_silent && asks == 0;
            tokio::select! {
                news = run.next() => self.hear(news),
                told = told.recv() => match told? {
                    // The run that is followed tells of the launch too.
                    Follow::Ready => self.say_ready(true),
                    Follow::Run(letter, run) => self.begin(letter, run),
                },
                () = tokio::time::sleep(self.silent), if watch => {
                    self.was_silent = true;
                    let secs = self.silent.as_secs();
                    self.tell(What::Silent { secs }, format!("no event for {secs} s"));
                }
            }
        }
    }

    fn tell(&mut self, what: What, detail: impl Into<String>) {
        let evidence = Evidence::new(Source::Wire, detail);
        self.ready.push_back(Event { what, evidence });
    }

    fn say_ready(&mut self, busy: bool) {
        let session = self.session.clone();
        self.tell(What::Ready { session, busy }, "the daemon knows the agent");
    }

    fn begin(&mut self, letter: String, run: Box<Run>) {
        self.run = Some(run);
        self.letter = letter;
        self.output.clear();
        self.was_silent = false;
    }

    fn seen(&self, change: impl FnOnce(&mut Seen)) {
        if let Ok(mut seen) = self.seen.lock() {
            change(&mut seen);
        }
    }

    fn hear(&mut self, news: Option<Result<RunNews, Error>>) {
        self.was_silent = false;
        match news {
            Some(Ok(RunNews::Event(event))) => {
                self.seen(|seen| seen.events += 1);
                self.take(*event);
            }
            Some(Ok(RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. })) => {}
            Some(Err(error)) => self.broken(&error),
            None => self.run = None,
        }
    }

    /// The run cannot be followed: it was refused, or the daemon is gone.
    fn broken(&mut self, error: &Error) {
        self.run = None;
        self.over();
        let said = error.to_string();
        if error.code().is_some() {
            // It was never begun, or nobody knows its end: the letter is told as
            // seen, and its turn as failed, so that it goes again.
            let id = std::mem::take(&mut self.letter);
            if !id.is_empty() {
                self.tell(What::Seen { id }, said.clone());
            }
            let turn = Turn {
                error: Some(said.clone()),
                ..Turn::default()
            };
            self.tell(What::TurnEnded(turn), said);
        } else {
            let exit = Exit {
                said: said.clone(),
                ..Exit::default()
            };
            self.tell(What::Died(exit), said);
        }
    }

    fn over(&mut self) {
        self.seen(|seen| {
            seen.busy = false;
            seen.prompts.clear();
        });
    }

    fn take(&mut self, event: StreamEvent) {
        use stream_event::Event as E;
        let seq = event.seq;
        let Some(event) = event.event else {
            return;
        };
        match event {
            E::Start(start) => {
                self.output.clear();
                self.seen(|seen| seen.busy = true);
                let detail = format!("StreamStart of run {}", start.run);
                self.tell(What::TurnBegan, detail.clone());
                let id = self.letter.clone();
                self.tell(What::Seen { id }, detail);
            }
            E::Chunk(chunk) => {
                if self.output.len() < MAX_OUTPUT {
                    self.output.push_str(&chunk.content);
                }
            }
            E::ToolStart(start) => {
                self.output.clear();
                let tools: Vec<_> = start.calls.iter().map(|call| call.name.as_str()).collect();
                self.tell(What::Progress, format!("ToolStart {}", tools.join(", ")));
            }
            E::TextStart(_) | E::ToolResult(_) | E::ToolProgress(_) | E::UserSteered(_) => {
                self.tell(What::Progress, format!("event {seq}"));
            }
            E::AskUser(ask) => {
                let prompt = prompt(&ask);
                self.seen(|seen| seen.prompts.push(prompt.clone()));
                let detail = format!("AskUser {}", ask.ask_id);
                self.tell(What::Prompt(prompt), detail);
            }
            E::AskSettled(settled) => {
                let id = settled.ask_id.clone();
                self.seen(|seen| seen.prompts.retain(|prompt| prompt.id != id));
                let how = settled.answer.clone();
                self.tell(What::PromptGone { id, how }, "AskSettled");
            }
            E::End(end) => {
                self.run = None;
                self.over();
                let detail = format!("StreamEnd with code {} of run {}", end.code, end.run);
                let failed = (end.code != 0 || !end.error.is_empty()).then(|| end.error.clone());
                let turn = Turn {
                    output: std::mem::take(&mut self.output),
                    error: failed,
                    tokens: end.context_used,
                    window: end.context_window,
                    transcript_bytes: None,
                };
                self.tell(What::TurnEnded(turn), detail);
            }
            E::Thinking(_)
            | E::ToolsComplete(_)
            | E::TextEnd(_)
            | E::ThinkingStart(_)
            | E::ThinkingEnd(_)
            | E::UserMessage(_)
            | E::Compacted(_)
            | E::Interrupted(_)
            | E::Waiting(_)
            | E::Notice(_) => {}
        }
    }
}
