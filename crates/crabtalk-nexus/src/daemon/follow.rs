//! Converts the runs of a conversation to events of an agent.
//!
//! Invariant: each run is reported once, as the run of a letter or as another
//! run; the request id tells which.

use super::others::News;
use super::{SENDER, prompt, session};
use crate::backend::{Event, Evidence, Exit, Source, Turn, What};
use crabtalk_client::{AttachMsg, Client, Error, Run, RunNews, StreamEvent, stream_event};
use futures_util::StreamExt;
use futures_util::future::select_all;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, watch};

/// Longest output that is reported.
const MAX_OUTPUT: usize = 1024 * 1024;

/// Maximum number of followed runs: another's run and the letter queued behind it.
const RUNS: usize = 4;

/// Number of finished runs to remember: the news of their start may arrive late.
const OVER: usize = 16;

/// Facts about the conversation, for probes.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) events: u64,
    pub(super) busy: bool,
    /// The token threshold at which the agent's settings make the daemon compact.
    pub(super) compact_at: Option<u64>,
}

/// The fill level of a model's window, in percent, above which the daemon always
/// compacts.
const COMPACTED_PERCENT: u64 = 80;

/// The number of context tokens before the daemon compacts. NEXUS's thresholds refer to it
/// as the window, so that they lie below the daemon's.
fn usable(window: Option<u64>, compact_at: Option<u64>) -> Option<u64> {
    let Some(compact_at) = compact_at else {
        return window;
    };
    let of_window = window.map(|window| window / 100 * COMPACTED_PERCENT);
    Some(of_window.map_or(compact_at, |window| window.min(compact_at)))
}

/// Messages from calls to the follower.
pub(super) enum Follow {
    /// The agent was found, and the run of this request is in flight.
    Ready { in_flight: Option<String> },
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

/// A followed run.
struct Followed {
    run: Box<Run>,
    /// The letter of the run; empty for another's run.
    letter: String,
    /// The run's number, once known.
    number: Option<u64>,
    /// Whether its start was reported.
    is_told: bool,
    output: String,
}

pub(super) struct Follower {
    client: Client,
    agent: String,
    /// Prefix of the request ids of the agent's letters.
    own: String,
    told: Option<mpsc::Receiver<Follow>>,
    news: watch::Receiver<News>,
    /// The number of reported compactions.
    compactions: u64,
    /// Whether `news` still has a sender.
    is_watched: bool,
    seen: Arc<Mutex<Seen>>,
    /// Followed runs; those of others first, since letters are queued behind them.
    runs: Vec<Followed>,
    /// The numbers of the last runs whose end was reported.
    over: VecDeque<u64>,
    ready: VecDeque<Event>,
}

impl Follower {
    pub(super) fn new(
        client: Client,
        (agent, own): (String, String),
        told: Option<mpsc::Receiver<Follow>>,
        news: watch::Receiver<News>,
        seen: Arc<Mutex<Seen>>,
    ) -> Self {
        Self {
            client,
            agent,
            own,
            told,
            news,
            compactions: 0,
            is_watched: true,
            seen,
            runs: Vec::new(),
            over: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let told = self.told.as_mut()?;
            let follows = !self.runs.is_empty();
            tokio::select! {
                (at, news) = heard(&mut self.runs), if follows => self.hear(at, news),
                told = told.recv() => match told? {
                    Follow::Ready { in_flight } => self.say_ready(in_flight),
                    Follow::Run(letter, run) => self.begin(letter, run),
                },
                changed = self.news.changed(), if self.is_watched => match changed {
                    Ok(()) => self.take_news(),
                    Err(_) => self.is_watched = false,
                },
            }
        }
    }

    fn tell(&mut self, what: What, detail: impl Into<String>) {
        let evidence = Evidence::new(Source::Wire, detail);
        self.ready.push_back(Event { what, evidence });
    }

    fn say_ready(&mut self, in_flight: Option<String>) {
        let session = session(&self.agent);
        let busy = in_flight.is_some() || !self.runs.is_empty();
        self.tell(What::Ready { session, busy }, "the daemon knows the agent");
        // NEXUS submits its own letter again, and then follows that run.
        if in_flight.is_some_and(|id| !id.starts_with(&self.own)) && self.runs.is_empty() {
            self.attach(0);
        }
    }

    fn begin(&mut self, letter: String, run: Box<Run>) {
        self.runs.retain(|followed| followed.letter.is_empty());
        self.push(letter, run, None);
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

    /// Handles the news of a started run or a compaction.
    fn take_news(&mut self) {
        let news = self.news.borrow_and_update().clone();
        if news.compactions > std::mem::replace(&mut self.compactions, news.compactions)
            && self.runs.is_empty()
        {
            self.tell(What::Compacted, "COMPACTED outside a run");
        }
        if news.run > 0 && !news.request_id.starts_with(&self.own) && !self.is_known(news.run) {
            self.attach(news.run);
        }
    }

    fn is_known(&self, run: u64) -> bool {
        let mut numbers = self.runs.iter().filter_map(|followed| followed.number);
        numbers.any(|number| number == run) || self.over.contains(&run)
    }

    /// Follows a run that another client began.
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
    }

    fn seen(&self, change: impl FnOnce(&mut Seen)) {
        if let Ok(mut seen) = self.seen.lock() {
            change(&mut seen);
        }
    }

    fn hear(&mut self, at: usize, news: Option<Result<RunNews, Error>>) {
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

    /// Handles a run that cannot be followed because it was refused or the daemon is gone.
    fn broken(&mut self, at: usize, error: &Error) {
        let followed = self.runs.remove(at);
        self.nothing_in_flight();
        let said = error.to_string();
        let id = followed.letter;
        let is_refused = error.code().is_some();
        if id.is_empty() || is_refused {
            // The run never began, or its end is unknown: report the letter as seen and its
            // turn as failed, so that it is sent again.
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

    /// Updates the state for probes after the end of a run.
    fn nothing_in_flight(&mut self) {
        if self.runs.is_empty() {
            self.seen(|seen| seen.busy = false);
        }
    }

    /// Records a run's number. Returns its new index in the list, or `None` if
    /// another stream reports the run or its end was reported.
    fn starts(&mut self, at: usize, number: u64) -> Option<usize> {
        if !self.runs[at].letter.is_empty() {
            // Runs do not overlap: when a letter's run begins, other runs have ended.
            let runs = std::mem::take(&mut self.runs);
            let of_letters = runs.into_iter().filter(|run| !run.letter.is_empty());
            self.runs = of_letters.collect();
            return Some(0);
        }
        if self.is_known(number) && self.runs[at].number != Some(number) {
            self.runs.remove(at);
            self.nothing_in_flight();
            return None;
        }
        Some(at)
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
                let detail = format!("AskUser {}", ask.ask_id);
                self.tell(What::Prompt(prompt), detail);
            }
            E::AskSettled(settled) => {
                let id = settled.ask_id.clone();
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

/// Waits for the next news of any followed run.
async fn heard(runs: &mut [Followed]) -> (usize, Option<Result<RunNews, Error>>) {
    if runs.is_empty() {
        return std::future::pending().await;
    }
    let next = runs.iter_mut().map(|followed| followed.run.next());
    let (news, at, _) = select_all(next).await;
    (at, news)
}

#[cfg(test)]
mod tests;
