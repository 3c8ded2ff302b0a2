//! The context of a command: home, options, sender and the daemon, which is started on
//! demand.

mod restart;

use crate::args::Global;
use crate::error::Error;
use crate::follow::{Answers, Console, Follow, OnInterrupt};
use crate::json;
use crate::project;
use crate::system;
use crate::table;
use crate::text;
use crate::topic;
use crabtalk_client::{Client, Connection, Endpoint, Starter};
use crabtalk_component::{self as component, Component, Definition, Manager};
use crabtalk_config::Home;
use crabtalk_proto::{Request, StreamMsg};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;

/// A column of a table: title and cell.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// The context of a command.
pub(crate) struct Context {
    pub(crate) home: Home,
    pub(crate) global: Global,
    pub(crate) console: Console,
    client: Client,
    /// The sender; see [`Context::find_speaker`].
    speaker: String,
    /// Whether the daemon's version was checked.
    greeted: bool,
}

impl Context {
    pub(crate) fn new(home: Home, global: Global, console: Console) -> Self {
        let endpoint = Endpoint::of_home(home.root());
        let client = Client::new(endpoint, concat!("crabtalk/", env!("CARGO_PKG_VERSION")));
        Self {
            home,
            global,
            console,
            client,
            speaker: String::new(),
            greeted: false,
        }
    }

    /// Uses a remote daemon.
    pub(crate) fn at(mut self, endpoint: Endpoint) -> Self {
        self.client = Client::new(endpoint, concat!("crabtalk/", env!("CARGO_PKG_VERSION")));
        self
    }

    /// Gives up lost connections soon.
    #[cfg(test)]
    pub(crate) fn impatient(mut self) -> Self {
        let patience = std::time::Duration::from_millis(100);
        self.client = self.client.with_patience(patience);
        self
    }

    /// The agent option; empty for the default agent.
    pub(crate) fn agent(&self) -> String {
        self.global.agent.clone().unwrap_or_default()
    }

    /// The sender: the option, or that of the project or topic (CONV-11). Empty for the
    /// daemon's default.
    pub(crate) fn sender(&self) -> String {
        self.speaker.clone()
    }

    /// The sender that filters a list; empty unless one was given, since lists cover
    /// all projects.
    pub(crate) fn named_sender(&self) -> String {
        let global = &self.global;
        match (&global.sender, &global.project, &global.topic) {
            (None, None, None) => String::new(),
            _ => self.speaker.clone(),
        }
    }

    /// Determines the sender. With `keep`, a new project is saved.
    pub(crate) fn find_speaker(&mut self, keep: bool) -> Result<(), Error> {
        let speaker = self.speaker_of_folder(keep)?;
        self.speaker = match &self.global.topic {
            None => speaker,
            Some(topic) if !speaker.is_empty() => topic::sender_of(&speaker, topic)?,
            Some(topic) => {
                // The token determines the sender.
                if !self.client.endpoint().is_local() && self.global.project.is_none() {
                    return Err(Error::Usage(format!(
                        "--topic {topic} needs --project NAME with a remote daemon, or --project '' for none"
                    )));
                }
                topic::sender_of(project::PERSON, topic)?
            }
        };
        Ok(())
    }

    /// The sender by the options and the folder, without a topic.
    fn speaker_of_folder(&self, keep: bool) -> Result<String, Error> {
        Ok(match (&self.global.sender, &self.global.project) {
            (Some(sender), _) => sender.clone(),
            (None, Some(name)) => {
                project::check(name)?;
                match name.as_str() {
                    "" => String::new(),
                    name => project::sender_of(name),
                }
            }
            // Local folders have no meaning for a remote daemon.
            (None, None) if !self.client.endpoint().is_local() => String::new(),
            (None, None) if project::is_off(&self.home) => String::new(),
            (None, None) => {
                let folder = match self.cwd()? {
                    Some(cwd) => PathBuf::from(cwd),
                    None => std::env::current_dir().unwrap_or_default(),
                };
                project::sender_in(&self.home, &folder, keep)?.unwrap_or_default()
            }
        })
    }

    /// The absolute working folder; `None` keeps the conversation's (CONV-6).
    pub(crate) fn cwd(&self) -> Result<Option<String>, Error> {
        if !self.client.endpoint().is_local() {
            return self.cwd_elsewhere();
        }
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
                "the folder {} is not UTF-8, as the protocol requires; name another with --cwd",
                cwd.display()
            ))
        })
    }

    /// A folder of the remote machine, which is not checked here.
    fn cwd_elsewhere(&self) -> Result<Option<String>, Error> {
        let Some(cwd) = &self.global.cwd else {
            return Ok(None);
        };
        let text = cwd
            .to_str()
            .ok_or_else(|| Error::Usage(format!("the folder {} is not UTF-8", cwd.display())))?;
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    /// The client without starting the daemon.
    pub(crate) fn known_client(&self) -> &Client {
        &self.client
    }

    /// A client of the daemon, which is started on demand.
    pub(crate) async fn client(&mut self) -> Result<Client, Error> {
        let client = self.client.clone();
        if client.endpoint().is_local() && !client.endpoint().is_listening().await? {
            if self.global.no_start {
                return Err(Error::NoDaemon(format!(
                    "no daemon runs for {}, and --no-start forbids starting one: run `crabtalk daemon start`",
                    self.home.root().display()
                )));
            }
            self.start().await?;
        }
        if !std::mem::replace(&mut self.greeted, true)
            && let Some(difference) = client.connect().await?.difference()
        {
            self.tell_of_difference(&difference).await?;
        }
        Ok(client)
    }

    /// A connection to the daemon, which is started on demand.
    pub(crate) async fn connection(&mut self) -> Result<Connection, Error> {
        Ok(self.client().await?.connect().await?)
    }

    /// Sends a request to the daemon, which is started on demand.
    pub(crate) async fn call<R: Request>(&mut self, request: R) -> Result<R::Response, Error> {
        Ok(self.client().await?.call(request).await?)
    }

    /// The service definition of the daemon.
    pub(crate) fn service(&self) -> Result<Definition, Error> {
        let program = std::env::current_exe().map_err(|e| Error::io("find this program", &e))?;
        let command = [program.into_os_string(), "daemon".into(), "run".into()];
        let definition = Definition::new(
            Component::new("daemon", "the agent daemon"),
            command.to_vec(),
            component::Home::at(self.home.root()),
        );
        let definition = definition.map_err(|e| Error::Failed(format!("{e:#}")))?;
        Ok(definition.of_daemon())
    }

    /// Starts the installed service of this home; returns whether the daemon then runs.
    async fn start_service(&mut self) -> Result<bool, Error> {
        let resumed = match Manager::of_this_system().resume(&self.service()?) {
            Ok(Some(plan)) => plan.carry_out(&mut std::io::sink()),
            Ok(None) => return Ok(false),
            Err(error) => Err(error),
        };
        match resumed {
            Ok(()) => Ok(self.client.endpoint().is_listening().await?),
            Err(error) => {
                self.console.screen.problem(&format!(
                    "crabtalk: cannot start the service ({error:#}); the daemon is \
                     started without it"
                ))?;
                Ok(false)
            }
        }
    }

    /// Starts the daemon and prints a note.
    pub(crate) async fn start(&mut self) -> Result<(), Error> {
        let home = self.home.create()?;
        if self.start_service().await? {
            return Ok(self
                .console
                .screen
                .note("crabtalk: started the daemon's service")?);
        }
        let program = std::env::current_exe().map_err(|e| Error::io("find this program", &e))?;
        let starter = Starter::new(program, home.root());
        starter.start_process(&self.client).await?;
        Ok(self.console.screen.note(&format!(
            "crabtalk: started the daemon (log {})",
            starter.log().display()
        ))?)
    }

    /// A message with the options of the command line.
    pub(crate) fn message(&self, content: String) -> Result<StreamMsg, Error> {
        Ok(StreamMsg {
            agent: self.agent(),
            content,
            sender: Some(self.sender()).filter(|sender| !sender.is_empty()),
            cwd: self.cwd()?,
            model: self.global.model.clone(),
            mode: self.global.mode.clone(),
            ..StreamMsg::default()
        })
    }

    /// Options for following a run.
    pub(crate) fn follow(&self) -> Follow {
        Follow {
            client: self.client.clone(),
            agent: self.agent(),
            sender: self.sender(),
            json: self.global.json,
            answers: Answers::Person,
            on_interrupt: OnInterrupt::Kill,
            bell: false,
        }
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.console.screen.line(text)?)
    }

    /// Prints a note to standard error.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.console.screen.note(text)?)
    }

    /// Prints a problem to standard error.
    pub(crate) fn problem(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.console.screen.problem(text)?)
    }

    /// With `--json`, prints the items and returns true.
    pub(crate) fn for_scripts<T: Serialize>(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<bool, Error> {
        if self.global.json {
            for item in items {
                self.console.screen.json(&json::of(&item))?;
            }
        }
        Ok(self.global.json)
    }

    /// Prints items as JSON lines or as a table; `none` without items.
    pub(crate) fn list<T: Serialize>(
        &mut self,
        items: &[T],
        columns: &[Column<T>],
        none: &str,
    ) -> Result<(), Error> {
        if self.for_scripts(items)? {
            return Ok(());
        }
        let header: Vec<_> = columns.iter().map(|(title, _)| *title).collect();
        let row = |item| columns.iter().map(|(_, cell)| cell(item)).collect();
        self.print_table(&header, items.iter().map(row), none)
    }

    /// Prints items as JSON lines or as text; `none` without items.
    pub(crate) fn entries<T: Serialize>(
        &mut self,
        items: &[T],
        words: impl Fn(&Self, &T) -> String,
        none: &str,
    ) -> Result<(), Error> {
        if self.for_scripts(items)? {
            return Ok(());
        }
        if items.is_empty() {
            return self.note(none);
        }
        items
            .iter()
            .try_for_each(|item| self.line(&words(self, item)))
    }

    /// Prints a table without its empty columns; `none` without rows.
    pub(crate) fn print_table(
        &mut self,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
        none: &str,
    ) -> Result<(), Error> {
        let rows: Vec<_> = rows.into_iter().collect();
        if rows.is_empty() {
            return self.note(none);
        }
        let screen = &mut self.console.screen;
        let width = screen.is_terminal().then(system::columns).flatten();
        Ok(screen.line(&table::table(header, rows, width))?)
    }

    /// A timestamp: as age on a terminal, otherwise to the second.
    pub(crate) fn when(&self, at: &str) -> String {
        if self.console.screen.is_terminal() {
            return text::ago(at, Timestamp::now());
        }
        text::instant(at)
    }

    /// Prints an answer as JSON, or as text.
    pub(crate) fn print(&mut self, answer: &impl Serialize, text: &str) -> Result<(), Error> {
        let screen = &mut self.console.screen;
        match self.global.json {
            true => screen.json(&json::of(answer))?,
            false => screen.line(text)?,
        }
        Ok(())
    }

    /// Reports success: `what` as JSON, or `said` as text.
    pub(crate) fn done(&mut self, what: serde_json::Value, said: &str) -> Result<(), Error> {
        if self.global.json {
            return Ok(self.console.screen.json(&what)?);
        }
        Ok(self.console.screen.note(said)?)
    }
}
