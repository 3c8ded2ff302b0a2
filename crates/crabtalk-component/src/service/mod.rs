//! A component as a service of the system.
//!
//! Supported managers are the user's systemd on Linux, launchd on macOS, and the
//! task scheduler on Windows. Paths in definitions may contain spaces, `%` and quotes.
//!
//! Invariant: a plan is executed exactly as shown, in order.

mod launchd;
mod plan;
mod schtasks;
mod state;
mod systemd;
mod xml;

pub use plan::Plan;
pub(crate) use state::{came_up, logs, status};

use crate::{Component, Home, PortFile, system};
use anyhow::{Context, ensure};
use plan::{Step, words};
use std::ffi::OsString;
use std::path::PathBuf;

/// The definition of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub(crate) component: Component,
    /// The absolute path of the program, and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) home: Home,
    /// The `PATH` of the program; the default of a service manager is short.
    pub(crate) path: Option<String>,
    /// Whether the program notifies systemd when it is ready, and writes its own log.
    pub(crate) is_daemon: bool,
}

impl Definition {
    /// A service that runs this command. Fails for control characters, text that is not
    /// UTF-8, and a relative path of the program.
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

    /// Marks a program that notifies systemd when it is ready and writes its own log: a manager
    /// that appended to the same file would duplicate its lines and break its rotation.
    #[must_use]
    pub fn of_daemon(mut self) -> Self {
        self.is_daemon = true;
        self
    }

    /// The environment variables of the service.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home.path().display().to_string();
        let path = self.path.clone().map(|path| ("PATH", path));
        [("CRABTALK_HOME", home)].into_iter().chain(path).collect()
    }

    fn log(&self) -> String {
        self.home.log(self.component.name()).display().to_string()
    }
}

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// The user's instance of systemd.
    Systemd,
    /// launchd, with agents of the user.
    Launchd,
    /// The task scheduler.
    Schtasks,
}

impl Manager {
    /// The manager of this system.
    #[must_use]
    pub fn of_this_system() -> Self {
        if cfg!(target_os = "macos") {
            Self::Launchd
        } else if cfg!(windows) {
            Self::Schtasks
        } else {
            Self::Systemd
        }
    }

    /// The path and contents of the definition file.
    pub(crate) fn file(self, definition: &Definition) -> anyhow::Result<(PathBuf, Vec<u8>)> {
        let label = definition.component.label();
        let person = std::env::home_dir().context("cannot find the user's home folder")?;
        Ok(match self {
            Self::Systemd => {
                let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
                let config = config.filter(|path| path.is_absolute());
                let folder = config.unwrap_or_else(|| person.join(".config"));
                let path = folder.join("systemd/user").join(format!("{label}.service"));
                (path, systemd::unit(definition).into_bytes())
            }
            Self::Launchd => {
                let path = person
                    .join("Library/LaunchAgents")
                    .join(format!("{label}.plist"));
                (path, launchd::plist(definition).into_bytes())
            }
            Self::Schtasks => {
                let path = definition
                    .home
                    .state("services")
                    .join(format!("{label}.xml"));
                (path, schtasks::task(definition))
            }
        })
    }

    /// Installs a service and starts it, replacing an older definition.
    pub fn start(self, definition: &Definition) -> anyhow::Result<Plan> {
        let (path, contents) = self.file(definition)?;
        let shown = path.display().to_string();
        let label = definition.component.label();
        let unit = format!("{label}.service");
        let mut steps = vec![
            // The manager opens the log before the program creates its folder.
            Step::Folder(definition.home.path().join("logs")),
            Step::Write(path, contents),
        ];
        match self {
            Self::Systemd => {
                steps.push(Step::Run(words(&["systemctl", "--user", "daemon-reload"])));
                steps.push(Step::Run(words(&["systemctl", "--user", "enable", &unit])));
                // Replaces a running service with an older definition or program.
                steps.push(Step::Run(words(&["systemctl", "--user", "restart", &unit])));
            }
            Self::Launchd => {
                let domain = domain();
                steps.push(Step::Try(words(&[
                    "launchctl",
                    "bootout",
                    &format!("{domain}/{label}"),
                ])));
                steps.push(Step::Run(words(&[
                    "launchctl",
                    "bootstrap",
                    &domain,
                    &shown,
                ])));
            }
            Self::Schtasks => {
                let create = ["schtasks", "/Create", "/F", "/TN", &label, "/XML", &shown];
                steps.push(Step::Run(words(&create)));
                steps.push(Step::Try(words(&["schtasks", "/End", "/TN", &label])));
                steps.push(Step::Run(words(&["schtasks", "/Run", "/TN", &label])));
            }
        }
        Ok(Plan(steps))
    }

    /// Starts a service that is installed for this home; `None` if it is not installed.
    pub fn resume(self, definition: &Definition) -> anyhow::Result<Option<Plan>> {
        let (path, _) = self.file(definition)?;
        let label = definition.component.label();
        let home = definition.home.path().display().to_string();
        let (mark, command) = match self {
            Self::Systemd => (
                systemd::variable("CRABTALK_HOME", &home),
                words(&["systemctl", "--user", "start", &format!("{label}.service")]),
            ),
            Self::Launchd => (
                xml::escaped(&home),
                words(&["launchctl", "kickstart", &format!("{}/{label}", domain())]),
            ),
            Self::Schtasks => return Ok(None),
        };
        let installed = std::fs::read_to_string(path);
        let is_of_home = installed.is_ok_and(|text| text.contains(&mark));
        Ok(is_of_home.then(|| Plan(vec![Step::Run(command)])))
    }

    /// Stops a service and removes it, with its port file.
    pub fn stop(self, definition: &Definition) -> anyhow::Result<Plan> {
        let (path, _) = self.file(definition)?;
        let label = definition.component.label();
        let unit = format!("{label}.service");
        let mut steps = match self {
            Self::Systemd => {
                vec![Step::Try(words(&[
                    "systemctl",
                    "--user",
                    "disable",
                    "--now",
                    &unit,
                ]))]
            }
            Self::Launchd => {
                let service = format!("{}/{label}", domain());
                vec![Step::Try(words(&["launchctl", "bootout", &service]))]
            }
            Self::Schtasks => vec![
                Step::Try(words(&["schtasks", "/End", "/TN", &label])),
                Step::Try(words(&["schtasks", "/Delete", "/F", "/TN", &label])),
            ],
        };
        steps.push(Step::Remove(path));
        if self == Self::Systemd {
            steps.push(Step::Try(words(&["systemctl", "--user", "daemon-reload"])));
        }
        let port = PortFile::path(&definition.home, &definition.component);
        steps.push(Step::Remove(port));
        Ok(Plan(steps))
    }
}

/// launchd's domain of the logged-in user.
fn domain() -> String {
    format!("gui/{}", system::user_id())
}

#[cfg(test)]
mod tests;
