//! The runs of a conversation as events of an agent.
//!
//! Invariants: a run is told once, whether it is that of a letter or of others;
//! a run that others began is followed as soon as it is known not to be one's
//! own; what others said has no letter.

use super::{SENDER, prompt, session};
use crate::backend::{Event, Evidence, Exit, Prompt, Source, Turn, What};
use crate::clock::until;
use crabtalk_client::{AttachMsg, Client, Error, Run, RunNews, StreamEvent, stream_event};
use futures_util::StreamExt;
use futures_util::future::select_all;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Longest output that is passed on.
const MAX_OUTPUT: usize = 1024 * 1024;

/// How long a letter may take to know its run: one that began is until then as
/// likely its own as one of others.
const OWN: Duration = Duration::from_secs(2);

/// Runs that are followed at once: one of others, and the letter behind it.
const RUNS: usize = 4;

/// Runs that are remembered once they were told: word that one began may come when
/// it is over, and the few behind it, too.
const OVER: usize = 16;

/// What is known of the conversation for probes.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) events: u64,
    pub(super) busy: bool,
    pub(super) prompts: Vec<Prompt>,
    /// Tokens at which the agent's settings have the daemon compact.
    pub(super) compact_at: Option<u64>,
}

/// Part of a model's window, in percent, above which the daemon compacts whatever
/// the agent's settings say.
const COMPACTED_PERCENT: u64 = 80;

/// Tokens that a context may hold before the daemon compacts it: the window for the
/// thresholds of NEXUS, which so lie below the daemon's own.
fn usable(window: Option<u64>, compact_at: Option<u64>) -> Option<u64> {
    let Some(compact_at) = compact_at else {
        return window;
    };
    let of_window = window.map(|window| window / 100 * COMPACTED_PERCENT);
    Some(of_window.map_or(compact_at, |window| window.min(compact_at)))
}

/// What calls tell the follower.
pub(super) enum Follow {
    /// The agent was found; a run may be in flight.
    Ready { is_busy: bool },
    /// The run of a letter.
    Run(String, Box<Run>),
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready { .. } => "Ready",
            Self::Run(..) => "Run",
        })
    }
}

/// A run that is followed.
struct Followed {
    run: Box<Run>,
    /// The letter whose run it is; empty for one of others.
    letter: String,
    /// Its number, once it is known.
    number: Option<u64>,
    /// Whether its begin was told.
    is_told: bool,
    output: String,
}

pub(super) struct Follower {
    client: Client,
    agent: String,
    told: Option<mpsc::Receiver<Follow>>,
    begun: watch::Receiver<u64>,
    /// Whether anybody tells what begins.
    is_watched: bool,
    silent: Duration,
    seen: Arc<Mutex<Seen>>,
    /// Those of others first: they were there before a letter waited for them.
    runs: Vec<Followed>,
    /// A run that may be of others (0: whichever is in flight), and when that is
    /// decided.
    unknown: Option<(u64, Instant)>,
    /// The numbers of the last runs that were told to their end.
    over: VecDeque<u64>,
    ready: VecDeque<Event>,
    was_silent: bool,
}

impl Follower {
    pub(super) fn new(
        client: Client,
        agent: String,
        told: Option<mpsc::Receiver<Follow>>,
        begun: watch::Receiver<u64>,
        silent: Duration,
        seen: Arc<Mutex<Seen>>,
    ) -> Self {
        Self {
            client,
            agent,
            told,
            begun,
            is_watched: true,
            silent,
            seen,
            runs: Vec::new(),
            unknown: None,
            over: VecDeque::new(),
            ready: VecDeque::new(),
            was_silent: false,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let told = self.told.as_mut()?;
            let asks = self.seen.lock().map_or(0, |seen| seen.prompts.len());
            let follows = !self.runs.is_empty();
            let watch = follows && !self.was_silent && asks == 0;
            let decided = self.unknown.map(|(_, at)| at);
            tokio::select! {
                (at, news) = heard(&mut self.runs), if follows => self.hear(at, news),
                told = told.recv() => match told? {
                    Follow::Ready { is_busy } => self.say_ready(is_busy),
                    Follow::Run(letter, run) => self.begin(letter, run),
                },
                changed = self.begun.changed(), if self.is_watched => match changed {
                    Ok(()) => self.began(),
                    Err(_) => self.is_watched = false,
                },
                () = until(decided), if decided.is_some() => self.decide(),
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

    fn say_ready(&mut self, is_busy: bool) {
        let session = session(&self.agent);
        let busy = is_busy || !self.runs.is_empty();
        self.tell(What::Ready { session, busy }, "the daemon knows the agent");
        if is_busy {
            // Most likely that of a letter, which is asked about now.
            self.unknown = Some((0, Instant::now() + OWN));
        }
    }

    fn begin(&mut self, letter: String, run: Box<Run>) {
        self.runs.retain(|followed| followed.letter.is_empty());
        self.push(letter, run, None);
        self.was_silent = false;
    }

    fn push(&mut self, letter: String, run: Box<Run>, number: Option<u64>) {
        let followed = Followed {
            run,
            number,
            is_told: false,
            output: String::new(),
            letter,
        };
        match followed.letter.is_empty() {
            true => self.runs.insert(0, followed),
            false => self.runs.push(followed),
        }
        self.runs.truncate(RUNS);
    }

    /// A run began in the conversation.
    fn began(&mut self) {
        let run = *self.begun.borrow_and_update();
        if run == 0 || self.is_known(run) {
            return;
        }
        if self.runs.iter().any(|followed| followed.number.is_none()) {
            self.unknown = Some((run, Instant::now() + OWN));
            return;
        }
        self.attach(run);
    }

    fn is_known(&self, run: u64) -> bool {
        let mut numbers = self.runs.iter().filter_map(|followed| followed.number);
        numbers.any(|number| run == 0 || number == run) || self.over.contains(&run)
    }

    fn decide(&mut self) {
        if let Some((run, _)) = self.unknown.take()
            && !self.is_known(run)
        {
            self.attach(run);
        }
    }

    /// Follows a run that others began.
    fn attach(&mut self, run: u64) {
        let number = (run > 0).then_some(run);
        let request = AttachMsg {
            agent: self.agent.clone(),
            sender: SENDER.into(),
            run: number,
            only_run: number.is_some(),
            ..AttachMsg::default()
        };
        let run = Box::new(self.client.attach(request));
        self.push(String::new(), run, number);
        self.was_silent = false;
    }

    fn seen(&self, change: impl FnOnce(&mut Seen)) {
        if let Ok(mut seen) = self.seen.lock() {
            change(&mut seen);
        }
    }

    fn hear(&mut self, at: usize, news: Option<Result<RunNews, Error>>) {
        self.was_silent = false;
        match news {
            Some(Ok(RunNews::Event(event))) => {
                self.seen(|seen| seen.events += 1);
                self.take(at, *event);
            }
            Some(Ok(RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. })) => {}
            Some(Err(error)) => self.broken(at, &error),
            None => drop(self.runs.remove(at)),
        }
    }

    /// The run cannot be followed: it was refused, or the daemon is gone.
    fn broken(&mut self, at: usize, error: &Error) {
        let followed = self.runs.remove(at);
        self.nothing_in_flight();
        let said = error.to_string();
        let id = followed.letter;
        let is_refused = error.code().is_some();
        if id.is_empty() || is_refused {
            // It was never begun, or nobody knows its end: the letter is told as
            // seen, and its turn as failed, so that it goes again.
            let is_of_others = id.is_empty();
            if is_of_others && !followed.is_told {
                return;
            }
            if !is_of_others {
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

    fn compact_at(&self) -> Option<u64> {
        self.seen.lock().ok().and_then(|seen| seen.compact_at)
    }

    /// A run is over: nothing is in flight unless another one is.
    fn nothing_in_flight(&mut self) {
        if self.runs.is_empty() {
            self.seen(|seen| {
                seen.busy = false;
                seen.prompts.clear();
            });
        }
    }

    /// A run says its number: it is told by one of those that follow it, by that
    /// of the letter if it is a letter's. Where it stands then, if it goes on.
    fn starts(&mut self, at: usize, number: u64) -> Option<usize> {
        self.unknown = self.unknown.filter(|(run, _)| *run > 0 && *run != number);
        let of_others = self.runs[at].letter.is_empty();
        if of_others && self.over.contains(&number) {
            self.runs.remove(at);
            self.nothing_in_flight();
            return None;
        }
        let is_other = |(index, followed): (usize, &Followed)| {
            index != at && (!of_others || followed.number == Some(number))
        };
        let same = self.runs.iter().enumerate();
        let same: Vec<usize> = same
            .filter(|(index, followed)| is_other((*index, followed)))
            .map(|(index, _)| index)
            .collect();
        if of_others && !same.is_empty() {
            self.runs.remove(at);
            return None;
        }
        let before = same.iter().filter(|index| **index < at).count();
        // Runs are one behind the other: where a letter's begins, others are over.
        for index in same.into_iter().rev() {
            self.runs.remove(index);
        }
        Some(at - before)
    }

    fn take(&mut self, at: usize, event: StreamEvent) {
        use stream_event::Event as E;
        let seq = event.seq;
        let Some(event) = event.event else {
            return;
        };
        match event {
            E::Start(start) => {
                let Some(at) = self.starts(at, start.run) else {
                    return;
                };
                let followed = &mut self.runs[at];
                followed.number = Some(start.run);
                followed.output.clear();
                followed.is_told = true;
                let of = followed.letter.clone();
                self.seen(|seen| seen.busy = true);
                let detail = format!("StreamStart of run {}", start.run);
                self.tell(What::TurnBegan, detail.clone());
                if !of.is_empty() {
                    self.tell(What::Seen { id: of }, detail);
                }
            }
            E::Chunk(chunk) => {
                let output = &mut self.runs[at].output;
                if output.len() < MAX_OUTPUT {
                    output.push_str(&chunk.content);
                }
            }
            E::ToolStart(start) => {
                self.runs[at].output.clear();
                let tools: Vec<_> = start.calls.iter().map(|call| call.name.as_str()).collect();
                self.tell(What::Progress, format!("ToolStart {}", tools.join(", ")));
            }
            E::TextStart(_) | E::ToolResult(_) | E::ToolProgress(_) | E::UserSteered(_) => {
                self.tell(What::Progress, format!("event {seq}"));
            }
            E::Compacted(done) if done.failed.is_empty() => {
                let (before, after) = (done.tokens_before, done.tokens_after);
                let detail = format!("Compacted from {before} to {after} tokens");
                self.tell(What::Compacted, detail);
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
                let followed = self.runs.remove(at);
                self.over.push_back(end.run);
                if self.over.len() > OVER {
                    self.over.pop_front();
                }
                self.nothing_in_flight();
                let detail = format!("StreamEnd with code {} of run {}", end.code, end.run);
                let failed = (end.code != 0 || !end.error.is_empty()).then(|| end.error.clone());
                let turn = Turn {
                    output: followed.output,
                    error: failed,
                    tokens: end.context_used,
                    window: usable(end.context_window, self.compact_at()),
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
            | E::Queued(_)
            | E::Notice(_) => {}
        }
    }
}

/// The next word of any of the runs.
async fn heard(runs: &mut [Followed]) -> (usize, Option<Result<RunNews, Error>>) {
    if runs.is_empty() {
        return std::future::pending().await;
    }
    let next = runs.iter_mut().map(|followed| followed.run.next());
    let (news, at, _) = select_all(next).await;
    (at, news)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_client::{Endpoint, StreamEnd, StreamMsg, StreamStart};

    fn event(event: stream_event::Event) -> StreamEvent {
        StreamEvent {
            event: Some(event),
            ..StreamEvent::default()
        }
    }

    fn start(run: u64) -> StreamEvent {
        event(stream_event::Event::Start(StreamStart {
            run,
            ..StreamStart::default()
        }))
    }

    fn end(run: u64) -> StreamEvent {
        event(stream_event::Event::End(StreamEnd {
            run,
            ..StreamEnd::default()
        }))
    }

    /// A follower whose daemon is nowhere, and what tells it which runs begin.
    fn follower() -> (Follower, watch::Sender<u64>) {
        let (tell, begun) = watch::channel(0);
        let client = Client::new(Endpoint::of_home("/nowhere"), "test/1");
        let (_, told) = mpsc::channel(1);
        let silent = Duration::from_secs(60);
        let seen = Arc::default();
        let follower = Follower::new(client, "crab".into(), Some(told), begun, silent, seen);
        (follower, tell)
    }

    #[test]
    fn window_ends_where_the_daemon_compacts() {
        for (window, compact_at, usable_) in [
            (Some(200_000), Some(100_000), Some(100_000)),
            (Some(100_000), Some(100_000), Some(80_000)),
            (Some(200_000), None, Some(200_000)),
            (None, Some(100_000), Some(100_000)),
            (None, None, None),
        ] {
            assert_eq!(usable(window, compact_at), usable_);
        }
    }

    #[tokio::test]
    async fn compaction_within_a_run_is_told() {
        let (mut follower, _tell) = follower();
        let run = Box::new(follower.client.stream(StreamMsg::default()));
        follower.begin("letter".into(), run);
        follower.take(0, start(7));
        for failed in ["", "no model"] {
            let done = crabtalk_client::CompactedEvent {
                failed: failed.into(),
                ..Default::default()
            };
            follower.take(0, event(stream_event::Event::Compacted(done)));
        }
        let told = follower.ready.iter();
        assert_eq!(told.filter(|e| e.what == What::Compacted).count(), 1);
    }

    #[tokio::test]
    async fn a_letters_run_that_is_over_before_word_of_its_begin_comes_is_told_once() {
        let (mut follower, tell) = follower();
        let run = Box::new(follower.client.stream(StreamMsg::default()));
        follower.begin("letter".into(), run);
        follower.take(0, start(7));
        follower.take(0, end(7));
        assert_eq!(follower.ready.len(), 3, "{:?}", follower.ready);

        tell.send(7).unwrap();
        follower.began();
        assert!(follower.runs.is_empty(), "nobody's run is followed");
        // What was found in flight at the start, and says late that it was this one.
        follower.attach(0);
        follower.take(0, start(7));
        assert!(follower.runs.is_empty());
        assert_eq!(follower.ready.len(), 3, "{:?}", follower.ready);

        // The next one is somebody else's.
        tell.send(8).unwrap();
        follower.began();
        assert_eq!(follower.runs.len(), 1);
        follower.take(0, start(8));
        assert_eq!(follower.ready.len(), 4, "{:?}", follower.ready);
    }
}
