//! Follows a run: shows its events, asks its questions, cancels it on Ctrl-C.
//!
//! Invariants: output waits while a prompt is shown; input typed before a question does
//! not answer it; a finished step has no open question; replies and kills use
//! separate connections.

mod advice;
mod asking;
mod cancel;

use crate::error::Error;
use crate::prompt::Prompt;
use crate::screen::Screen;
use crate::terminal::Terminal;
use crate::text::duration;
use crate::view::View;
use cancel::Cancelling;
use crabtalk_client::{Client, RunNews};
use crabtalk_proto::{KillMsg, StreamEnd, StreamEvent, stream_event};
use futures_core::Stream;
use futures_util::StreamExt;
use std::collections::{HashSet, VecDeque};
use std::future::pending;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// Time during which a new question takes no input, since earlier keys were meant for
/// something else.
pub(crate) const SETTLE: Duration = Duration::from_millis(400);

/// A stream of Ctrl-C keys.
pub(crate) type Interrupts = Pin<Box<dyn Stream<Item = ()> + Send>>;

/// Input and output of the user.
pub(crate) struct Console {
    pub(crate) screen: Screen,
    pub(crate) terminal: Option<Box<dyn Terminal>>,
    pub(crate) interrupts: Interrupts,
}

/// The source of answers to questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The user at the terminal; without a terminal, approvals are denied.
    Person,
    /// The user at the terminal, or other clients without a terminal.
    PersonOrOthers,
    /// Other clients.
    Others,
}

/// Effect of Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    Kill,
    Leave,
}

/// Options for following a run.
pub(crate) struct Follow {
    pub(crate) client: Client,
    /// The agent option; empty for the default agent.
    pub(crate) agent: String,
    pub(crate) sender: String,
    pub(crate) json: bool,
    pub(crate) answers: Answers,
    pub(crate) on_interrupt: OnInterrupt,
    pub(crate) bell: bool,
}

/// Result of following.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    Run(StreamEnd),
    Interrupted,
    /// The run waits for an approval that this client cannot give.
    Waiting,
}

impl Ended {
    /// The result of the command.
    pub(crate) fn result(self) -> Result<(), Error> {
        match self {
            Self::Run(end) if end.code == 0 && end.error.is_empty() => Ok(()),
            Self::Run(_) | Self::Waiting => Err(Error::RunFailed),
            Self::Interrupted => Err(Error::Interrupted),
        }
    }
}

/// The state of following a run.
struct Following<'a> {
    how: Follow,
    screen: &'a mut Screen,
    terminal: Option<&'a mut Box<dyn Terminal>>,
    view: View,
    /// The answering agent, known from Start.
    speaker: Option<String>,
    asks: VecDeque<Prompt>,
    /// Ids of asks answered here, whose settlement is not reported again.
    done: HashSet<String>,
    /// The time until which input does not answer the question.
    settling: Option<Instant>,
    /// Results received during a prompt.
    held: Vec<StreamEvent>,
    /// Set while the run is being cancelled.
    cancelling: Option<Cancelling>,
}

impl Follow {
    /// Follows a run to its End.
    pub(crate) async fn run(
        self,
        news: impl Stream<Item = Result<RunNews, crabtalk_client::Error>> + Send,
        console: &mut Console,
    ) -> Result<Ended, Error> {
        let Console {
            screen,
            terminal,
            interrupts,
        } = console;
        let terminal = match self.answers {
            Answers::Person | Answers::PersonOrOthers => terminal.as_mut(),
            Answers::Others => None,
        };
        let mut following = Following {
            view: View::new(self.json),
            how: self,
            screen,
            terminal,
            speaker: None,
            asks: VecDeque::new(),
            done: HashSet::new(),
            settling: None,
            held: Vec::new(),
            cancelling: None,
        };
        let mut news = std::pin::pin!(news);
        loop {
            let settling = following.settling;
            let prompting = !following.asks.is_empty() && settling.is_none();
            let ended = tokio::select! {
                biased;
                Some(()) = interrupts.next() => following.interrupt()?,
                () = until(settling) => {
                    following.settle();
                    None
                }
                news = news.next() => following.news(news.ok_or_else(lost)??).await?,
                // Received events are handled first.
                given_up = Cancelling::given_up(&mut following.cancelling) => {
                    given_up?;
                    let said = "crabtalk: the run was cancelled but has not ended";
                    following.screen.problem(said)?;
                    Some(Ended::Interrupted)
                }
                line = typed(&mut following.terminal), if prompting => {
                    following.line(line.as_deref()).await?;
                    None
                }
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }
}

/// The error for a stream that ended without an End.
fn lost() -> Error {
    Error::Failed(
        "the daemon closed the stream before the run ended; `crabtalk attach` follows the run"
            .to_owned(),
    )
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

/// The next line; `None` if the terminal fails.
async fn typed(terminal: &mut Option<&mut Box<dyn Terminal>>) -> Option<String> {
    match terminal {
        Some(terminal) => terminal.line().await.unwrap_or(None),
        None => pending().await,
    }
}

impl Following<'_> {
    async fn news(&mut self, news: RunNews) -> Result<Option<Ended>, Error> {
        match news {
            RunNews::Event(event) => return self.event(*event).await,
            RunNews::Lost { why } => self
                .screen
                .note(&format!("crabtalk: {why}; reconnecting"))?,
            RunNews::Back => {
                self.screen.note("crabtalk: reconnected")?;
                // The question may have scrolled away.
                self.show_prompt();
            }
            RunNews::Missing { behind } => {
                if self.how.json {
                    let said = serde_json::json!({"type": "missing", "behind": behind});
                    self.screen.json(&said)?;
                }
                self.screen
                    .problem("crabtalk: events were lost; `crabtalk history` shows the messages")?;
            }
        }
        Ok(None)
    }

    async fn event(&mut self, event: StreamEvent) -> Result<Option<Ended>, Error> {
        use stream_event::Event;
        match &event.event {
            Some(Event::AskUser(ask)) => {
                if self.how.json {
                    self.view.event(self.screen, &event)?;
                }
                self.ask((**ask).clone()).await?;
                return Ok(None);
            }
            Some(Event::AskSettled(settled)) => {
                let settled = settled.clone();
                self.settled(&event, &settled)?;
                return Ok(None);
            }
            Some(Event::ToolResult(_)) if !self.asks.is_empty() => {
                // Bounded by the number of calls in a step.
                self.held.push(event);
                return Ok(None);
            }
            Some(Event::Waiting(waiting)) if self.is_alone() => {
                if self.how.json {
                    self.view.event(self.screen, &event)?;
                }
                self.screen.problem(&format!(
                    "crabtalk: the run waits for {} to approve a tool call, for {} at most; it continues \
                     without this command, and `crabtalk attach` follows it",
                    waiting.whom,
                    duration(waiting.timeout_secs)
                ))?;
                return Ok(Some(Ended::Waiting));
            }
            Some(Event::Start(start)) => self.speaker = Some(start.agent.clone()),
            _ => {}
        }
        self.settle_asks()?;
        self.view.event(self.screen, &event)?;
        let Some(Event::End(end)) = event.event else {
            return Ok(None);
        };
        if self.how.bell {
            self.screen.bell();
        }
        Ok(Some(match self.cancelling {
            Some(_) => Ended::Interrupted,
            None => Ended::Run(end),
        }))
    }

    fn interrupt(&mut self) -> Result<Option<Ended>, Error> {
        if self.how.on_interrupt == OnInterrupt::Leave || self.cancelling.is_some() {
            self.screen.end_line()?;
            return Ok(Some(Ended::Interrupted));
        }
        if self.speaker.is_none() {
            // The active run may belong to another message.
            self.screen.note(
                "crabtalk: the question stays queued; `crabtalk kill` cancels it once it runs",
            )?;
            return Ok(Some(Ended::Interrupted));
        }
        if !self.asks.is_empty() {
            self.asks.clear();
            self.show("\n");
        }
        self.show_held()?;
        self.screen.end_line()?;
        self.screen
            .note("crabtalk: cancelling the run; Ctrl-C again leaves at once")?;
        let kill = KillMsg {
            agent: self.how.agent.clone(),
            sender: self.how.sender.clone(),
        };
        self.cancelling = Some(Cancelling::begin(self.how.client.clone(), kill));
        Ok(None)
    }

    fn agent(&self) -> &str {
        match &self.speaker {
            Some(agent) => agent,
            None if self.how.agent.is_empty() => "the agent",
            None => &self.how.agent,
        }
    }
}

#[cfg(test)]
mod tests;
