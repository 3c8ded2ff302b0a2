//! Follows a run: shows its events, puts its questions, cancels it on Ctrl-C.
//!
//! Invariants: the stream is read as it comes, but nothing is shown over a
//! prompt; what was typed before a question was shown never answers it; a step that went on has no open question; a reply or kill travels
//! on a connection of its own.

mod advice;
mod cancel;

use crate::error::Error;
use crate::prompt::{self, NOBODY, Prompt, Step};
use crate::screen::Screen;
use crate::terminal::Terminal;
use crate::text::duration;
use crate::view::{self, Style, View};
use cancel::Cancelling;
use crabtalk_client::{Client, Replied, RunNews};
use crabtalk_proto::{
    AskSettledEvent, AskUserEvent, GetAgentMsg, KillMsg, ReplyToAsk, StreamEnd, StreamEvent,
    stream_event,
};
use futures_core::Stream;
use futures_util::StreamExt;
use std::collections::{HashSet, VecDeque};
use std::future::pending;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// How long a question stands before an answer is taken: what is typed within
/// it was meant for something else.
pub(crate) const SETTLE: Duration = Duration::from_millis(400);

/// Ctrl-C, again and again.
pub(crate) type Interrupts = Pin<Box<dyn Stream<Item = ()> + Send>>;

/// Who sits before the program.
pub(crate) struct Console {
    pub(crate) screen: Screen,
    pub(crate) terminal: Option<Box<dyn Terminal>>,
    pub(crate) interrupts: Interrupts,
}

/// Who answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The person at the terminal; without one approvals are denied.
    Person,
    /// The person at the terminal; without one somebody else.
    PersonOrOthers,
    /// Other clients.
    Others,
}

/// What Ctrl-C does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// Cancels the run.
    Kill,
    /// Stops following it.
    Leave,
}

/// How a run is followed.
pub(crate) struct Follow {
    pub(crate) client: Client,
    /// As the command line has them; empty means the daemon's defaults.
    pub(crate) agent: String,
    pub(crate) sender: String,
    pub(crate) style: Style,
    pub(crate) answers: Answers,
    pub(crate) on_interrupt: OnInterrupt,
    pub(crate) bell: bool,
    /// Where rules for agents are written, for the advice after a denial.
    pub(crate) agents_dir: PathBuf,
}

/// How following ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    /// The run is over.
    Run(StreamEnd),
    /// Ctrl-C.
    Interrupted,
    /// It waits for somebody who may answer, which this client cannot see.
    Waiting,
}

enum Next {
    News(Option<Result<RunNews, crabtalk_client::Error>>),
    Line(Option<String>),
    /// A question has stood long enough to be answered.
    Settled,
    Interrupt,
    /// A cancelled run does not end, or the daemon cannot be told.
    GivenUp(Result<(), crabtalk_client::Error>),
}

/// A run while it is followed.
struct Following<'a> {
    how: Follow,
    screen: &'a mut Screen,
    terminal: Option<&'a mut Box<dyn Terminal>>,
    view: View,
    /// Who speaks, from Start on.
    speaker: Option<String>,
    asks: VecDeque<Prompt>,
    /// Asks that were dealt with here: their end is no news.
    done: HashSet<String>,
    /// Until when nothing that is typed answers the question.
    settling: Option<Instant>,
    /// Results that came while a prompt stood.
    held: Vec<StreamEvent>,
    /// Since the run was told to end.
    cancelling: Option<Cancelling>,
}

impl Follow {
    /// Follows the events of one run to its End.
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
            view: View::new(self.style),
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
            let next = tokio::select! {
                biased;
                Some(()) = interrupts.next() => Next::Interrupt,
                () = until(settling) => Next::Settled,
                news = news.next() => Next::News(news),
                // What has come already counts, however late it is.
                given_up = Cancelling::given_up(&mut following.cancelling) => Next::GivenUp(given_up),
                line = typed(&mut following.terminal), if prompting => Next::Line(line),
            };
            let ended = match next {
                Next::News(Some(news)) => following.news(news?).await?,
                Next::News(None) => return Err(lost()),
                Next::Line(line) => {
                    following.line(line.as_deref()).await?;
                    None
                }
                Next::Settled => {
                    following.settle();
                    None
                }
                Next::Interrupt => following.interrupt()?,
                Next::GivenUp(given_up) => {
                    given_up?;
                    following
                        .screen
                        .problem("crabtalk: the run was told to end and has not yet")?;
                    Some(Ended::Interrupted)
                }
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }
}

/// A stream that ended without an End.
fn lost() -> Error {
    Error::Failed(
        "the daemon ended the stream before the run did; `crabtalk attach` finds the run again"
            .to_owned(),
    )
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

/// The next line; a terminal that fails has nobody before it any more.
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
                .note(&format!("crabtalk: {why}; connecting again"))?,
            RunNews::Back => {
                self.screen.note("crabtalk: connected again")?;
                // The question still stands, further up.
                self.show_prompt();
            }
            RunNews::Missing { behind } => {
                if self.how.style == Style::Json {
                    let said = serde_json::json!({"type": "missing", "behind": behind});
                    self.screen.json(&said)?;
                }
                self.screen.problem(
                    "crabtalk: what the run said meanwhile is missing here; `crabtalk history` has it",
                )?;
            }
        }
        Ok(None)
    }

    async fn event(&mut self, event: StreamEvent) -> Result<Option<Ended>, Error> {
        use stream_event::Event;
        match &event.event {
            Some(Event::AskUser(ask)) => {
                if self.how.style == Style::Json {
                    self.view.event(self.screen, &event)?;
                }
                self.ask(ask.clone()).await?;
                return Ok(None);
            }
            Some(Event::AskSettled(settled)) => {
                let settled = settled.clone();
                self.settled(&event, &settled)?;
                return Ok(None);
            }
            Some(Event::ToolResult(_)) if !self.asks.is_empty() => {
                // As many as the step has calls.
                self.held.push(event);
                return Ok(None);
            }
            Some(Event::Waiting(waiting)) if self.is_alone() => {
                if self.how.style == Style::Json {
                    self.view.event(self.screen, &event)?;
                }
                self.screen.problem(&format!(
                    "crabtalk: the run waits for {} to approve a tool call, for {} at most; it goes \
                     on without this command, and `crabtalk attach` follows it",
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

    /// An ask ended: its prompt goes, and what waited behind it is shown.
    fn settled(&mut self, event: &StreamEvent, settled: &AskSettledEvent) -> Result<(), Error> {
        let is_news = !self.done.remove(&settled.ask_id);
        if self.how.style == Style::Json {
            self.view.event(self.screen, event)?;
        }
        let Some(at) = self.asks.iter().position(|p| p.id() == settled.ask_id) else {
            if is_news && self.how.style != Style::Json {
                self.view.event(self.screen, event)?;
            }
            return Ok(());
        };
        self.asks.remove(at);
        if at > 0 {
            return Ok(());
        }
        self.settling = None;
        self.show(&format!("\n({})\n", view::settled(settled)));
        self.show_next()
    }

    /// What comes behind a prompt that is dealt with.
    fn show_next(&mut self) -> Result<(), Error> {
        if self.asks.is_empty() {
            return self.show_held();
        }
        self.show_prompt();
        Ok(())
    }

    /// Whether nobody sits here who could wait, or was told to.
    fn is_alone(&self) -> bool {
        self.terminal.is_none() && self.how.answers == Answers::Person
    }

    /// The step went on: whatever was asked in it has its answer.
    fn settle_asks(&mut self) -> Result<(), Error> {
        if !self.asks.is_empty() {
            self.asks.clear();
            self.settling = None;
            self.show("\n(settled elsewhere)\n");
        }
        self.show_held()
    }

    fn show_held(&mut self) -> Result<(), Error> {
        for event in std::mem::take(&mut self.held) {
            self.view.event(self.screen, &event)?;
        }
        Ok(())
    }

    async fn ask(&mut self, ask: AskUserEvent) -> Result<(), Error> {
        if self.how.bell {
            self.screen.bell();
        }
        if self.terminal.is_none() {
            return self.ask_nobody(ask).await;
        }
        let first = self.asks.is_empty();
        self.asks.push_back(Prompt::new(ask));
        if first {
            self.screen.end_line()?;
            self.show_prompt();
        }
        Ok(())
    }

    /// There is no terminal to ask on.
    async fn ask_nobody(&mut self, ask: AskUserEvent) -> Result<(), Error> {
        let approval = prompt::is_approval(&ask);
        if self.how.answers != Answers::Person {
            let how = if approval {
                "approve` or `crabtalk deny"
            } else {
                "reply"
            };
            self.screen.note(&format!(
                "crabtalk: waiting for an answer: `crabtalk asks`, then `crabtalk {how}`"
            ))?;
            return Ok(());
        }
        let content = if approval {
            "Deny: nobody is at a terminal to approve it"
        } else {
            NOBODY
        };
        self.reply(&ask.ask_id, content).await?;
        self.done.insert(ask.ask_id.clone());
        if approval {
            let wanted = prompt::wanted(&ask, self.agent());
            let advice = self.advice(&ask).await;
            self.screen.problem(&format!(
                "crabtalk: denied, because there is no terminal to ask on: {wanted}\n{advice}\n\
                 crabtalk: or leave the answer to another client with --wait"
            ))?;
        } else {
            self.screen.note(&format!(
                "crabtalk: answered \"{NOBODY}\": there is no terminal"
            ))?;
        }
        Ok(())
    }

    /// What to write so that a call that was denied is allowed.
    async fn advice(&self, ask: &AskUserEvent) -> String {
        // A member asks at the top, and under its own name.
        let asking = ask.always.as_ref().map(|rule| rule.agent.as_str());
        let name = asking.unwrap_or_else(|| self.agent()).to_owned();
        let file = self.how.agents_dir.join(format!("{name}.md"));
        // For an agent without a file: its prompt must not get lost.
        let agent = async {
            let agent = self.how.client.call(GetAgentMsg { name }).await;
            agent.map_or_else(|_| String::new(), |agent| agent.prompt)
        };
        advice::advice(ask, &file, &agent.await)
    }

    async fn line(&mut self, line: Option<&str>) -> Result<(), Error> {
        let Some(prompt) = self.asks.front_mut() else {
            return Ok(());
        };
        let content = match prompt.take(line) {
            Step::Show(text) => {
                self.show(&text);
                return Ok(());
            }
            Step::Next => {
                self.show_page();
                return Ok(());
            }
            Step::Answer(content) => content,
        };
        let id = prompt.id().to_owned();
        match self.reply(&id, &content).await {
            Ok(Replied::Taken) => {}
            Ok(Replied::TooLate) => self.show("(it was answered elsewhere already)\n"),
            Err(crabtalk_client::Error::Refused(status)) if line.is_some() => {
                self.show(&format!("{}\n", status.message));
                self.show_prompt();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.asks.pop_front();
        self.done.insert(id);
        self.show_next()
    }

    async fn reply(&self, ask_id: &str, content: &str) -> Result<Replied, crabtalk_client::Error> {
        let reply = ReplyToAsk {
            agent: self.how.agent.clone(),
            sender: self.how.sender.clone(),
            content: content.to_owned(),
            // A daemon of the 0.0.20 generation names no asks.
            ask_id: Some(ask_id.to_owned()).filter(|id| !id.is_empty()),
        };
        self.how.client.reply(reply).await
    }

    fn interrupt(&mut self) -> Result<Option<Ended>, Error> {
        if self.how.on_interrupt == OnInterrupt::Leave || self.cancelling.is_some() {
            self.screen.end_line()?;
            return Ok(Some(Ended::Interrupted));
        }
        if self.speaker.is_none() {
            // What runs now may be somebody else's question.
            self.screen.note(
                "crabtalk: the question stays in the queue; `crabtalk kill` cancels it once it runs",
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
            .note("crabtalk: cancelling the run; Ctrl-C again does not wait for it")?;
        let kill = KillMsg {
            agent: self.how.agent.clone(),
            sender: self.how.sender.clone(),
        };
        self.cancelling = Some(Cancelling::begin(self.how.client.clone(), kill));
        Ok(None)
    }

    /// Puts the first of the pending asks, from its beginning.
    fn show_prompt(&mut self) {
        let size = self.terminal.as_ref().and_then(|terminal| terminal.size());
        let agent = self.agent().to_owned();
        if let Some(prompt) = self.asks.front_mut() {
            prompt.begin(&agent, size);
            self.show("\n");
            self.show_page();
        }
    }

    /// Shows a page of an approval, which is answered by what is typed from
    /// some moments later on; or a question, which allows nothing.
    fn show_page(&mut self) {
        let agent = self.agent().to_owned();
        let Some(prompt) = self.asks.front_mut() else {
            return;
        };
        let (text, allows) = (prompt.text(&agent), prompt.allows());
        if allows {
            self.show(&text);
            self.settling = Some(Instant::now() + SETTLE);
        } else {
            self.forget();
            self.show(&text);
            self.settle();
        }
    }

    /// What was typed before the line to answer on is forgotten.
    fn settle(&mut self) {
        if self.settling.take().is_some() {
            self.forget();
        }
        if let Some(line) = self.asks.front().map(Prompt::line) {
            self.show(&line);
        }
    }

    fn forget(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.forget();
        }
    }

    fn show(&mut self, text: &str) {
        if let Some(terminal) = &mut self.terminal {
            // A terminal that takes no text gives no line either.
            let _ = terminal.show(text);
        }
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
