//! The state of the board and its keys, without a terminal.
//!
//! Invariants: a key answers only the prompt that was shown long enough to be
//! read, by its id; a prompt that does not fit must be scrolled to its end
//! first; only Esc discards typed text.

mod decide;

use decide::reply;
pub(super) use decide::whole;

use crate::backend::Reply;
use crate::name::Name;
use crate::world::{AgentLine, Answer, Command, Entry};
use crabtalk_render::screen::Composer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Minimum time for which a prompt is shown before a key answers it, so that a key meant for
/// another prompt is ignored.
pub(super) const SETTLES: Duration = Duration::from_millis(400);

/// Rows that a page key moves by.
const PAGE: usize = 10;

/// Log entries in memory: as many as a high terminal shows.
const LOG: usize = 200;

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Do {
    Nothing,
    Say(Command),
    Attach(Name),
    Quit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typing {
    Send,
    Deny(Name, Option<String>),
    Reply(Name, String),
}

/// The content of the lower part.
#[derive(Debug)]
pub(super) enum Mode {
    Plain,
    Typing(Typing, Box<Composer>),
    Reading(Reading),
}

/// A text that is shown for reading.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) top: usize,
    /// Whether its end was on the screen, as reported by the drawing.
    pub(super) to_the_end: bool,
    /// The number of the last letter, if the text consists of letters.
    pub(super) upto: Option<u64>,
    /// The agent and id of the prompt, if the text is one.
    pub(super) prompt: Option<(Name, String)>,
}

#[derive(Debug)]
pub(super) struct Desk {
    pub(super) agents: Vec<AgentLine>,
    pub(super) inbox: usize,
    pub(super) tasks: usize,
    /// The reason for a lost connection.
    pub(super) lost: Option<String>,
    /// When the current state was received.
    pub(super) at: Instant,
    /// The latest log entries.
    pub(super) log: VecDeque<Entry>,
    pub(super) chosen: Option<Name>,
    pub(super) mode: Mode,
    /// The result of a command, and whether it is an error.
    pub(super) said: Option<(String, bool)>,
    /// The shown prompt, the time since when it is shown, and whether it fits.
    prompt: Option<(String, Instant, bool)>,
    /// Whether leaving ends NEXUS, which needs two key presses.
    pub(super) is_owner: bool,
    leaves: bool,
}

impl Desk {
    pub(super) fn new(is_owner: bool, now: Instant) -> Self {
        Self {
            agents: Vec::new(),
            inbox: 0,
            tasks: 0,
            lost: Some("connecting to NEXUS".into()),
            at: now,
            log: VecDeque::new(),
            chosen: None,
            mode: Mode::Plain,
            said: None,
            prompt: None,
            is_owner,
            leaves: false,
        }
    }

    /// The agent to which keys apply.
    pub(super) fn chosen(&self) -> Option<&AgentLine> {
        let name = self.chosen.as_ref()?;
        self.agents.iter().find(|agent| agent.name == *name)
    }

    pub(super) fn place(&self) -> usize {
        let is = |agent: &AgentLine| Some(&agent.name) == self.chosen.as_ref();
        self.agents.iter().position(is).unwrap_or(0)
    }

    /// Applies an update from NEXUS.
    pub(super) fn hear(&mut self, answer: Answer, now: Instant) {
        let Answer::Board {
            agents,
            inbox,
            tasks,
            entries,
            ..
        } = answer
        else {
            self.lost = Some(if let Answer::Refused { why } = answer {
                why
            } else {
                "unexpected answer from NEXUS".into()
            });
            return;
        };
        (self.agents, self.inbox, self.tasks) = (agents, inbox, tasks);
        (self.lost, self.at) = (None, now);
        if self.chosen().is_none() {
            self.chosen = self.agents.first().map(|agent| agent.name.clone());
        }
        self.log.extend(entries);
        let passed = self.log.len().saturating_sub(LOG);
        self.log.drain(..passed);
    }

    /// Shows the result of a command.
    pub(super) fn answered(&mut self, answer: Answer) {
        self.said = match answer {
            Answer::Done { said } => Some((said, false)),
            Answer::Refused { why } => Some((why, true)),
            Answer::Look { text, attach } => {
                let title = match attach.is_empty() {
                    true => "its screen".to_owned(),
                    false => format!("its screen (t attaches: {})", attach.join(" ")),
                };
                self.read(title, text, None);
                // The latest output is at the end of the text.
                if let Mode::Reading(reading) = &mut self.mode {
                    reading.top = usize::MAX;
                }
                None
            }
            Answer::Inbox { letters } => {
                let text = letters.iter().map(|(id, mail)| {
                    let at = crate::journal::time(mail.at);
                    format!("m{id} {at}\n{}\n\n", mail.text())
                });
                let text: String = text.collect();
                match text.is_empty() {
                    true => Some(("no messages for you".into(), false)),
                    false => {
                        self.read("messages for you (x marks them as read)".into(), text, None);
                        if let Mode::Reading(reading) = &mut self.mode {
                            reading.upto = letters.iter().map(|(id, _)| *id).max();
                        }
                        None
                    }
                }
            }
            Answer::Status { .. } | Answer::Board { .. } | Answer::Tasks { .. } => None,
        };
    }

    fn read(&mut self, title: String, text: String, prompt: Option<(Name, String)>) {
        self.mode = Mode::Reading(Reading {
            title,
            text,
            prompt,
            ..Reading::default()
        });
    }

    /// Records that a drawing showed this prompt, and whether completely.
    pub(super) fn drawn(&mut self, prompt: Option<(String, bool)>, now: Instant) {
        self.prompt = prompt.map(|(id, fits)| match &self.prompt {
            Some((known, since, _)) if *known == id => (id, *since, fits),
            _ => (id, now, fits),
        });
    }

    pub(super) fn key(&mut self, key: KeyEvent, now: Instant) -> Do {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Do::Quit;
        }
        let mode = std::mem::replace(&mut self.mode, Mode::Plain);
        match mode {
            Mode::Plain => self.plain_key(key, now),
            Mode::Typing(what, composer) => self.typing_key(what, composer, key),
            Mode::Reading(reading) => self.reading_key(reading, key, now),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Mode::Typing(_, composer) = &mut self.mode {
            composer.paste(text);
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "keys that mean nothing here change nothing"
    )]
    fn plain_key(&mut self, key: KeyEvent, now: Instant) -> Do {
        let leaves = std::mem::take(&mut self.leaves);
        self.said = None;
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.choose(|at, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(|at, _| at + 1),
            KeyCode::PageUp => self.choose(|at, _| at.saturating_sub(PAGE)),
            KeyCode::PageDown => self.choose(|at, _| at + PAGE),
            KeyCode::Home => self.choose(|_, _| 0),
            KeyCode::End => self.choose(|_, last| last),
            KeyCode::Tab => self.next_for_admin(),
            KeyCode::Char('q') if self.is_owner && !leaves => {
                self.leaves = true;
                self.said = Some((
                    "q again ends NEXUS; the agents keep running, and the next `run` finds them"
                        .into(),
                    false,
                ));
            }
            KeyCode::Char('q') => return Do::Quit,
            KeyCode::Char('s') => {
                let mut composer = Composer::default();
                if let Some(name) = &self.chosen {
                    composer.set(&format!("@{name} ["));
                }
                self.mode = Mode::Typing(Typing::Send, Box::new(composer));
            }
            KeyCode::Char('i') => return Do::Say(Command::Inbox { keep: true }),
            KeyCode::Char('l') => {
                if let Some(agent) = self.chosen.clone() {
                    return Do::Say(Command::Look { agent });
                }
            }
            KeyCode::Char('t') => {
                if let Some(agent) = self.chosen.clone() {
                    return Do::Attach(agent);
                }
            }
            KeyCode::Char(c @ ('a' | 'y' | 'A' | 'd' | 'n' | 'r' | 'v')) => {
                return self.decide(c, now);
            }
            KeyCode::Char('?') => self.read("keys".into(), KEYS.into(), None),
            _ => {}
        }
        Do::Nothing
    }

    fn choose(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let last = self.agents.len().saturating_sub(1);
        let at = to(self.place(), last).min(last);
        self.chosen = self.agents.get(at).map(|agent| agent.name.clone());
    }

    /// Selects the next agent after the chosen one that waits for the person.
    fn next_for_admin(&mut self) {
        let (at, count) = (self.place(), self.agents.len());
        let mut behind = (1..=count).map(|step| &self.agents[(at + step) % count]);
        match behind.find(|agent| agent.for_admin) {
            Some(agent) => self.chosen = Some(agent.name.clone()),
            None => self.said = Some(("no agent waits for you".into(), false)),
        }
    }

    fn say(&mut self, text: &str) {
        self.said = Some((text.to_owned(), false));
    }

    fn typing_key(&mut self, what: Typing, mut composer: Box<Composer>, key: KeyEvent) -> Do {
        let is_plain = key.modifiers.is_empty();
        if key.code == KeyCode::Esc {
            return Do::Nothing;
        }
        if key.code == KeyCode::Enter && is_plain {
            let text = composer.take();
            let text = text.trim().to_owned();
            return match what {
                Typing::Deny(agent, prompt) => reply(agent, prompt, Reply::Deny(text)),
                _ if text.is_empty() => Do::Nothing,
                Typing::Send => Do::Say(Command::Send { text }),
                Typing::Reply(agent, id) => reply(agent, Some(id), Reply::Text(text)),
            };
        }
        composer.key(key);
        self.mode = Mode::Typing(what, composer);
        Do::Nothing
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "keys that mean nothing here change nothing"
    )]
    fn reading_key(&mut self, mut reading: Reading, key: KeyEvent, now: Instant) -> Do {
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => reading.top = reading.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => {
                reading.top = reading.top.saturating_add(1);
            }
            KeyCode::PageUp => reading.top = reading.top.saturating_sub(PAGE),
            KeyCode::PageDown | KeyCode::Char(' ') => {
                reading.top = reading.top.saturating_add(PAGE);
            }
            KeyCode::Home => reading.top = 0,
            KeyCode::End => reading.top = usize::MAX,
            KeyCode::Char('t') => {
                if let Some(agent) = self.chosen.clone() {
                    return Do::Attach(agent);
                }
            }
            KeyCode::Char('x') => {
                if let Some(upto) = reading.upto {
                    return Do::Say(Command::Read { upto });
                }
            }
            KeyCode::Char(c @ ('a' | 'y' | 'A')) => {
                return self.decide_reading(c, reading, now);
            }
            KeyCode::Char('d' | 'n') if reading.prompt.is_some() => {
                if let Some((agent, id)) = reading.prompt {
                    let what = Typing::Deny(agent, Some(id));
                    self.mode = Mode::Typing(what, Box::default());
                }
                return Do::Nothing;
            }
            KeyCode::Esc | KeyCode::Char('q' | 'l' | 'i' | 'v' | '?') => return Do::Nothing,
            _ => {}
        }
        self.mode = Mode::Reading(reading);
        Do::Nothing
    }
}

const KEYS: &str = "\
up, down, j, k   select an agent          Tab   next agent that waits for you
a, y             allow its request, or its compression
A                always allow such requests, if offered
d, n             deny it, with a reason
r                answer its question
v                show the whole request
l                show its screen or history
t                attach to it (tmux or the chat); detach to return
s                send a message: @AGENT [TOPIC]: text
i                your messages
q                quit                     Ctrl-C   quit at once
";

#[cfg(test)]
mod tests;
