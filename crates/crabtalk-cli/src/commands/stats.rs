//! `stats`: the daemon's figures.

use super::Context;
use crate::error::Error;
use crate::text::duration;
use crate::{json, table};
use crabtalk_proto::{Client, DaemonStats, GetStats};

pub(super) async fn stats(context: &mut Context) -> Result<(), Error> {
    let stats = context.connection().await?.get_stats(GetStats::default()).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&json::stats(&stats))?);
    }
    Ok(screen.line(&table::pairs(&rows(&stats)))?)
}

fn rows(stats: &DaemonStats) -> Vec<(&'static str, String)> {
    vec![
        ("version", stats.version.clone()),
        ("uptime", duration(stats.uptime_secs)),
        ("active model", stats.active_model.clone()),
        ("agents", stats.registered_agents.to_string()),
        (
            "conversations in memory",
            stats.active_conversations.to_string(),
        ),
        ("runs", stats.running.to_string()),
        ("connections", stats.connections.to_string()),
        ("memory", format!("{:.1} MB", stats.rss_bytes as f64 / 1e6)),
        ("tokens today", stats.tokens_today.to_string()),
        ("scope violations", stats.scope_violations.to_string()),
    ]
}
