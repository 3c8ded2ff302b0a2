//! Handling of run events, other events and answers to calls.

use super::Live;
use super::ask::Asking;
use super::calls::{Learned, Pair, Ran};
use super::outage::Heard;
use super::runs::Next;
use super::steers::Known;
use super::transcript::MARGIN;
use crate::chat::message;
use crate::text::{counted, summary};
use crabtalk_client::{Error, Replied, RunNews, WatchNews};
use crabtalk_proto::{
    AgentEventKind, AgentEventMsg, AskSettledEvent, CompactResponse, HistoryPage, PendingAsk,
    StreamEvent, code, stream_event,
};
use crabtalk_render::{Line, theme};
use std::time::Instant;

/// Maximum number of output lines shown of a `!` command.
const SHELL_LINES: usize = 30;

/// Shown when a lost connection is restored.
const BACK: &str = "Reconnected";

impl Live<'_> {
    /// Handles an event of the front run.
    pub(super) fn news(&mut self, next: Next) {
        self.dirty = true;
        if let Some(next) = self.read_before(next) {
            self.take_news(next);
        }
    }

    /// Handles an event after the history before it is shown.
    pub(super) fn take_news(&mut self, next: Next) {
        match next {
            Some(Ok(RunNews::Event(event))) => self.run_event(&event),
            Some(Ok(RunNews::Lost { why })) => self.outage.lost(Heard::Run, why),
            Some(Ok(RunNews::Back)) => self.back(Heard::Run),
            Some(Ok(RunNews::Missing { .. })) => self.joining.misses(),
            Some(Err(error)) => self.failed(&error),
            None => self.over(),
        }
    }

    /// Reports a restored connection.
    fn back(&mut self, heard: Heard) {
        if self.outage.back(heard) {
            self.transcript.note(BACK);
        }
    }

    /// Handles a front run that cannot be followed further.
    fn failed(&mut self, error: &Error) {
        if error.code() == Some(code::CANCELLED)
            && let Some(id) = self.runs.asked_back()
        {
            self.take_back(&id);
            return self.catch_up();
        }
        let front = self.runs.front();
        let (attached, unheard) = front.map_or((false, None), |run| {
            let unheard = run.said.clone().filter(|_| run.number.is_none());
            (run.said.is_none(), unheard)
        });
        // The message may have arrived even if the connection broke.
        if let (Error::NoDaemon(_) | Error::Broken(_), Some(said)) = (error, unheard) {
            self.put_back(&said);
        }
        self.transcript.cut_off(Instant::now());
        if let (Error::RunGone { run, .. }, false) = (error, attached) {
            let said =
                format!("connection lost before run {run} finished; /history shows its result");
            self.transcript.problem(&said);
            return self.over();
        }
        // A refused attach means that no run is active.
        if !(attached && error.code().is_some()) {
            self.transcript.problem(&error.to_string());
            if let Some(advice) = error.advice() {
                self.transcript.note(advice);
            }
        }
        self.over();
    }

    /// Removes the front run after its end.
    fn over(&mut self) {
        let number = self.runs.pop();
        self.killing = false;
        self.outage.over(Heard::Run);
        self.since = Instant::now();
        // Asks of other runs stay.
        self.asks
            .retain(|asking| asking.run.is_none() || asking.run != number);
        let lost = self.steers.over();
        if !lost.is_empty() {
            self.transcript
                .note("the run ended before it read this message; it is back in the composer");
            self.put_back(&lost.join("\n"));
        }
        self.catch_up();
    }

    /// Attaches to a run whose start was missed.
    pub(super) fn catch_up(&mut self) {
        if self.runs.catches_up() {
            self.attach(None);
        }
    }

    fn pair_names(&self) -> (String, String) {
        (self.pair.agent.clone(), self.pair.sender.clone())
    }

    fn run_event(&mut self, event: &StreamEvent) {
        use stream_event::Event;
        let now = Instant::now();
        // The history shows the end of earlier runs.
        let fresh = self.runs.front().is_some_and(|run| run.number.is_none());
        let attached = self.runs.front().is_some_and(|run| run.said.is_none());
        match &event.event {
            Some(Event::Start(start)) => {
                if let Some(front) = self.runs.front() {
                    front.number = Some(start.run);
                    let said = front.said.clone();
                    self.runs.tell(start.run);
                    if let Some(said) = said {
                        self.transcript.person(&said, None);
                    }
                }
                if self.is_primary(&start.agent) {
                    self.model.report(&start.model);
                }
                self.mode.report(&start.mode);
                self.since = now;
            }
            Some(Event::End(end)) => {
                if fresh && attached {
                    self.runs.tell(end.run);
                    return self.over();
                }
                if end.code != 0 {
                    self.runs.fail(end.run);
                }
                self.spent(end);
                self.ring("is done");
            }
            Some(Event::UserSteered(steered)) => self.steers.remove(&steered.content),
            Some(Event::AskUser(ask)) => {
                self.ring("waits for you");
                self.members.asked(ask);
                if ask.preview_kind == "diff" {
                    self.transcript.tools.preview(&ask.detail, &ask.preview);
                }
                let asking = ask.always.as_ref().map(|rule| rule.agent.as_str());
                let asking = asking.or_else(|| self.members.agent(&ask.delegate));
                let speaker = asking.unwrap_or(&self.learned.agent).to_owned();
                let (agent, sender) = self.pair_names();
                let number = self.runs.number();
                self.asks
                    .push_back(Asking::new((**ask).clone(), &speaker, &agent, &sender).of(number));
                // The question settles after it is drawn.
                self.dirty = true;
            }
            Some(Event::AskSettled(settled)) => return self.settled(event, settled, now),
            Some(Event::Compacted(compacted)) => self.figures.compacted(compacted),
            // Handled for all followed runs elsewhere.
            Some(Event::Queued(_)) => return,
            // The failure is already shown.
            Some(Event::Interrupted(cut)) if cut.run <= self.runs.failed() => return,
            Some(_) | None => {}
        }
        self.transcript.event(event, now);
        if event.is_end() {
            self.over();
        }
    }

    fn settled(&mut self, event: &StreamEvent, settled: &AskSettledEvent, now: Instant) {
        self.asks.retain(|asking| asking.id() != settled.ask_id);
        self.members.settled(&settled.ask_id);
        // Answers given here are followed by their own results.
        if !self.answered.remove(&settled.ask_id) {
            self.transcript.event(event, now);
        }
    }

    /// Whether an agent is the conversation's agent, not a guest.
    fn is_primary(&self, agent: &str) -> bool {
        agent.is_empty() || self.learned.agent.is_empty() || agent == self.learned.agent
    }

    fn spent(&mut self, end: &crabtalk_proto::StreamEnd) {
        let is_primary = self.is_primary(&end.agent);
        self.figures.ended(end, !is_primary);
        if is_primary && end.code != code::CANCELLED {
            self.model.report(&end.model);
        }
        self.read_figures();
        self.read_branch();
    }

    /// Handles an event of any conversation.
    pub(super) fn happened(&mut self, news: WatchNews) {
        match news {
            WatchNews::Event(event) => self.agent_event(&event),
            WatchNews::Lost { why } => self.outage.lost(Heard::Rest, why),
            WatchNews::Back { .. } => {
                self.back(Heard::Rest);
                self.runs.fall_behind();
                self.catch_up();
            }
            WatchNews::Restarted { .. } => {
                self.outage.over(Heard::Rest);
                self.runs.fall_behind();
                self.catch_up();
                self.others.clear();
                self.transcript.note("the daemon was restarted");
                self.read_asks();
                self.learn();
            }
        }
        self.dirty = true;
    }

    fn agent_event(&mut self, event: &AgentEventMsg) {
        let here = (&*self.learned.agent, &*self.learned.sender);
        self.members.event(event, here);
        let own = event.agent == self.learned.agent && event.sender == self.learned.sender;
        match (event.kind(), own) {
            (AgentEventKind::RunStarted, true)
                if !self.runs.knows(event.run) && !self.runs.is_own(&event.request_id) =>
            {
                if self.runs.is_running() || self.runs.is_attaching() {
                    self.runs.fall_behind();
                } else {
                    self.attach(Some(event.run));
                }
            }
            // Compactions within a run are events of the run.
            (AgentEventKind::Compacted, true)
                if !event.tool_is_error && self.runs.number() != Some(event.run) =>
            {
                let title = summary(&event.content);
                self.transcript
                    .note(&format!("history archived as \"{title}\""));
            }
            (AgentEventKind::Ask, false) => {
                if let Some(ask) = &event.ask {
                    self.other_ask(PendingAsk {
                        agent: event.agent.clone(),
                        sender: event.sender.clone(),
                        ask: Some(ask.clone()),
                        ..PendingAsk::default()
                    });
                }
            }
            (AgentEventKind::AskSettled, false) => {
                if let Some(settled) = &event.settled {
                    self.forget_ask(&settled.ask_id);
                }
            }
            (_, false) => self.tell_topic(event),
            (_, true) => {}
        }
    }

    pub(super) fn other_ask(&mut self, pending: PendingAsk) {
        let Some(ask) = &pending.ask else { return };
        let own = pending.agent == self.learned.agent && pending.sender == self.learned.sender;
        let known = |other: &PendingAsk| other.ask.as_ref().is_some_and(|o| o.ask_id == ask.ask_id);
        if own && !pending.inbox || self.others.iter().any(known) {
            return;
        }
        let what = match ask.tool.as_str() {
            "" => "asks a question".to_owned(),
            tool => format!("wants to use {tool}"),
        };
        let said = match self.other_topic(&pending.agent, &pending.sender) {
            Some(topic) => format!("topic {topic}: {} {what} (Ctrl-O answers)", pending.agent),
            None => format!(
                "{} for {} {what} in another conversation (Ctrl-O answers)",
                pending.agent, pending.sender
            ),
        };
        self.transcript.note(&said);
        self.ring("waits for you in another conversation");
        self.others.push(pending);
    }

    fn forget_ask(&mut self, id: &str) {
        let is = |pending: &PendingAsk| pending.ask.as_ref().is_some_and(|ask| ask.ask_id == id);
        self.others.retain(|pending| !is(pending));
        self.asks.retain(|asking| asking.id() != id);
    }

    /// Shows a pending question: first of this conversation, then of others.
    pub(super) fn next_ask(&mut self) {
        if let Some(asking) = self.asks.front_mut() {
            return asking.focus();
        }
        let Some(pending) = self.others.first() else {
            return self.transcript.note("no questions are pending");
        };
        let Some(ask) = pending.ask.clone() else {
            return;
        };
        let (agent, sender) = (pending.agent.clone(), pending.sender.clone());
        let speaker = format!("{agent} for {sender}");
        self.asks
            .push_back(Asking::new(ask, &speaker, &agent, &sender));
    }

    /// The agent and sender that the daemon reported.
    pub(super) fn learned_pair(&self) -> Pair {
        Pair {
            agent: self.learned.agent.clone(),
            sender: self.learned.sender.clone(),
        }
    }

    /// The answer to a request, whose error is reported.
    pub(super) fn answered_by<T>(&mut self, answer: Result<T, Error>) -> Option<T> {
        answer
            .inspect_err(|error| self.transcript.problem(&error.to_string()))
            .ok()
    }

    /// Shows Markdown.
    pub(super) fn shown(&mut self, text: Result<String, Error>) {
        if let Some(text) = self.answered_by(text) {
            self.show(&text);
        }
    }

    /// Shows a note about a change.
    pub(super) fn noted(&mut self, said: Result<String, Error>) {
        if let Some(said) = self.answered_by(said) {
            self.transcript.note(&said);
            self.learn();
        }
    }

    /// Handles the answer to an answer.
    pub(super) fn replied(&mut self, id: &str, replied: Result<Replied, Error>) {
        match replied {
            Ok(Replied::Taken) => self.forget_ask(id),
            Ok(Replied::TooLate) => {
                self.forget_ask(id);
                self.transcript.note("already answered by another client");
            }
            Err(error) => {
                self.answered.remove(id);
                match self.asks.iter_mut().find(|asking| asking.id() == id) {
                    Some(asking) => asking.refused(&error.to_string()),
                    None => self.transcript.problem(&error.to_string()),
                }
            }
        }
    }

    /// Handles the answer to a steering message.
    pub(super) fn steered(&mut self, text: &str, answer: Result<(), Error>) {
        match answer {
            Ok(()) => drop(self.steers.answered(text, Known::Kept)),
            Err(error) => self.not_steered(text, &error),
        }
    }

    /// Sends a refused steering message as a new message.
    fn not_steered(&mut self, text: &str, error: &Error) {
        // An event or the history shows whether it arrived.
        if matches!(error, Error::Broken(_)) && self.steers.answered(text, Known::Unsure) {
            return;
        }
        self.steers.remove(text);
        let gone = matches!(error, Error::NoDaemon(_)) && self.is_gone();
        match error.code() {
            // Without a daemon, the message is held until one runs.
            code if code == Some(code::NOT_FOUND) || code.is_none() && gone => {
                self.send(text.to_owned(), None, Vec::new(), text.to_owned());
            }
            _ => {
                self.transcript.problem(&error.to_string());
                self.put_back(text);
            }
        }
    }

    /// Shows the result of `/new` or `/compact`; an event reports the archive.
    pub(super) fn is_put_away(&mut self, answer: Result<CompactResponse, Error>) {
        let Some(answer) = self.answered_by(answer) else {
            return;
        };
        if !answer.title.is_empty() && answer.summary.is_empty() {
            self.figures.context = 0;
        }
        self.read_figures();
        if !answer.summary.is_empty() {
            let text = format!("The history is now:\n\n{}", answer.summary);
            self.show(&text);
        } else if answer.title.is_empty() {
            self.transcript
                .note("nothing to archive: the history is empty");
        } else {
            self.learn();
        }
    }

    pub(super) fn learned(&mut self, learned: Learned) {
        self.transcript.set_primary(&learned.agent);
        let first = self.learned.known.agents.is_empty();
        self.model.set_usual(&learned.model);
        self.learned = learned;
        if !self.figures.is_read {
            self.read_figures();
        }
        self.forget_unknown();
        match first {
            true => self.look_up(),
            false => self.look_up_again(),
        }
    }

    pub(super) fn show_page(&mut self, page: &HistoryPage) {
        if page.more {
            self.transcript.note("older messages: /history 50");
        }
        self.transcript.entries(&page.entries);
    }

    pub(super) fn shell_done(&mut self, command: &str, Ran { status, output }: &Ran) {
        self.shell = None;
        self.read_branch();
        let style = if status == "0" {
            theme::DIM
        } else {
            theme::BAD
        };
        let all: Vec<&str> = output.trim_end().lines().collect();
        let first = all.len().saturating_sub(SHELL_LINES);
        let width = self.transcript.width().saturating_sub(MARGIN.len());
        let first_line = Line::styled(format!("$ {}", summary(command)), theme::BOLD);
        let mut lines = crabtalk_render::cut(&first_line, width);
        if first > 0 {
            lines.push(Line::styled(
                format!("\u{2026} {} above", counted(first, "line")),
                theme::DIM,
            ));
        }
        for line in &all[first..] {
            lines.extend(crabtalk_render::cut(&Line::plain(line), width));
        }
        let end = format!("ended with {status}; the agent sees it with your next message");
        lines.extend(crabtalk_render::wrapped(&Line::styled(end, style), width));
        self.transcript.lines(lines);
        self.shown.push(message::shell(command, status, output));
    }
}
