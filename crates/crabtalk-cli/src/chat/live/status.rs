//! `/status` and `/cost`: figures of the chat and of the daemon.

use super::calls::{Pair, cell};
use crate::text::{duration, money, spent};
use crabtalk_client::Client;
use crabtalk_proto::{DaemonStats, GetStats, ListConversationsMsg};
use crabtalk_render::tokens;
use std::path::PathBuf;

pub(super) fn cost(stats: &DaemonStats, session: (u64, f64)) -> String {
    let of = |limit: Option<String>| limit.map_or_else(String::new, |limit| format!(" of {limit}"));
    let mut text = format!(
        "This chat: **{}** tokens. This conversation: {}.\n\nToday: **{}** tokens{}{}{}.\n",
        tokens(session.0),
        money(session.1),
        tokens(stats.tokens_today),
        of(stats.tokens_per_day.map(tokens)),
        in_money(stats.money_today),
        of(stats.money_per_day.map(|limit| format!("${limit}"))),
    );
    let rows = stats
        .spending
        .iter()
        .filter(|row| row.by == "model" && row.calls > 0);
    let rows: String = rows
        .map(|row| {
            let (read, written) = (tokens(row.prompt_tokens), tokens(row.completion_tokens));
            format!(
                "| {} | {} | {read} | {written} | {} |\n",
                cell(&row.model),
                row.calls,
                spent(row.money, row.unpriced_tokens)
            )
        })
        .collect();
    if !rows.is_empty() {
        text.push_str("\n| model | calls | read | written | money |\n|---|--:|--:|--:|--:|\n");
        text.push_str(&rows);
    }
    text + &format!(
        "\nThe daemon has been running for {}.",
        duration(stats.uptime_secs)
    )
}

/// Status rows of the chat, with the daemon's version and the session's file.
pub(super) async fn status(
    client: Client,
    pair: Pair,
    mut rows: Vec<(&'static str, String)>,
    sessions: Option<PathBuf>,
) -> String {
    let request = ListConversationsMsg {
        agent: pair.agent,
        sender: pair.sender,
        limit: 1,
    };
    let (stats, list) =
        futures_util::join!(client.call(GetStats { days: 1 }), client.call(request));
    rows.push((
        "daemon",
        match stats {
            Ok(stats) => stats.version,
            Err(error) => error.to_string(),
        },
    ));
    let found = list
        .ok()
        .and_then(|list| list.conversations.into_iter().next());
    let file = found.map(|conversation| match sessions {
        Some(folder) => folder.join(conversation.file_path).display().to_string(),
        None => conversation.file_path,
    });
    let file = file.unwrap_or_else(|| "none yet".to_owned());
    rows.push(("session file", file));
    let row = |(name, value): &(&str, String)| format!("| {name} | {} |\n", cell(value));
    let rows: String = rows.iter().map(row).collect();
    format!("| | |\n|---|---|\n{rows}")
}

/// Formats spending; empty if it is zero.
fn in_money(spent: f64) -> String {
    match spent > 0.0 {
        true => format!(", {}", money(spent)),
        false => String::new(),
    }
}
