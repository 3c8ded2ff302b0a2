//! What the chat costs whoever looks at it, in a terminal of its own.

use crate::bench::daemon::{Home, cpu_of};
use crate::bench::server::{MARKDOWN, ModelServer, Plan};
use crate::bench::stats::Row;
use anyhow::{Context, ensure};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pieces of Markdown, two hundred a second, each in a write of its own.
const PIECES: Plan = Plan {
    latency_us: 0,
    chunks: 10_000,
    gap_us: 5_000,
    group: 1,
};

/// Columns and rows of the terminal.
const SIZE: (&str, &str) = ("100", "40");

/// Answers.
const SAMPLES: usize = 3;

/// How long anything may take to be shown: nothing is measured by it.
const DEADLINE: Duration = Duration::from_secs(600);

/// Between two looks at the screen, which are the terminal's work and not the chat's.
const LOOK: Duration = Duration::from_millis(200);

/// A terminal of tmux in which the chat runs; it ends when this is dropped.
struct Terminal {
    socket: std::path::PathBuf,
}

impl Terminal {
    fn open(server: &ModelServer, home: &Home) -> anyhow::Result<Self> {
        let terminal = Self {
            socket: home.path().join("tmux"),
        };
        let chat = format!(
            "exec env CRABTALK_HOME={} TERM=xterm-256color {} --agent md",
            home.path().display(),
            server.program.display()
        );
        let (columns, rows) = SIZE;
        terminal.tmux(&["new-session", "-d", "-x", columns, "-y", rows, &chat])?;
        Ok(terminal)
    }

    fn tmux(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(&self.socket);
        let said = tmux.args(words).env_remove("TMUX").output();
        let said = said.context("this bench needs tmux")?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    /// The chat's time on processors so far, in seconds.
    fn used(&self) -> anyhow::Result<f64> {
        let pid = self.tmux(&["display-message", "-p", "#{pane_pid}"])?;
        Ok(cpu_of(pid.parse()?)?.as_secs_f64())
    }

    fn shows(&self, text: &str) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"])?;
            if screen.contains(text) {
                return Ok(());
            }
            ensure!(begin.elapsed() < DEADLINE, "no {text:?} in:\n{screen}");
            sleep(LOOK);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.tmux(&["kill-server"]);
    }
}

/// Ten thousand pieces of Markdown at two hundred a second, read from the socket,
/// parsed, wrapped and drawn.
pub(super) fn markdown(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let mut parts = Vec::new();
    for _ in 0..SAMPLES {
        let home = Home::new(server, "never", &[])?;
        home.configure(&format!(
            "[provider.md]\nkind = \"openai\"\nbase_url = \"http://{}{}{MARKDOWN}/v1\"\n\
             api_key = \"x\"\nmodels = [\"md\"]\n",
            server.address,
            PIECES.path()
        ))?;
        home.agent("md")?;
        let daemon = home.start()?;
        let terminal = Terminal::open(server, &home)?;
        terminal.shows("say something")?;
        let (before, begin) = (terminal.used()?, Instant::now());
        terminal.tmux(&["send-keys", "-l", "go"])?;
        terminal.tmux(&["send-keys", "Enter"])?;
        terminal.shows("Enter steers")?;
        terminal.shows("say something")?;
        let took = begin.elapsed().as_secs_f64();
        parts.push((terminal.used()? - before) / took * 100.0);
        drop(terminal);
        daemon.stop()?;
    }
    Ok(vec![Row::at_most(
        "10,000 pieces of Markdown at 200 a second, the chat in a terminal",
        "% of a core",
        20.0,
        parts,
    )])
}
