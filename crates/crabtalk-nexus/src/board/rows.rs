//! Lays out the board as terminal rows.
//!
//! Invariants: no row is wider than the terminal, and there are fewer rows than
//! it has; text that does not fit its column is shown in the details of the chosen
//! agent; text of agents cannot control the terminal.

mod list;

use super::desk::{Desk, Mode, Reading, Typing, whole};
use crate::world::{AgentLine, Entry};
use anstyle::Style;
use crabtalk_render::screen::Drawing;
use crabtalk_render::{Line, Span, cut, shorten, theme, tokens, wrapped};
use list::list;
use std::time::Instant;

/// Minimum log rows, except on low terminals.
const LOG_ROWS: usize = 4;

/// Terminals up to this height show no log rows.
const LOW: usize = 16;

/// Divisor of the rows for the details of the chosen agent.
const DETAIL_PART: usize = 3;

/// The result of a drawing.
pub(super) struct Drawn {
    pub(super) drawing: Drawing,
    /// The shown prompt, and whether it is complete.
    pub(super) prompt: Option<(String, bool)>,
}

/// Draws the board on this many columns and rows.
pub(super) fn draw(desk: &mut Desk, (width, height): (usize, usize), now: Instant) -> Drawn {
    let mut rows = vec![header(desk, width)];
    if let Mode::Reading(reading) = &mut desk.mode {
        read(reading, width, height, &mut rows);
        rows.resize(height - 1, Line::default());
        let foot = said(&desk.said, width)
            .unwrap_or_else(|| dim("up, down, PgUp, PgDn · Esc leaves", width));
        rows.push(foot);
        let drawing = Drawing { rows, cursor: None };
        return Drawn {
            drawing,
            prompt: None,
        };
    }
    let foot = foot(desk, width);
    let room = height.saturating_sub(1 + foot.0.len());
    let details = details(desk, width, (room / DETAIL_PART).max(2));
    let log_rows = if height < LOW { 0 } else { LOG_ROWS };
    let listed = room.saturating_sub(details.rows.len() + log_rows);
    list(desk, width, listed, now, &mut rows);
    rows.extend(details.rows);
    let last = height.saturating_sub(foot.0.len());
    let left = last.saturating_sub(rows.len());
    let passed = desk.log.len().saturating_sub(left);
    rows.extend(desk.log.iter().skip(passed).map(|entry| told(entry, width)));
    rows.resize(last, Line::default());
    let cursor = foot.1.map(|(row, column)| (rows.len() + row, column));
    rows.extend(foot.0);
    Drawn {
        drawing: Drawing { rows, cursor },
        prompt: details.prompt,
    }
}

fn dim(text: &str, width: usize) -> Line {
    shorten(&Line::styled(text, theme::DIM), width)
}

fn said(said: &Option<(String, bool)>, width: usize) -> Option<Line> {
    let (text, is_bad) = said.as_ref()?;
    let style = if *is_bad { theme::BAD } else { theme::BOLD };
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(shorten(&Line::styled(text, style), width))
}

fn header(desk: &Desk, width: usize) -> Line {
    let mut line = Line::styled("NEXUS", theme::HEADING);
    let mut part = |text: String, style: Style| {
        line.push(Span::new(" · ", theme::DIM));
        line.push(Span::new(text, style));
    };
    if let Some(why) = &desk.lost {
        part(why.clone(), theme::BAD);
    }
    let waiting = desk.agents.iter().filter(|agent| agent.for_admin).count();
    if waiting > 0 {
        part(format!("{waiting} wait for you (Tab)"), theme::ASKS);
    }
    if desk.inbox > 0 {
        part(
            format!("{} (i)", counted(desk.inbox, "message")),
            theme::ASKS,
        );
    }
    part(counted(desk.agents.len(), "agent"), theme::PLAIN);
    part(
        format!("{} to do", counted(desk.tasks, "task")),
        theme::PLAIN,
    );
    shorten(&line, width)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

struct Details {
    rows: Vec<Line>,
    prompt: Option<(String, bool)>,
}

/// Details of the chosen agent, in at most `most` rows.
fn details(desk: &Desk, width: usize, most: usize) -> Details {
    let Some(agent) = desk.chosen() else {
        return Details {
            rows: Vec::new(),
            prompt: None,
        };
    };
    let mut rows = vec![about(agent, width)];
    let mut prompt = None;
    if let Some(asked) = &agent.waits {
        let text = whole(asked);
        let style = theme::PLAIN;
        let mut lines: Vec<Line> = Vec::new();
        for line in text.trim_end().lines() {
            lines.extend(cut(&Line::styled(line, style), width.saturating_sub(2)));
        }
        let room = most.saturating_sub(1).max(1);
        let fits = lines.len() <= room && !agent.is_cut;
        if !fits {
            lines.truncate(room.saturating_sub(1));
            lines.push(Line::styled("... (v shows all)", theme::DIM));
        }
        let margin = [Span::new("│ ", theme::ASKS)];
        let lines = lines.into_iter().map(|line| line.behind(&margin));
        rows.extend(lines.map(|line| shorten(&line, width)));
        prompt = Some((asked.id.clone(), fits));
    } else {
        let parts = [
            ("waits for", agent.waits_for.as_str()),
            ("note", agent.note.as_str()),
            ("last", agent.last.as_str()),
        ];
        for (label, text) in parts {
            if text.is_empty() {
                continue;
            }
            let line = Line::styled(format!("{label}: "), theme::DIM).with(text, theme::PLAIN);
            let room = most.saturating_sub(rows.len());
            rows.extend(wrapped(&line, width).into_iter().take(room.min(3)));
        }
    }
    rows.truncate(most);
    Details { rows, prompt }
}

/// A summary of the chosen agent, unless the list shows it.
fn about(agent: &AgentLine, width: usize) -> Line {
    let kind = match agent.kind.as_str() {
        "" => "agent of the daemon",
        kind => kind,
    };
    let mut text = format!("── {} · {kind} · {}", agent.name, agent.state);
    if let Some(used) = agent.tokens {
        text.push_str(&format!(" · {}", tokens(used)));
        if let Some(window) = agent.window {
            text.push_str(&format!(" of {}", tokens(window)));
        }
        text.push_str(" tokens");
    }
    text.push_str(&format!(" · {} turns", agent.turns));
    for flag in &agent.flags {
        text.push_str(&format!(" · {flag}"));
    }
    text.push(' ');
    let line = shorten(&Line::styled(text, theme::DIM), width);
    let fill = "─".repeat(width.saturating_sub(line.width()));
    line.with(fill, theme::DIM)
}

/// The last rows: the input, the last result, or the keys; and the cursor.
fn foot(desk: &Desk, width: usize) -> (Vec<Line>, Option<(usize, usize)>) {
    if let Mode::Typing(what, composer) = &desk.mode {
        let label = match what {
            Typing::Send => "message: @AGENT [TOPIC]: text · Enter sends, Esc cancels".to_owned(),
            Typing::Deny(agent, _) => {
                format!("reason for {agent} (optional) · Enter denies, Esc cancels")
            }
            Typing::Reply(agent, _) => format!("your answer to {agent} · Enter sends, Esc cancels"),
        };
        let (mut rows, (row, column)) = composer.rows(width, "");
        rows.insert(0, dim(&label, width));
        return (rows, Some((row + 1, column)));
    }
    if let Some(said) = said(&desk.said, width) {
        return (vec![said], None);
    }
    let asks = desk.chosen().is_some_and(|agent| agent.for_admin);
    let prompt = desk.chosen().and_then(|agent| agent.waits.as_ref());
    let is_offered = prompt.is_some_and(|prompt| !prompt.always.is_empty());
    let all = match (asks, width) {
        (true, 70..) if is_offered => {
            "a allow · A always · d deny · r reply · v full · l screen · s send · ? keys · q quit"
        }
        (true, 70..) => "a allow · d deny · r reply · v full · l screen · s send · ? keys · q quit",
        (false, 70..) => {
            "l screen · t attach · s send · i messages · Tab next waiting · ? keys · q quit"
        }
        (true, _) => "a allow · d deny · v full · ? keys",
        (false, _) => "l screen · s send · ? keys · q quit",
    };
    (vec![dim(all, width)], None)
}

/// Draws a text that is being read.
fn read(reading: &mut Reading, width: usize, most: usize, rows: &mut Vec<Line>) {
    rows.push(shorten(&Line::styled(&reading.title, theme::BOLD), width));
    let room = most.saturating_sub(3).max(1);
    let mut lines: Vec<Line> = Vec::new();
    for line in reading.text.trim_end().lines() {
        lines.extend(cut(&Line::plain(line), width));
    }
    let last = lines.len().saturating_sub(room);
    reading.top = reading.top.min(last);
    reading.to_the_end |= reading.top == last;
    rows.extend(lines.into_iter().skip(reading.top).take(room));
}

/// Formats an entry in one row.
fn told(entry: &Entry, width: usize) -> Line {
    let agent = entry.agent.as_ref().map_or("", |agent| agent.as_str());
    let mut line = Line::styled(clock(entry.at), theme::DIM)
        .with(" ", theme::PLAIN)
        .with(agent, theme::BOLD);
    if let Some(to) = entry.to {
        line = line.with(format!(" {to}"), theme::CODE);
    }
    line = line.with(format!(" {}", entry.why), theme::PLAIN);
    if !entry.did.is_empty() {
        line = line.with(format!(" ⇒ {}", entry.did.join("; ")), theme::DIM);
    }
    shorten(&line, width)
}

/// The local time of day.
fn clock(at: u64) -> String {
    let at = i64::try_from(at).ok();
    let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let zone = jiff::tz::TimeZone::system();
    at.map_or_else(String::new, |at| {
        at.to_zoned(zone).strftime("%H:%M:%S").to_string()
    })
}

#[cfg(test)]
mod tests;
