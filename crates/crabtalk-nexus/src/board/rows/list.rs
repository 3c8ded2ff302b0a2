//! The list of agents, one per row.

use super::dim;
use crate::agent::State;
use crate::board::desk::Desk;
use crate::world::AgentLine;
use anstyle::Style;
use crabtalk_render::{Line, Span, shorten, theme, tokens};
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// Widths of the columns.
struct Columns {
    name: usize,
    state: usize,
    since: usize,
    mail: usize,
    context: usize,
    /// Width of the reason for waiting; the last message gets the remaining columns.
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
        // One column for the mark, and one between columns.
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

/// Pads or shortens a text to its column.
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

pub(super) fn list(desk: &Desk, width: usize, room: usize, now: Instant, rows: &mut Vec<Line>) {
    let names = desk.agents.iter().map(|agent| agent.name.as_str().len());
    let columns = Columns::of(width, names.max().unwrap_or(0).max(5));
    let has_titles = room > 4;
    let shown = room.saturating_sub(usize::from(has_titles)).max(1);
    let count = desk.agents.len();
    let place = desk.place();
    // The chosen agent is always visible.
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
    let state = agent.state.to_string();
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
    // The reason for waiting is two columns to the right.
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
    // No space after the last column, which would exceed the terminal's width.
    spans.pop();
    let line = Line::from(spans);
    shorten(&line, width)
}

fn for_ms(agent: &AgentLine, later: Duration) -> u64 {
    let later = u64::try_from(later.as_millis()).unwrap_or(0);
    agent.for_ms.saturating_add(later)
}

/// A bar of the context's fill level, with this many columns.
fn context(agent: &AgentLine, width: usize) -> String {
    let percent = agent.percent.map(|percent| format!("{percent}%"));
    match (agent.tokens.map(tokens), percent) {
        (None, None) => "-".into(),
        (Some(tokens), Some(percent)) if width >= 12 => format!("{tokens} {percent:>4}"),
        (_, Some(percent)) => percent,
        (Some(tokens), None) => tokens,
    }
}

/// Formats a duration in few columns.
pub(super) fn age(ms: u64) -> String {
    let secs = ms / 1000;
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m", secs / 60),
        3600..86_400 => format!("{}h", secs / 3600),
        _ => format!("{}d", secs / 86_400),
    }
}
