//! Windows of agents: opened, filled, found again, closed.
//!
//! Invariant: a program is started only in a window that stays when it ends, so
//! that how it ended is never lost.

use super::Tmux;
use super::control::{PANES, Window, windows};
use crate::terminal::error::Error;
use std::path::Path;

/// What runs in a window that waits for its agent, and in the one that keeps the
/// session without agents: an idle process.
const NOTHING: [&str; 3] = ["tail", "-f", "/dev/null"];

/// Lines that can be scrolled back to.
const HISTORY_LINES: &str = "5000";

/// What runs in a window.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    pub(crate) folder: std::path::PathBuf,
    pub(crate) environment: Vec<(String, String)>,
    /// The mark of all its processes.
    pub(crate) life: String,
}

impl Tmux {
    /// Sees to it that the session is there; whether it had to be opened.
    pub(crate) async fn open_session(
        &self,
        session: &str,
        (columns, lines): (u16, u16),
    ) -> Result<bool, Error> {
        let name = format!("={session}");
        let is_new = self.run(&["has-session", "-t", &name]).await.is_err();
        if is_new {
            let (x, y) = (columns.to_string(), lines.to_string());
            let mut new = vec![
                "new-session",
                "-d",
                "-s",
                session,
                "-n",
                "nexus",
                "-x",
                &x,
                "-y",
                &y,
            ];
            new.extend(NOTHING);
            if let Err(error) = self.run(&new).await
                && self.run(&["has-session", "-t", &name]).await.is_err()
            {
                // Else another agent's launch was first.
                return Err(error);
            }
        }
        let name = format!("={session}:");
        for (option, value) in [
            ("bell-action", "any"),
            ("visual-bell", "off"),
            ("destroy-unattached", "off"),
            ("history-limit", HISTORY_LINES),
        ] {
            self.run(&["set-option", "-t", &name, option, value])
                .await?;
        }
        Ok(is_new)
    }

    /// Has tmux look which of its children ended. While it writes down that a window
    /// was left (by libutempter, as Debian builds it) it hears of no other child's
    /// end, and of those that ended in between only with the next one: this is one.
    pub(crate) async fn remind_of_children(&self) {
        // A server that is gone has nothing to tell.
        let _ = self.run(&["run-shell", "-b", "true"]).await;
    }

    /// The window of an agent, if there is one.
    pub(crate) async fn window_of(&self, agent: &str) -> Result<Option<Window>, Error> {
        let arguments = ["list-panes", "-a", "-f", "#{@nexus_agent}", "-F", PANES];
        match self.run(&arguments).await {
            Ok(said) => {
                let all = windows(said.lines(), self.team());
                Ok(all.into_iter().find(|window| window.agent == agent))
            }
            Err(Error::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a window for an agent, in which nothing runs yet.
    pub(crate) async fn open_window(&self, session: &str, agent: &str) -> Result<Window, Error> {
        let name = format!("={session}:");
        let mut new = vec![
            "new-window",
            "-d",
            "-P",
            "-F",
            "#{window_id}",
            "-t",
            &name,
            "-n",
            agent,
        ];
        new.extend(NOTHING);
        let window = self.run(&new).await?.trim().to_owned();
        for (option, value) in [
            ("remain-on-exit", "on"),
            ("monitor-bell", "on"),
            ("automatic-rename", "off"),
            ("allow-rename", "off"),
            ("@nexus_bell", "0"),
            ("@nexus_team", self.team()),
            ("@nexus_agent", agent),
        ] {
            self.run(&["set-option", "-w", "-t", &window, option, value])
                .await?;
        }
        let found = self.window_of(agent).await?;
        found.ok_or_else(|| Error::Refused {
            what: "new-window".into(),
            said: format!("the window of {agent} was closed at once"),
        })
    }

    /// Starts a program in a pane, in the place of what is there.
    pub(crate) async fn fill(&self, window: &Window, program: &Program) -> Result<(), Error> {
        let option = |name, value| {
            [
                "set-option",
                "-w",
                "-t",
                window.window.as_str(),
                name,
                value,
            ]
        };
        self.run(&option("@nexus_life", &program.life)).await?;
        self.run(&option("@nexus_session", "")).await?;
        self.run(&["clear-history", "-t", &window.pane]).await?;
        let mut words: Vec<String> = ["respawn-pane", "-k", "-t", &window.pane, "-c"]
            .map(str::to_owned)
            .to_vec();
        words.push(program.folder.display().to_string());
        for (name, value) in &program.environment {
            words.extend(["-e".to_owned(), format!("{name}={value}")]);
        }
        // `env`, since one word alone would be given to a shell, and since tmux puts
        // the search path of its client instead of ours.
        words.extend(["--".to_owned(), "env".to_owned()]);
        let path = program.environment.iter().rfind(|(name, _)| name == "PATH");
        words.extend(path.map(|(name, value)| unended(&format!("{name}={value}"))));
        words.extend(program.words.iter().map(|word| unended(word)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.run(&words).await.map(drop)
    }

    /// Keeps the name of an agent's session with its window.
    pub(crate) async fn name_session(&self, window: &str, session: &str) -> Result<(), Error> {
        let arguments = ["set-option", "-w", "-t", window, "@nexus_session", session];
        self.run(&arguments).await.map(drop)
    }

    /// Closes a window, if it exists.
    pub(crate) async fn close_window(&self, window: &str) -> Result<(), Error> {
        match self.run(&["kill-window", "-t", window]).await {
            Ok(_) | Err(Error::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Closes the session if no agent is left in it.
    pub(crate) async fn close_session(&self, session: &str) -> Result<(), Error> {
        let name = format!("={session}");
        let list = ["list-windows", "-t", &name, "-F", "#{@nexus_agent}"];
        match self.run(&list).await {
            Ok(said) if said.lines().all(str::is_empty) => {
                self.run(&["kill-session", "-t", &name]).await.map(drop)
            }
            Ok(_) | Err(Error::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn unended(word: &str) -> String {
    match word.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => word.to_owned(),
    }
}

/// A folder as tmux and programs in it name it.
pub(crate) fn real(folder: &Path) -> std::path::PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}
