//! The commands, and what all of them have at hand.

mod agents;
mod approvals;
mod archives;
mod asks;
mod conversations;
mod daemon;
mod events;
mod memory;
mod models;
mod runs;
mod search;
mod skills;
mod stats;
mod trust;

use crate::args::{self, Command, Global};
use crate::connect::{self, Endpoint};
use crate::error::Error;
use crate::follow::{Answers, Console, Follow, OnInterrupt};
use crate::{ask, chat, table};
use crabtalk_config::Home;
use crabtalk_transport::UnixConnection;
use std::path::Path;

pub(crate) use conversations::show_entry;
pub(crate) use models::kind;

/// What every command has at hand.
pub(crate) struct Context {
    pub(crate) home: Home,
    pub(crate) global: Global,
    pub(crate) console: Console,
}

impl Context {
    /// The agent as named; empty means the daemon's default.
    pub(crate) fn agent(&self) -> String {
        self.global.agent.clone().unwrap_or_default()
    }

    /// The sender as named; empty means the daemon's default.
    pub(crate) fn sender(&self) -> String {
        self.global.sender.clone().unwrap_or_default()
    }

    /// The folder that a run works in, absolute; `None` leaves it to the
    /// conversation (CONV-6).
    pub(crate) fn cwd(&self) -> Result<Option<String>, Error> {
        let cwd = match &self.global.cwd {
            Some(cwd) if cwd.as_os_str().is_empty() => return Ok(None),
            Some(cwd) => cwd.canonicalize().map_err(|e| {
                Error::Usage(format!(
                    "--cwd {}: {e}: name a folder that exists",
                    cwd.display()
                ))
            })?,
            None => std::env::current_dir()
                .map_err(|e| Error::io("find the current folder; name one with --cwd", &e))?,
        };
        if !cwd.is_dir() {
            return Err(Error::Usage(format!(
                "--cwd {}: not a folder",
                cwd.display()
            )));
        }
        cwd.into_os_string().into_string().map(Some).map_err(|cwd| {
            Error::Usage(format!(
                "the folder {} is not UTF-8, which the protocol wants; name another with --cwd",
                cwd.display()
            ))
        })
    }

    /// The daemon, started on demand.
    pub(crate) async fn endpoint(&mut self) -> Result<Endpoint, Error> {
        connect::find_or_start(&self.home, self.global.no_start, &mut self.console.screen).await
    }

    /// A connection to the daemon, which is started on demand.
    pub(crate) async fn connection(&mut self) -> Result<UnixConnection, Error> {
        self.endpoint().await?.connect().await
    }

    /// How this command line follows a run.
    pub(crate) fn follow<'a>(&self, endpoint: &'a Endpoint) -> Follow<'a> {
        Follow {
            endpoint,
            agent: self.agent(),
            sender: self.sender(),
            style: ask::style(self.global.json),
            answers: Answers::Person,
            on_interrupt: OnInterrupt::Kill,
            bell: false,
            agents_dir: self.home.agents_dir(),
        }
    }

    /// A table for people; `none` when it has no rows.
    fn print_table(
        &mut self,
        header: &[&str],
        rows: Vec<Vec<String>>,
        none: &str,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(self.console.screen.note(none)?);
        }
        let width = self
            .console
            .screen
            .is_terminal()
            .then(terminal_width)
            .flatten();
        Ok(self
            .console
            .screen
            .line(&table::table(header, rows, width))?)
    }

    /// Says that something was done; `what` is for scripts.
    fn done(&mut self, what: serde_json::Value, said: &str) -> Result<(), Error> {
        if self.global.json {
            return Ok(self.console.screen.json(&what)?);
        }
        Ok(self.console.screen.note(said)?)
    }
}

/// A folder as the daemon is told of it: absolute, and UTF-8.
fn utf8_folder(folder: &Path) -> Result<String, Error> {
    let path = folder.canonicalize().map_err(|e| {
        Error::Usage(format!(
            "{}: {e}: name a folder that exists",
            folder.display()
        ))
    })?;
    path.into_os_string().into_string().map_err(|path| {
        Error::Usage(format!(
            "the folder {} is not UTF-8, which the protocol wants",
            path.display()
        ))
    })
}

fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Runs a command.
pub(crate) async fn run(context: &mut Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Chat(args) => chat::chat(context, args).await,
        Command::Ask(args) => ask::ask(context, args).await,
        Command::Attach(args) => ask::attach(context, args).await,
        Command::Daemon(command) => daemon::run(context, command).await,
        Command::Conversations(args) => conversations::list(context, args).await,
        Command::History(args) => conversations::history(context, args).await,
        Command::Archives { command } => archives::run(context, command).await,
        Command::Search(args) => search::search(context, args).await,
        Command::Memory { command } => {
            memory::run(context, command.unwrap_or(args::Memory::List)).await
        }
        Command::Skills { command } => {
            skills::run(context, command.unwrap_or(args::Skills::List)).await
        }
        Command::Trust { command } => trust::run(context, command.unwrap_or(args::Trust::List)),
        Command::Kill => runs::kill(context).await,
        Command::Compact { focus } => runs::compact(context, focus).await,
        Command::Steer { text } => runs::steer(context, text.join(" ")).await,
        Command::Events => events::events(context).await,
        Command::Asks => asks::list(context).await,
        Command::Reply { id, text } => asks::reply(context, id, text.join(" ")).await,
        Command::Approve { id, always, yes } => asks::approve(context, id, always, yes).await,
        Command::Deny { id, reason } => asks::deny(context, id, reason).await,
        Command::Approvals { command } => {
            approvals::run(context, command.unwrap_or(args::Approvals::List)).await
        }
        Command::Agents { command } => {
            agents::run(context, command.unwrap_or(args::Agents::List)).await
        }
        Command::Models { command } => {
            models::models(context, command.unwrap_or(args::Models::List)).await
        }
        Command::Providers { command } => {
            models::providers(context, command.unwrap_or(args::Providers::List)).await
        }
        Command::Stats(args) => stats::stats(context, args).await,
        // The command line was resolved before.
        Command::External(_) => Err(Error::Usage("there is no such command".to_owned())),
    }
}

#[cfg(test)]
mod tests;
