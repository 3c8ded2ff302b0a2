//! Windows of agents: opens, fills, finds and closes them.
//!
//! Invariants: a program is started only in a window that remains when it ends, so
//! that its exit status is not lost; readers of [`follow`] get the latest state, without a
//! queue.

use super::Tmux;
use crate::backend::Failure;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Interval of queries of all windows.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The queried properties of each pane and each client.
const PANES: &str = "pane|#{window_id}|#{pane_id}|#{pane_pid}|#{pane_dead}|\
    #{pane_dead_status}|#{pane_dead_signal}|#{@nexus_team}|#{@nexus_life}|#{@nexus_agent}";
const CLIENTS: &str = "client|#{client_control_mode}|#{window_id}";

/// The idle program in a window before its agent is launched, and in the window that keeps an
/// empty session open.
const NOTHING: [&str; 3] = ["tail", "-f", "/dev/null"];

/// Lines of scrollback.
const HISTORY_LINES: &str = "5000";

/// A window of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) window: String,
    pub(crate) pane: String,
    pub(crate) pid: u32,
    pub(crate) is_dead: bool,
    pub(crate) status: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) agent: String,
    /// The mark of all processes of this life.
    pub(crate) life: String,
}

/// All windows of the team's agents at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) windows: Vec<Window>,
    /// The ids of windows that a person views.
    pub(crate) viewed: Vec<String>,
}

impl Windows {
    /// Parses lines of [`PANES`] and [`CLIENTS`]. The first pane of a split window is the
    /// agent's.
    fn read(said: &str, team: &str) -> Self {
        let mut found = Self::default();
        let mut panes: Vec<Window> = said.lines().filter_map(|line| pane(line, team)).collect();
        panes.sort_by_key(|w| w.pane.trim_start_matches('%').parse().unwrap_or(u64::MAX));
        for pane in panes {
            if found.of(&pane.agent).is_none() {
                found.windows.push(pane);
            }
        }
        // Clients in control mode do not show windows.
        let viewed = said
            .lines()
            .filter_map(|line| line.strip_prefix("client|0|"));
        found.viewed = viewed.map(str::to_owned).collect();
        found
    }

    pub(crate) fn of(&self, agent: &str) -> Option<&Window> {
        self.windows.iter().find(|window| window.agent == agent)
    }
}

fn pane(line: &str, team: &str) -> Option<Window> {
    let fields: Vec<&str> = line.splitn(10, '|').collect();
    let &[
        "pane",
        window,
        pane,
        pid,
        dead,
        status,
        signal,
        of,
        life,
        agent,
    ] = fields.as_slice()
    else {
        return None;
    };
    (of == team).then(|| Window {
        window: window.to_owned(),
        pane: pane.to_owned(),
        pid: pid.parse().unwrap_or(0),
        is_dead: dead == "1",
        status: status.parse().ok(),
        signal: signal.parse().ok(),
        agent: agent.to_owned(),
        life: life.to_owned(),
    })
}

/// Follows the windows until dropped.
pub(crate) async fn follow(tmux: Tmux, seen: watch::Sender<Arc<Windows>>) {
    loop {
        // If tmux does not answer, the last state remains.
        if let Ok(now) = tmux.windows().await {
            seen.send_if_modified(|last| {
                let changed = **last != now;
                *last = Arc::new(now);
                changed
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A program for a window.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    pub(crate) folder: std::path::PathBuf,
    pub(crate) environment: Vec<(String, String)>,
    /// The mark of all its processes.
    pub(crate) life: String,
}

impl Tmux {
    /// Creates the session if it is missing.
    pub(crate) async fn open_session(&self, session: &str) -> Result<(), Failure> {
        let name = format!("={session}");
        if self.run(&["has-session", "-t", &name]).await.is_err() {
            let mut new = vec![
                "new-session",
                "-d",
                "-s",
                session,
                "-n",
                "nexus",
                "-x",
                "160",
                "-y",
                "50",
            ];
            new.extend(NOTHING);
            if let Err(error) = self.run(&new).await
                && self.run(&["has-session", "-t", &name]).await.is_err()
            {
                // Otherwise another agent's launch created it first.
                return Err(error);
            }
        }
        let name = format!("={session}:");
        for (option, value) in [
            ("destroy-unattached", "off"),
            ("history-limit", HISTORY_LINES),
        ] {
            self.run(&["set-option", "-t", &name, option, value])
                .await?;
        }
        Ok(())
    }

    /// Makes tmux check which of its children ended. While tmux records that a window
    /// was left (by libutempter, as in Debian's build) it misses the end of other children,
    /// and notices them only at the next end of a child, such as this one.
    pub(crate) async fn remind_of_children(&self) {
        // If the server is gone, there is nothing to report.
        let _ = self.run(&["run-shell", "-b", "true"]).await;
    }

    /// The windows of the team; none if the server is gone.
    async fn windows(&self) -> Result<Windows, Failure> {
        let panes = ["list-panes", "-a", "-f", "#{@nexus_agent}", "-F", PANES];
        let clients = [";", "list-clients", "-F", CLIENTS];
        match self.run(&[&panes[..], &clients[..]].concat()).await {
            Ok(said) => Ok(Windows::read(&said, self.team())),
            Err(Failure::Failed(_)) => Ok(Windows::default()),
            Err(error) => Err(error),
        }
    }

    /// The window of an agent, if there is one.
    pub(crate) async fn window_of(&self, agent: &str) -> Result<Option<Window>, Failure> {
        Ok(self.windows().await?.of(agent).cloned())
    }

    /// Opens an idle window for an agent.
    pub(crate) async fn open_window(&self, session: &str, agent: &str) -> Result<Window, Failure> {
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
            ("automatic-rename", "off"),
            ("allow-rename", "off"),
            ("@nexus_team", self.team()),
            ("@nexus_agent", agent),
        ] {
            self.run(&["set-option", "-w", "-t", &window, option, value])
                .await?;
        }
        let found = self.window_of(agent).await?;
        let closed = || Failure::Failed(format!("the window of {agent} was closed at once"));
        found.ok_or_else(closed)
    }

    /// Starts a program in a pane, replacing the one in it.
    pub(crate) async fn fill(&self, window: &Window, program: &Program) -> Result<(), Failure> {
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
        self.run(&["clear-history", "-t", &window.pane]).await?;
        let mut words: Vec<String> = ["respawn-pane", "-k", "-t", &window.pane, "-c"]
            .map(str::to_owned)
            .to_vec();
        words.push(program.folder.display().to_string());
        for (name, value) in &program.environment {
            words.extend(["-e".to_owned(), format!("{name}={value}")]);
        }
        // Without `env`, tmux would pass a single word to a shell, and would replace
        // `PATH` by its client's.
        words.extend(["--".to_owned(), "env".to_owned()]);
        let path = program.environment.iter().rfind(|(name, _)| name == "PATH");
        words.extend(path.map(|(name, value)| unended(&format!("{name}={value}"))));
        words.extend(program.words.iter().map(|word| unended(word)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.run(&words).await.map(drop)
    }

    /// Closes a window, if it exists.
    pub(crate) async fn close_window(&self, window: &str) -> Result<(), Failure> {
        match self.run(&["kill-window", "-t", window]).await {
            Ok(_) | Err(Failure::Failed(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Closes the session if it contains no agent.
    pub(crate) async fn close_session(&self, session: &str) -> Result<(), Failure> {
        let name = format!("={session}");
        let list = ["list-windows", "-t", &name, "-F", "#{@nexus_agent}"];
        match self.run(&list).await {
            Ok(said) if said.lines().all(str::is_empty) => {
                self.run(&["kill-session", "-t", &name]).await.map(drop)
            }
            Ok(_) | Err(Failure::Failed(_)) => Ok(()),
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

/// The real path of a folder, as used by tmux and its programs.
pub(crate) fn real(folder: &Path) -> std::path::PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_window_belongs_to_one_agent() {
        let said = "pane|@2|%9|77|0|||us|life|FE\npane|@2|%3|55|1|3||us|life|FE\n\
                    pane|@4|%2|66|0|||them|life|FE\npane|@1|%1|44|1||9|us||DB\nnonsense\n\
                    client|0|@2\nclient|1|@1\n";
        let found = Windows::read(said, "us");
        assert_eq!(found.windows.len(), 2);
        let front = found.of("FE").unwrap();
        assert_eq!((front.pane.as_str(), front.pid), ("%3", 55));
        assert_eq!(front.status, Some(3));
        let back = found.of("DB").unwrap();
        assert_eq!((back.is_dead, back.signal), (true, Some(9)));
        assert_eq!(found.viewed, ["@2"]);
    }
}
