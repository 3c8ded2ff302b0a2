//! The members at work for the front run: a row for each, and a view of one.
//!
//! Invariants: rows follow the events of all conversations, which name the root run;
//! only the open view follows a member's own stream; a view stores at most [`MAX_LINES`]
//! lines.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "other events and keys change nothing here"
)]

use super::calls::{Pair, last_messages};
use super::transcript::{MARGIN, Transcript};
use crate::text::{ago_secs, call_summary};
use crabtalk_client::{Client, Error, Run, RunNews};
use crabtalk_proto::{
    AgentEventKind, AgentEventMsg, AskUserEvent, AttachMsg, GetHistoryMsg, HistoryPage,
};
use crabtalk_render::{Line, shorten, theme, tokens};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of member rows.
const MOST: usize = 8;

/// Lines stored of a member's output.
const MAX_LINES: usize = 2_000;

/// Messages shown of a member whose run has ended.
const MESSAGES: u32 = 50;

/// The state of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Working,
    Done,
    Failed,
}

struct Member {
    agent: String,
    sender: String,
    run: u64,
    state: State,
    /// The member's last call.
    tool: String,
    tokens: u64,
    since: Instant,
    took: Option<Duration>,
}

/// The output of one member.
struct View {
    sender: String,
    /// Its stream; `None` once it ended.
    run: Option<Run>,
    transcript: Transcript,
    lines: Vec<Line>,
    /// Lines below the visible ones.
    below: usize,
}

impl View {
    fn keep_lines(&mut self) {
        self.lines.extend(self.transcript.take());
        let excess = self.lines.len().saturating_sub(MAX_LINES);
        self.lines.drain(..excess);
    }
}

/// The effect of a key on the view.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    /// Another member by its index.
    Other(usize),
    Close,
}

/// The members of one run.
#[derive(Default)]
pub(super) struct Members {
    root: u64,
    list: Vec<Member>,
    /// Senders of members that wait for an answer, by ask id.
    asks: HashMap<String, String>,
    view: Option<View>,
}

impl Members {
    /// Handles an event of a member's run.
    pub(super) fn event(&mut self, event: &AgentEventMsg, (agent, sender): (&str, &str)) {
        let Some(root) = &event.root else { return };
        if root.agent != agent || root.sender != sender || root.run < self.root {
            return;
        }
        if root.run > self.root {
            self.root = root.run;
            self.list.clear();
        }
        let now = Instant::now();
        let known = self.list.iter_mut().find(|m| m.sender == event.sender);
        let member = match known {
            Some(member) => member,
            None => self.list.push_mut(Member {
                agent: event.agent.clone(),
                sender: event.sender.clone(),
                run: event.run,
                state: State::Working,
                tool: String::new(),
                tokens: 0,
                since: now,
                took: None,
            }),
        };
        member.tokens = member.tokens.max(event.tokens);
        match event.kind() {
            AgentEventKind::ToolStart => {
                if let Some(call) = event.tool_calls.last() {
                    member.tool = format!("{} {}", call.name, call_summary(&call.arguments));
                }
            }
            AgentEventKind::ToolsComplete => member.tool.clear(),
            AgentEventKind::Done => member.end(State::Done, now),
            AgentEventKind::RunError | AgentEventKind::RunKilled => {
                member.end(State::Failed, now);
            }
            _ => {}
        }
    }

    /// Records that a member waits for an answer.
    pub(super) fn asked(&mut self, ask: &AskUserEvent) {
        if !ask.delegate.is_empty() {
            self.asks.insert(ask.ask_id.clone(), ask.delegate.clone());
        }
    }

    /// The agent of a sender.
    pub(super) fn agent(&self, sender: &str) -> Option<&str> {
        let member = self.list.iter().find(|member| member.sender == sender)?;
        Some(&member.agent)
    }

    pub(super) fn settled(&mut self, ask_id: &str) {
        self.asks.remove(ask_id);
    }

    pub(super) fn is_open(&self) -> bool {
        self.view.is_some()
    }

    /// The row of each member of a run.
    pub(super) fn rows(&self, run: Option<u64>, width: usize, spinner: &str) -> Vec<Line> {
        if self.list.is_empty() || run != Some(self.root) {
            return Vec::new();
        }
        let now = Instant::now();
        let heading = Line::styled("Members", theme::BOLD)
            .with(" \u{b7} Ctrl-S shows their output", theme::DIM);
        let first = self.list.len().saturating_sub(MOST);
        let rows = self.list[first..].iter();
        let rows = rows.map(|member| shorten(&self.row(member, now, spinner), width));
        let mut rows: Vec<Line> = std::iter::once(heading).chain(rows).collect();
        if first > 0 {
            let earlier = format!("{MARGIN}\u{2026} {first} earlier");
            rows.insert(1, Line::styled(earlier, theme::DIM));
        }
        rows
    }

    fn row(&self, member: &Member, now: Instant, spinner: &str) -> Line {
        let waits = self.asks.values().any(|sender| *sender == member.sender);
        let (mark, style, doing) = match member.state {
            State::Done => ("\u{2713}", theme::GOOD, "done"),
            State::Failed => ("\u{2717}", theme::BAD, "failed"),
            State::Working if waits => ("!", theme::ASKS, "waiting for you"),
            State::Working if member.tool.is_empty() => (spinner, theme::ASKS, "working"),
            State::Working => (spinner, theme::ASKS, member.tool.as_str()),
        };
        let took = member.took.unwrap_or_else(|| now - member.since);
        let mut end = String::new();
        if member.tokens > 0 {
            end.push_str(&format!(" \u{b7} {} tokens", tokens(member.tokens)));
        }
        end.push_str(&format!(" \u{b7} {}", ago_secs(took)));
        // A long command is shortened, so that the cost is visible.
        let doing: String = doing.chars().take(48).collect();
        Line::styled(format!("{MARGIN}{mark} "), style)
            .with(&member.agent, theme::BOLD)
            .with(format!(" \u{b7} {doing}"), theme::PLAIN)
            .with(end, theme::DIM)
    }

    /// The member shown first in a view: the last one at work.
    pub(super) fn first(&self, run: Option<u64>) -> Option<usize> {
        if run != Some(self.root) {
            return None;
        }
        let works = self.list.iter().rposition(|m| m.state == State::Working);
        works.or(self.list.len().checked_sub(1))
    }

    /// Opens the view of a member; returns the request for its messages if its run has
    /// ended.
    pub(super) fn open(
        &mut self,
        at: usize,
        client: &Client,
        width: usize,
    ) -> Option<GetHistoryMsg> {
        let member = self.list.get(at)?;
        let mut transcript = Transcript::new(width);
        transcript.set_primary(&member.agent);
        let (agent, sender) = (member.agent.clone(), member.sender.clone());
        let run = (member.state == State::Working).then(|| {
            client.attach(AttachMsg {
                agent: agent.clone(),
                sender: sender.clone(),
                run: Some(member.run),
                only_run: true,
                after: None,
            })
        });
        let is_over = run.is_none();
        self.view = Some(View {
            sender: sender.clone(),
            run,
            transcript,
            lines: Vec::new(),
            below: 0,
        });
        is_over.then(|| last_messages(Pair { agent, sender }, MESSAGES))
    }

    /// Adapts open output to another width; final lines do not change.
    pub(super) fn resize(&mut self, columns: usize) {
        if let Some(view) = &mut self.view {
            view.transcript.resize(columns);
        }
    }

    pub(super) fn close(&mut self) {
        self.view = None;
    }

    /// Shows the messages of a member whose run had ended before its view opened.
    pub(super) fn messages(&mut self, of: &str, page: Result<HistoryPage, Error>) {
        let Some(view) = self.view.as_mut().filter(|view| view.sender == of) else {
            return;
        };
        match page {
            Ok(page) => view.transcript.entries(&page.entries),
            Err(error) => view.transcript.problem(&error.to_string()),
        }
        view.keep_lines();
    }

    /// The next event of the member in the view; pending without one.
    pub(super) async fn next(&mut self) -> Option<Result<RunNews, Error>> {
        match self.view.as_mut().and_then(|view| view.run.as_mut()) {
            Some(run) => run.next().await,
            None => std::future::pending().await,
        }
    }

    /// Shows an event of the member in the view.
    pub(super) fn news(&mut self, news: Option<Result<RunNews, Error>>) {
        let Some(view) = &mut self.view else { return };
        match news {
            Some(Ok(RunNews::Event(event))) => view.transcript.event(&event, Instant::now()),
            Some(Ok(RunNews::Lost { .. } | RunNews::Back | RunNews::Missing { .. })) => {}
            Some(Err(error)) => {
                view.transcript.problem(&error.to_string());
                view.run = None;
            }
            None => view.run = None,
        }
        view.keep_lines();
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Wanted {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self.list.len().max(1);
        let Some(view) = &mut self.view else {
            return Wanted::Close;
        };
        let at = self.list.iter().position(|m| m.sender == view.sender);
        let at = at.unwrap_or(0);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Wanted::Close,
            KeyCode::Char('s' | 'c') if control => return Wanted::Close,
            KeyCode::Right | KeyCode::Tab => return Wanted::Other((at + 1) % count),
            KeyCode::Left | KeyCode::BackTab => return Wanted::Other((at + count - 1) % count),
            KeyCode::Up => view.below += 1,
            KeyCode::PageUp => view.below += 10,
            KeyCode::Down => view.below = view.below.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => view.below = view.below.saturating_sub(10),
            KeyCode::End => view.below = 0,
            _ => {}
        }
        view.below = view.below.min(view.lines.len());
        Wanted::Nothing
    }

    /// Draws the view in at most `most` rows.
    pub(super) fn view_rows(&self, width: usize, most: usize, spinner: &str) -> Vec<Line> {
        let Some(view) = &self.view else {
            return Vec::new();
        };
        let now = Instant::now();
        let member = self.list.iter().find(|m| m.sender == view.sender);
        let heading = member.map(|member| self.row(member, now, spinner));
        let room = most.saturating_sub(3);
        let open = view.transcript.open(room, now, spinner);
        let mut lines: Vec<Line> = view.lines.clone();
        lines.extend(open);
        let last = lines
            .len()
            .saturating_sub(view.below)
            .max(room.min(lines.len()));
        let rule = Line::styled("\u{2500}".repeat(width), theme::DIM);
        let keys = "Up, Down scroll; Left, Right another member; Ctrl-S closes";
        let mut rows = vec![rule];
        rows.extend(heading.map(|heading| shorten(&heading, width)));
        let visible = lines[last.saturating_sub(room)..last].iter();
        rows.extend(visible.map(|line| shorten(line, width)));
        let keys = Line::styled(format!("{MARGIN}{keys}"), theme::DIM);
        rows.push(shorten(&keys, width));
        rows
    }
}

impl Member {
    fn end(&mut self, state: State, now: Instant) {
        self.state = state;
        self.tool.clear();
        self.took = Some(now - self.since);
    }
}

#[cfg(test)]
mod tests;
