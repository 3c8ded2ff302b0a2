//! What happens in the windows of agents.
//!
//! A client in control mode asks for all windows twice a second, without a process for
//! each question.
//!
//! Invariants: readers see the latest state, never a queue; a client that ends is
//! started again.

use super::Tmux;
use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::watch;

/// Longest line that is kept; ours have a few hundred bytes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Between two attempts to attach: soon, then seldom.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Between two looks at all windows.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The queried properties of each pane.
pub(crate) const PANES: &str = "#{window_id}|#{pane_id}|#{pane_pid}|#{pane_dead}|\
    #{pane_dead_status}|#{pane_dead_signal}|#{@nexus_bell}|#{@nexus_agent}|\
    #{@nexus_life}|#{@nexus_team}|#{@nexus_session}";

/// The fields of [`PANES`].
const PANE_FIELDS: usize = 11;

/// A window with an agent in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) window: String,
    pub(crate) pane: String,
    pub(crate) pid: u32,
    pub(crate) is_dead: bool,
    pub(crate) status: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) bells: u64,
    pub(crate) agent: String,
    /// The mark of all processes of this life of it.
    pub(crate) life: String,
    pub(crate) session: String,
}

/// All windows of agents at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) windows: Vec<Window>,
    /// Viewed windows.
    pub(crate) viewed: Vec<String>,
}

impl Windows {
    pub(crate) fn of(&self, agent: &str) -> Option<&Window> {
        self.windows.iter().find(|window| window.agent == agent)
    }
}

/// The request that a block of output answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Panes,
    Viewers,
}

/// Follows the windows until it is dropped.
pub(crate) async fn follow(tmux: Tmux, session: String, seen: watch::Sender<Arc<Windows>>) {
    let mut pause = FIRST_PAUSE;
    loop {
        // The client is killed on drop.
        if let Some(mut client) = Client::attach(&tmux, &session)
            && client.serve(&seen).await
        {
            pause = FIRST_PAUSE;
        }
        let name = format!("={session}");
        if let Err(crate::terminal::Error::Refused { .. }) =
            tmux.run(&["has-session", "-t", &name]).await
        {
            seen.send_replace(Arc::default());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

struct Client {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: VecDeque<Asked>,
    next: Windows,
    team: String,
}

impl Client {
    fn attach(tmux: &Tmux, session: &str) -> Option<Self> {
        let mut command = tmux.client();
        command
            .args(["-C", "attach-session", "-t", &format!("={session}")])
            .args(["-f", "ignore-size,no-output"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        Some(Self {
            team: tmux.team().to_owned(),
            stdin: child.stdin.take()?,
            stdout: BufReader::new(child.stdout.take()?),
            _child: child,
            asked: VecDeque::new(),
            next: Windows::default(),
        })
    }

    /// Tells what happens until the client ends; whether it ever told anything.
    async fn serve(&mut self, seen: &watch::Sender<Arc<Windows>>) -> bool {
        let mut useful = false;
        while self.look().await && self.hear(seen).await.is_some() {
            useful = true;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        useful
    }

    /// Reads the answers of one look.
    async fn hear(&mut self, seen: &watch::Sender<Arc<Windows>>) -> Option<()> {
        let mut block: Option<(Option<Asked>, Vec<String>)> = None;
        loop {
            let line = line(&mut self.stdout).await?;
            match (line.split(' ').next().unwrap_or_default(), &mut block) {
                // The last field tells our commands from tmux's own.
                ("%begin", None) => {
                    let ours = line.ends_with(" 1");
                    let asked = ours.then(|| self.asked.pop_front()).flatten();
                    block = Some((asked, Vec::new()));
                }
                ("%end" | "%error", Some(_)) => {
                    if let Some((Some(asked), lines)) = block.take()
                        && self.answered(asked, lines, seen)
                    {
                        return Some(());
                    }
                }
                (_, Some((_, lines))) => lines.push(line),
                ("%exit", None) => return None,
                (_, None) => {}
            }
        }
    }

    async fn ask(&mut self, commands: &[(&str, Asked)]) -> bool {
        for (command, asked) in commands {
            self.asked.push_back(*asked);
            if self.stdin.write_all(command.as_bytes()).await.is_err() {
                return false;
            }
        }
        self.stdin.flush().await.is_ok()
    }

    async fn look(&mut self) -> bool {
        let panes = format!("list-panes -a -f \"#{{@nexus_agent}}\" -F \"{PANES}\"\n");
        let viewers = "list-clients -F \"#{client_control_mode}|#{window_id}\"\n";
        self.ask(&[(&panes, Asked::Panes), (viewers, Asked::Viewers)])
            .await
    }

    /// Takes an answer; whether it was the last of a look.
    fn answered(
        &mut self,
        asked: Asked,
        lines: Vec<String>,
        seen: &watch::Sender<Arc<Windows>>,
    ) -> bool {
        match asked {
            Asked::Panes => {
                self.next.windows = windows(lines.iter().map(String::as_str), &self.team);
                false
            }
            Asked::Viewers => {
                let viewed = |line: &String| line.strip_prefix("0|").map(str::to_owned);
                let now = Arc::new(Windows {
                    windows: std::mem::take(&mut self.next.windows),
                    viewed: lines.iter().filter_map(viewed).collect(),
                });
                seen.send_if_modified(|last| {
                    let changed = **last != *now;
                    *last = now;
                    changed
                });
                true
            }
        }
    }
}

/// Windows of lines of [`PANES`]: of a split window the first
/// pane, which is the agent's.
pub(crate) fn windows<'a>(lines: impl Iterator<Item = &'a str>, team: &str) -> Vec<Window> {
    let mut all: Vec<Window> = lines.filter_map(|line| window(line, team)).collect();
    all.sort_by_key(|w| w.pane.trim_start_matches('%').parse().unwrap_or(u64::MAX));
    let mut found: Vec<Window> = Vec::new();
    for window in all {
        if !found.iter().any(|known| known.agent == window.agent) {
            found.push(window);
        }
    }
    found
}

/// A window of this team. One that names none is of a NEXUS of before teams were told
/// apart.
fn window(line: &str, own: &str) -> Option<Window> {
    let fields: Vec<&str> = line.splitn(PANE_FIELDS, '|').collect();
    let &[
        window,
        pane,
        pid,
        dead,
        status,
        signal,
        bells,
        agent,
        life,
        team,
        session,
    ] = fields.as_slice()
    else {
        return None;
    };
    if !team.is_empty() && team != own {
        return None;
    }
    Some(Window {
        window: window.to_owned(),
        pane: pane.to_owned(),
        pid: pid.parse().unwrap_or(0),
        is_dead: dead == "1",
        status: status.parse().ok(),
        signal: signal.parse().ok(),
        bells: bells.parse().unwrap_or(0),
        agent: agent.to_owned(),
        life: life.to_owned(),
        session: session.to_owned(),
    })
}

/// A line without its end, cut at [`MAX_LINE_BYTES`]; `None` at the end.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let buffer = from.fill_buf().await.ok()?;
        if buffer.is_empty() {
            return None;
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(buffer.len());
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&buffer[..taken.min(room)]);
        from.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Some(
                String::from_utf8_lossy(&line)
                    .trim_end_matches('\r')
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_window_belongs_to_one_agent() {
        let lines = [
            "@2|%9|77|0||||FE|life|us|s",
            "@2|%3|55|1|3||2|FE|life|us|a|b",
            "@4|%2|66|0||||FE|life|them|s",
            // Of before teams were told apart.
            "@1|%1|44|1||9||DB|||",
            "nonsense",
        ];
        let found = windows(lines.into_iter(), "us");
        assert_eq!(found.len(), 2);
        let front = found.iter().find(|window| window.agent == "FE").unwrap();
        assert_eq!((front.pane.as_str(), front.pid), ("%3", 55));
        assert_eq!((front.status, front.bells), (Some(3), 2));
        assert_eq!(front.session, "a|b");
        let back = found.iter().find(|window| window.agent == "DB").unwrap();
        assert_eq!((back.is_dead, back.signal), (true, Some(9)));
    }

    #[tokio::test]
    async fn long_lines_are_cut_and_the_next_is_whole() {
        let text = format!("{}\nnext\r\ntorn", "x".repeat(MAX_LINE_BYTES * 2));
        let mut from = BufReader::new(text.as_bytes());
        assert_eq!(line(&mut from).await.unwrap().len(), MAX_LINE_BYTES);
        assert_eq!(line(&mut from).await.unwrap(), "next");
        assert_eq!(line(&mut from).await, None);
    }
}
