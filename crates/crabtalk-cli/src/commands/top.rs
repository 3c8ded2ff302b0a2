//! `top`: active runs and the daemon's figures, live.
//!
//! Invariant: a terminal shows one page that is redrawn and removed at the end; without
//! a terminal, each update is printed without escape sequences.

use super::{Context, stats};
use crate::args::{By, Top};
use crate::error::Error;
use crate::text::summary;
use crate::{json, table};
use crabtalk_proto::{ActiveConversationInfo, DaemonStats, GetStats, ListActiveConversationsMsg};
use crabtalk_render::Line;
use crabtalk_render::screen::{
    AlternateScreen, Canvas, Drawing, Raw, is_plain, size, styles, terminal_size,
};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use futures_util::StreamExt;
use jiff::Timestamp;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of conversations; active ones come first.
const MAX_CONVERSATIONS: u32 = 200;

/// Width of pages that are printed as lines.
const LINE_COLUMNS: usize = 100;

struct Look {
    at: Timestamp,
    stats: DaemonStats,
    /// Conversations with runs, queued messages or asks.
    busy: Vec<ActiveConversationInfo>,
}

pub(super) async fn top(context: &mut Context, args: Top) -> Result<(), Error> {
    context.client().await?;
    let (every, looks) = (Duration::from_secs(args.delay), args.count);
    match context.global.json || is_plain() {
        true => lines(context, every, looks).await,
        false => live(context, every, looks).await,
    }
}

async fn look(context: &Context) -> Result<Look, Error> {
    let client = context.known_client();
    let stats = client.call(GetStats::default()).await?;
    let request = ListActiveConversationsMsg {
        agent: context.agent(),
        sender: context.named_sender(),
        limit: MAX_CONVERSATIONS,
    };
    let mut busy = client.call(request).await?.conversations;
    busy.retain(|info| info.running || info.queued > 0 || !info.asks.is_empty());
    Ok(Look {
        at: Timestamp::now(),
        stats,
        busy,
    })
}

/// Prints each update until interrupted.
async fn lines(context: &mut Context, every: Duration, looks: Option<u64>) -> Result<(), Error> {
    let mut left = looks;
    loop {
        let look = look(context).await?;
        let screen = &mut context.console.screen;
        if context.global.json {
            screen.json(&for_script(&look))?;
        } else {
            screen.line(&page(&look, LINE_COLUMNS).join("\n"))?;
        }
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(());
        }
        tokio::select! {
            biased;
            Some(()) = context.console.interrupts.next() => return Err(Error::Interrupted),
            () = tokio::time::sleep(every) => {}
        }
    }
}

fn for_script(look: &Look) -> serde_json::Value {
    let mut value = json::stats(&look.stats);
    value["at"] = look.at.to_string().into();
    value["runs"] = look.busy.iter().map(json::of).collect();
    value
}

/// The daemon's figures in short form.
fn figures(look: &Look) -> Vec<String> {
    let asks: usize = look.busy.iter().map(|info| info.asks.len()).sum();
    let queued: u32 = look.busy.iter().map(|info| info.queued).sum();
    let more = [("queued", queued.to_string()), ("asks", asks.to_string())];
    let figures = stats::rows(&look.stats).into_iter().chain(more);
    let figures = figures.filter(|(_, value)| !value.is_empty());
    figures
        .map(|(name, value)| format!("{name} {value}"))
        .collect()
}

/// The row of a conversation.
fn run(info: &ActiveConversationInfo) -> Vec<String> {
    let state = match (info.asks.is_empty(), info.running) {
        (false, _) => "asks",
        (true, true) => "runs",
        (true, false) => "waits",
    };
    let context = info.context_used.map(crabtalk_render::tokens);
    vec![
        summary(&info.agent),
        summary(&info.sender),
        state.to_owned(),
        match info.queued {
            0 => String::new(),
            queued => format!("+{queued}"),
        },
        context.unwrap_or_default(),
        summary(&info.title),
    ]
}

/// The rows of the page.
fn page(look: &Look, columns: usize) -> Vec<String> {
    let width = u16::try_from(columns).unwrap_or(u16::MAX);
    // Figures wrap at the width.
    let (mut rows, mut row) = (Vec::new(), String::from("crabtalk"));
    for figure in figures(look) {
        if !row.is_empty() && row.len() + 2 + figure.len() > columns {
            rows.push(std::mem::take(&mut row));
        }
        if !row.is_empty() {
            row.push_str("  ");
        }
        row.push_str(&figure);
    }
    rows.extend([row, String::new()]);
    if look.busy.is_empty() {
        rows.push("no active runs".to_owned());
    } else {
        let header = ["agent", "sender", "state", "queue", "context", "title"];
        let busy = look.busy.iter().map(run).collect();
        let text = table::table(&header, busy, Some(width));
        rows.extend(text.lines().map(str::to_owned));
    }
    let (header, agents) = stats::spending(&look.stats, By::Agent);
    if !agents.is_empty() {
        rows.push(String::new());
        let text = table::table(&header, agents, Some(width));
        rows.extend(text.lines().map(str::to_owned));
    }
    rows
}

/// Redraws the page until a key ends it.
async fn live(context: &mut Context, every: Duration, looks: Option<u64>) -> Result<(), Error> {
    let failed = |e| Error::io("use the terminal", &e);
    let mut rows = page(&look(context).await?, size().0);
    let mut raw = Raw::begin().map_err(failed)?;
    let whole = AlternateScreen::begin().map_err(failed)?;
    let canvas = || Canvas::new(Box::new(io::stdout()), styles(), terminal_size());
    let (mut drawn, mut left) = (canvas(), looks);
    let mut again = Instant::now() + every;
    loop {
        let (_, height) = size();
        let mut shown: Vec<Line> = rows.iter().map(Line::plain).collect();
        shown.truncate(height.saturating_sub(2));
        shown.push(Line::plain(""));
        shown.push(Line::plain("q quits"));
        let drawing = Drawing {
            rows: shown,
            cursor: None,
        };
        drawn.draw(&[], &drawing).map_err(failed)?;
        tokio::select! {
            events = raw.next() => {
                let Some(events) = events else { return Ok(()) };
                if events.iter().any(leaves) {
                    return Ok(());
                }
                if events.iter().any(|event| matches!(event, Event::Resize(..))) {
                    whole.clear().map_err(failed)?;
                    drawn = canvas();
                    again = Instant::now();
                }
            }
            () = tokio::time::sleep_until(again) => {
                left = left.map(|left| left - 1);
                if left == Some(0) {
                    return Ok(());
                }
                rows = match look(context).await {
                    Ok(look) => page(&look, size().0),
                    // The daemon may come back.
                    Err(error) => vec![format!("crabtalk: {error}")],
                };
                again = Instant::now() + every;
            }
        }
    }
}

/// Whether the key ends the page.
fn leaves(event: &Event) -> bool {
    let Event::Key(KeyEvent {
        code, modifiers, ..
    }) = event
    else {
        return false;
    };
    if modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(code, KeyCode::Char('c' | 'd'));
    }
    matches!(code, KeyCode::Char('q') | KeyCode::Esc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::{AskUserEvent, Spending};

    #[test]
    fn page_fits_the_terminal_and_shows_runs_and_spending() {
        let info = ActiveConversationInfo {
            agent: "crab".into(),
            sender: "user/house".into(),
            running: true,
            queued: 2,
            context_used: Some(1_234),
            title: "a long title of a conversation about doors".into(),
            ..ActiveConversationInfo::default()
        };
        let asks = ActiveConversationInfo {
            asks: vec![AskUserEvent::default()],
            agent: "reviewer\x1b[2J".into(),
            ..info.clone()
        };
        let spending = Spending {
            by: "agent".into(),
            agent: "crab".into(),
            calls: 3,
            prompt_tokens: 99,
            ..Spending::default()
        };
        let look = Look {
            at: Timestamp::UNIX_EPOCH,
            stats: DaemonStats {
                version: "1.2.3".into(),
                running: 2,
                rss_bytes: 21_000_000,
                tokens_today: 500,
                tokens_per_day: Some(1000),
                spending: vec![spending],
                ..DaemonStats::default()
            },
            busy: vec![info, asks],
        };
        for columns in [40, 80, 200] {
            let rows = page(&look, columns);
            let text = rows.join("\n");
            assert!(
                rows.iter().all(|row| row.chars().count() <= columns),
                "{text}"
            );
            for part in [
                "1.2.3",
                "runs 2",
                "memory 21.0 MB",
                "tokens today 500 of 1000",
            ] {
                assert!(text.contains(part), "{part} in {text}");
            }
            assert!(!text.contains('\x1b'), "{text}");
        }
        let idle = Look {
            busy: Vec::new(),
            ..look
        };
        assert!(page(&idle, 80).contains(&"no active runs".to_owned()));
    }
}
