//! The board as rows of a terminal.
//!
//! Invariants: no row is wider than the terminal, and there are fewer rows than
//! it has; whatever does not fit its column is shown below for the agent that is
//! chosen; text of agents drives no terminal.

use super::desk::{Desk, Mode, Reading, Typing, whole};
use crate::agent::State;
use crate::world::{AgentLine, Entry};
use anstyle::Style;
use crabtalk_render::{Line, Span, cut, shorten, theme, tokens, wrapped};
use crabtalk_screen::Drawing;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// Rows of the log at least, on terminals that are not low.
const LOG_ROWS: usize = 4;

/// Terminals so low get no rows of the log.
const LOW: usize = 16;

/// Of the rows, those for what is chosen: a third.
const DETAIL_PART: usize = 3;

/// What was drawn, beside the rows.
pub(super) struct Drawn {
    pub(super) drawing: Drawing,
    /// The prompt that is shown, and whether all of it is.
    pub(super) prompt: Option<(String, bool)>,
}

/// Draws it on so many columns and rows.
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
    if let Some(why) = &desk.held {
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

/// Columns of the list.
struct Columns {
    name: usize,
    state: usize,
    since: usize,
    mail: usize,
    context: usize,
    /// What it waits for; the last message gets what is left.
    waits: usize,
    last: usize,
}

impl Columns {
    fn of(width: usize, names: usize) -> Self {
        let (name, state, since, mail, context) = match width {
            0..60 => (names.min(10), 8, 4, 3, 4),
            60..100 => (names.min(14), 15, 5, 4, 5),
            _ => (names.min(24), 15, 6, 5, 12),
        };
        // One column for the mark, one between each.
        let used = 1 + name + 1 + state + 1 + since + 1 + mail + 1 + context + 2;
        let left = width.saturating_sub(used);
        let (waits, last) = match left {
            0..12 => (0, 0),
            12..40 => (left, 0),
            _ => (left * 2 / 5, left - left * 2 / 5 - 1),
        };
        Self {
            name,
            state,
            since,
            mail,
            context,
            waits,
            last,
        }
    }
}

/// A text in its column.
fn cell(text: &str, width: usize, style: Style) -> Vec<Span> {
    let line = Line::styled(text.split('\n').next().unwrap_or_default(), style);
    let line = shorten(&line, width);
    let fill = " ".repeat(width.saturating_sub(line.width()));
    let mut spans = line.spans().to_vec();
    spans.push(Span::new(fill, theme::PLAIN));
    spans
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

fn style_of(state: State) -> Style {
    match state {
        State::Active => theme::GOOD,
        State::Approval | State::AwaitAdmin => theme::ASKS,
        State::Stuck | State::Failed => theme::BAD,
        State::Initialization | State::PreCompression => theme::CODE,
        State::Idle | State::Offline => theme::DIM,
    }
}

fn state_text(state: State, width: usize) -> String {
    let long = state.to_string();
    if long.len() <= width {
        return long;
    }
    match state {
        State::Initialization => "INIT".into(),
        State::PreCompression => "PRE-COMP".into(),
        State::AwaitAdmin => "AWAIT".into(),
        State::Offline
        | State::Idle
        | State::Active
        | State::Approval
        | State::Stuck
        | State::Failed => long,
    }
}

fn list(desk: &Desk, width: usize, room: usize, now: Instant, rows: &mut Vec<Line>) {
    let names = desk.agents.iter().map(|agent| agent.name.as_str().len());
    let columns = Columns::of(width, names.max().unwrap_or(0).max(5));
    let has_titles = room > 4;
    let shown = room.saturating_sub(usize::from(has_titles)).max(1);
    let count = desk.agents.len();
    let place = desk.place();
    // The chosen one is always among those that are shown.
    let top = place
        .saturating_sub(shown / 2)
        .min(count.saturating_sub(shown));
    if has_titles {
        rows.push(titles(&columns, width, (top, shown, count)));
    }
    let later = now.saturating_duration_since(desk.at);
    for (index, agent) in desk.agents.iter().enumerate().skip(top).take(shown) {
        rows.push(row(agent, &columns, index == place, later, width));
    }
}

fn titles(columns: &Columns, width: usize, (top, shown, count): (usize, usize, usize)) -> Line {
    let mut text = format!(
        " {:<name$} {:<state$} {} {} {}  ",
        "AGENT",
        "STATE",
        right("FOR", columns.since),
        right(if columns.mail < 4 { "MSG" } else { "MAIL" }, columns.mail),
        right(
            if columns.context < 12 {
                "CTX"
            } else {
                "CONTEXT"
            },
            columns.context
        ),
        name = columns.name,
        state = columns.state,
    );
    if columns.waits > 0 {
        text.push_str(&format!("{:<waits$} ", "WAITS FOR", waits = columns.waits));
    }
    if columns.last > 0 {
        text.push_str("LAST MESSAGE");
    }
    if count > shown {
        let last = (top + shown).min(count);
        let some = format!(" {}-{last} of {count}", top + 1);
        let room = width.saturating_sub(some.len());
        let line = shorten(&Line::styled(text.trim_end(), theme::DIM), room);
        let fill = " ".repeat(room.saturating_sub(line.width()));
        return line.with(fill, theme::PLAIN).with(some, theme::DIM);
    }
    dim(text.trim_end(), width)
}

fn row(
    agent: &AgentLine,
    columns: &Columns,
    is_chosen: bool,
    later: Duration,
    width: usize,
) -> Line {
    let mut spans = Vec::new();
    let mark = if is_chosen { "›" } else { " " };
    spans.push(Span::new(mark, theme::ASKS));
    let name_style = if is_chosen { theme::BOLD } else { theme::PLAIN };
    let mut put = |text: &str, width: usize, style: Style| {
        if width > 0 {
            spans.extend(cell(text, width, style));
            spans.push(Span::new(" ", theme::PLAIN));
        }
    };
    put(agent.name.as_str(), columns.name, name_style);
    let state = state_text(agent.state, columns.state);
    put(&state, columns.state, style_of(agent.state));
    let since = age(for_ms(agent, later));
    put(&right(&since, columns.since), columns.since, theme::DIM);
    let mail = match agent.queue {
        0 => "-".to_owned(),
        count => count.to_string(),
    };
    put(&right(&mail, columns.mail), columns.mail, theme::PLAIN);
    let context = context(agent, columns.context);
    let full = agent.percent.unwrap_or(0);
    let style = match full {
        85.. => theme::BAD,
        66.. => theme::ASKS,
        _ => theme::PLAIN,
    };
    // What it waits for stands two columns off.
    let room = columns.context + usize::from(columns.waits > 0);
    put(&right(&context, columns.context), room, style);
    let waits = match (agent.waits_for.as_str(), agent.flags.as_slice()) {
        ("", []) => String::new(),
        ("", flags) => flags.join(", "),
        (waits, _) => waits.to_owned(),
    };
    let style = if agent.for_admin {
        theme::ASKS
    } else {
        theme::PLAIN
    };
    put(&waits, columns.waits, style);
    put(&agent.last, columns.last, theme::DIM);
    // No space behind the last one: it would be wider than the terminal.
    spans.pop();
    let line = Line::from(spans);
    shorten(&line, width)
}

fn for_ms(agent: &AgentLine, later: Duration) -> u64 {
    let later = u64::try_from(later.as_millis()).unwrap_or(0);
    agent.for_ms.saturating_add(later)
}

/// How full its context is, in so many columns.
fn context(agent: &AgentLine, width: usize) -> String {
    let percent = agent.percent.map(|percent| format!("{percent}%"));
    match (agent.tokens.map(tokens), percent) {
        (None, None) => "-".into(),
        (Some(tokens), Some(percent)) if width >= 12 => format!("{tokens} {percent:>4}"),
        (_, Some(percent)) => percent,
        (Some(tokens), None) => tokens,
    }
}

/// A time in few columns.
pub(super) fn age(ms: u64) -> String {
    let secs = ms / 1000;
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m", secs / 60),
        3600..86_400 => format!("{}h", secs / 3600),
        _ => format!("{}d", secs / 86_400),
    }
}

struct Details {
    rows: Vec<Line>,
    prompt: Option<(String, bool)>,
}

/// What is known of the chosen one, in so many rows.
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

/// Who is chosen, as far as the list does not say it.
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

/// The last rows: what is typed, what was said, or the keys; and the cursor.
fn foot(desk: &Desk, width: usize) -> (Vec<Line>, Option<(usize, usize)>) {
    if let Mode::Typing(what, composer) = &desk.mode {
        let label = match what {
            Typing::Send => "message: @AGENT [TOPIC]: text · Enter sends, Esc does not".to_owned(),
            Typing::Deny(agent, _) => {
                format!("why {agent} may not (may be empty) · Enter refuses, Esc does not")
            }
            Typing::Reply(agent, _) => format!("your answer to {agent} · Enter, or Esc"),
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
            "a allow · A for good · d deny · r reply · v whole · l look · s send · ? keys · q quit"
        }
        (true, 70..) => "a allow · d deny · r reply · v whole · l look · s send · ? keys · q quit",
        (false, 70..) => {
            "l look · t go there · s send · i messages · Tab next that waits · ? keys · q quit"
        }
        (true, _) => "a allow · d deny · v whole · ? keys",
        (false, _) => "l look · s send · ? keys · q quit",
    };
    (vec![dim(all, width)], None)
}

/// A text that is read.
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

/// An entry in a row.
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

/// The time of day, here.
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
