//! The live view of the team on a terminal, and its keys.
//!
//! ```text
//! desk   state and keys, without a terminal
//! rows   layout of the rows
//! ```
//!
//! The board is a client of NEXUS's socket, even in the supervising process; keys send
//! commands.
//!
//! Invariants: a blocked terminal blocks only the board; the terminal is restored at the
//! end.

mod desk;
mod rows;

use crate::control::{Watching, say};
use crate::supervisor::admin::Admin;
use crate::world::{Answer, Command};
use crabtalk_render::screen::{AlternateScreen, Canvas, Raw, size, styles, terminal_size};
use crossterm::event::{Event, KeyEventKind};
use desk::{Desk, Do};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// Interval of attempts to connect to NEXUS.
const AGAIN: Duration = Duration::from_secs(1);

/// Interval at which times are redrawn; unchanged rows are not written.
const REDRAW: Duration = Duration::from_secs(1);

/// Maximum number of commands in flight: a person types no faster.
const MAX_CALLS: usize = 16;

type Call = Pin<Box<dyn Future<Output = (Command, io::Result<Option<Answer>>)> + Send>>;

/// Shows the NEXUS of a folder until the person leaves or `end` resolves. If the board owns NEXUS,
/// leaving it ends NEXUS.
pub async fn show(folder: &Path, is_owner: bool, end: impl Future<Output = ()>) -> io::Result<()> {
    let mut board = Board {
        folder,
        raw: Raw::begin()?,
        page: Some(AlternateScreen::begin()?),
        canvas: canvas(),
        size: size(),
        desk: Desk::new(is_owner, Instant::now()),
        calls: FuturesUnordered::new(),
        attaching: false,
        admin: Admin::default(),
    };
    board.run(end).await
}

/// Rings the terminal's bell and requests a notification if the terminal supports that.
fn ring(text: &str) {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let mut out = io::stdout();
    // The terminal may be closed.
    let _ = write!(out, "\x1b]9;NEXUS: {text}\x07\x07").and_then(|()| out.flush());
}

fn canvas() -> Canvas {
    Canvas::new(Box::new(io::stdout()), styles(), terminal_size())
}

struct Board<'a> {
    folder: &'a Path,
    /// Declared before the raw terminal, since it must be restored first.
    page: Option<AlternateScreen>,
    raw: Raw,
    canvas: Canvas,
    size: (usize, usize),
    desk: Desk,
    calls: FuturesUnordered<Call>,
    /// Whether to attach with the result of the pending `look`.
    attaching: bool,
    admin: Admin,
}

impl Board<'_> {
    async fn run(&mut self, end: impl Future<Output = ()>) -> io::Result<()> {
        tokio::pin!(end);
        let mut watching = None;
        let mut again = Instant::now();
        loop {
            self.draw()?;
            tokio::select! {
                () = &mut end => return Ok(()),
                events = self.raw.next() => {
                    // The terminal is closed.
                    let Some(events) = events else { return Ok(()) };
                    for event in events {
                        if self.event(event)? {
                            return Ok(());
                        }
                    }
                }
                Some((command, answer)) = self.calls.next(), if !self.calls.is_empty() => {
                    self.answered(&command, answer)?;
                }
                news = next(&mut watching) => {
                    if !self.heard(news) {
                        watching = None;
                        again = Instant::now() + AGAIN;
                    }
                }
                begun = begin(self.folder, again), if watching.is_none() => match begun {
                    Ok(Some(found)) => watching = Some(found),
                    Ok(None) => {
                        self.lost("no NEXUS runs; start it with `crabtalk nexus run`");
                        again = Instant::now() + AGAIN;
                    }
                    Err(error) => {
                        self.lost(&error.to_string());
                        again = Instant::now() + AGAIN;
                    }
                },
                () = tokio::time::sleep(REDRAW) => {}
            }
        }
    }

    fn lost(&mut self, why: &str) {
        self.desk.lost = Some(why.to_owned());
    }

    /// Handles an update; returns whether the connection continues.
    fn heard(&mut self, news: io::Result<Option<Answer>>) -> bool {
        match news {
            Ok(Some(answer)) => {
                self.desk.hear(answer, Instant::now());
                let (agents, inbox) = (&self.desk.agents, self.desk.inbox);
                if let Some((_, text)) = self.admin.take(agents, inbox) {
                    ring(&text);
                }
                self.desk.lost.is_none()
            }
            Ok(None) => {
                self.lost("NEXUS ended");
                false
            }
            Err(error) => {
                self.lost(&error.to_string());
                false
            }
        }
    }

    /// Handles a terminal event; returns whether the person leaves.
    fn event(&mut self, event: Event) -> io::Result<bool> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let done = self.desk.key(key, Instant::now());
                return self.perform(done);
            }
            Event::Paste(text) => self.desk.paste(&text),
            Event::Resize(..) => self.begin_anew()?,
            Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {}
        }
        Ok(false)
    }

    fn perform(&mut self, done: Do) -> io::Result<bool> {
        match done {
            Do::Nothing => {}
            Do::Quit => return Ok(true),
            Do::Say(command) => self.call(command),
            Do::Attach(agent) => {
                self.attaching = true;
                self.call(Command::Look { agent });
            }
        }
        Ok(false)
    }

    fn call(&mut self, command: Command) {
        if self.calls.len() >= MAX_CALLS {
            self.desk.said = Some(("NEXUS has not answered yet".into(), true));
            return;
        }
        let folder = self.folder.to_owned();
        self.calls.push(Box::pin(async move {
            let answer = say(&folder, &command).await;
            (command, answer)
        }));
    }

    fn answered(
        &mut self,
        command: &Command,
        answer: io::Result<Option<Answer>>,
    ) -> io::Result<()> {
        let is_look = matches!(command, Command::Look { .. });
        match answer {
            Ok(Some(Answer::Look { attach, .. })) if is_look && self.attaching => {
                self.attaching = false;
                self.attach(&attach)?;
            }
            Ok(Some(answer)) => self.desk.answered(answer),
            Ok(None) => self.desk.said = Some(("no NEXUS runs".into(), true)),
            Err(error) => self.desk.said = Some((error.to_string(), true)),
        }
        self.attaching &= !is_look;
        Ok(())
    }

    /// Lends the terminal to the command that attaches to an agent, until the command ends.
    fn attach(&mut self, words: &[String]) -> io::Result<()> {
        let [program, rest @ ..] = words else {
            self.desk.said = Some(("this agent has no terminal".into(), true));
            return Ok(());
        };
        self.page = None;
        let mut command = std::process::Command::new(program);
        command.args(rest);
        let ended = self.raw.lend(|| command.status())?;
        let said = match ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some((format!("{}: {status}", words.join(" ")), true)),
            Err(error) => Some((format!("cannot run {}: {error}", words.join(" ")), true)),
        };
        self.desk.said = said;
        self.begin_anew()
    }

    /// Redraws everything, since the screen is unknown.
    fn begin_anew(&mut self) -> io::Result<()> {
        self.size = size();
        self.canvas = canvas();
        match &self.page {
            Some(page) => page.clear(),
            None => {
                self.page = Some(AlternateScreen::begin()?);
                Ok(())
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let drawn = rows::draw(&mut self.desk, self.size, now);
        self.canvas.draw(&[], &drawn.drawing)?;
        self.desk.drawn(drawn.prompt, now);
        Ok(())
    }
}

async fn next(watching: &mut Option<Watching>) -> io::Result<Option<Answer>> {
    match watching {
        Some(watching) => watching.next().await,
        None => std::future::pending().await,
    }
}

async fn begin(folder: &Path, at: Instant) -> io::Result<Option<Watching>> {
    tokio::time::sleep_until(at.into()).await;
    Watching::begin(folder).await
}
