//! A component as a service of the user's systemd. Paths in definitions may hold spaces,
//! `%` and quotes.
//!
//! Invariant: a plan is executed exactly as shown, in order.

mod plan;
mod state;
mod systemd;

pub use plan::Plan;
pub(crate) use state::{came_up, logs, status};

use crate::{Component, Home, PortFile};
use anyhow::{Context, ensure};
use plan::{Step, words};
use std::ffi::OsString;
use std::path::PathBuf;

/// The definition of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub(crate) component: Component,
    /// The program, by its absolute path, and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) home: Home,
    /// The `PATH` of the program; a manager's own is short.
    pub(crate) path: Option<String>,
    /// Whether the program notifies systemd when it is ready, and writes its own log.
    pub(crate) is_daemon: bool,
}

impl Definition {
    /// A service that runs this command. Fails for control characters, text that is not
    /// UTF-8, and a program without an absolute path.
    pub fn new(component: Component, command: Vec<OsString>, home: Home) -> anyhow::Result<Self> {
        let text = |word: OsString| {
            let word = word.into_string().ok();
            let word = word.filter(|word| !word.contains(char::is_control));
            word.context("a service's command must be text without control characters")
        };
        let command = command
            .into_iter()
            .map(text)
            .collect::<anyhow::Result<Vec<_>>>()?;
        text(home.path().into())?;
        let program = command.first().context("a service needs a command")?;
        ensure!(
            std::path::Path::new(program).is_absolute(),
            "a service's program needs an absolute path, and `{program}` is relative"
        );
        let path = std::env::var_os("PATH").and_then(|path| text(path).ok());
        Ok(Self {
            component,
            command,
            home,
            path: path.filter(|path| !path.is_empty()),
            is_daemon: false,
        })
    }

    /// A program that notifies systemd when it is ready and writes its own log: a manager
    /// that appended to the same file would double its lines and break its rotation.
    #[must_use]
    pub fn of_daemon(mut self) -> Self {
        self.is_daemon = true;
        self
    }

    /// Its variables.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home.path().display().to_string();
        let path = self.path.clone().map(|path| ("PATH", path));
        [("CRABTALK_HOME", home)].into_iter().chain(path).collect()
    }

    fn log(&self) -> String {
        self.home.log(self.component.name()).display().to_string()
    }

    /// The path of the unit.
    fn file(&self) -> anyhow::Result<PathBuf> {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = match config.filter(|path| path.is_absolute()) {
            Some(config) => config,
            None => std::env::home_dir()
                .context("cannot tell where the person's home is")?
                .join(".config"),
        };
        Ok(folder.join("systemd/user").join(self.component.unit()))
    }

    /// Installs the service and starts it, replacing an older definition.
    pub fn start(&self) -> anyhow::Result<Plan> {
        let unit = self.component.unit();
        Ok(Plan(vec![
            // The manager opens the log before the program runs.
            Step::Folder(self.home.path().join("logs")),
            Step::Write(self.file()?, systemd::unit(self)),
            Step::Run(systemctl(&["daemon-reload"])),
            Step::Run(systemctl(&["enable", &unit])),
            // Replaces a running service of an older definition or program.
            Step::Run(systemctl(&["restart", &unit])),
        ]))
    }

    /// Starts a service that is installed for this home; `None` if it is not installed.
    pub fn resume(&self) -> anyhow::Result<Option<Plan>> {
        let home = self.home.path().display().to_string();
        let mark = systemd::variable("CRABTALK_HOME", &home);
        let installed = std::fs::read_to_string(self.file()?);
        let is_of_home = installed.is_ok_and(|text| text.contains(&mark));
        let start = Step::Run(systemctl(&["start", &self.component.unit()]));
        Ok(is_of_home.then(|| Plan(vec![start])))
    }

    /// Stops the service and removes it, with its port file.
    pub fn stop(&self) -> anyhow::Result<Plan> {
        Ok(Plan(vec![
            Step::Try(systemctl(&["disable", "--now", &self.component.unit()])),
            Step::Remove(self.file()?),
            Step::Try(systemctl(&["daemon-reload"])),
            Step::Remove(PortFile::path(&self.home, &self.component)),
        ]))
    }
}

/// A command for the user's systemd.
fn systemctl(arguments: &[&str]) -> Vec<String> {
    words(&[&["systemctl", "--user"], arguments].concat())
}

#[cfg(test)]
mod tests;
