//! `stats`: the daemon's figures and spending.

use super::Context;
use crate::args::{By, Stats};
use crate::error::Error;
use crate::text::{duration, local, money};
use crate::{json, table};
use crabtalk_proto::{DaemonStats, GetStats, Spending};

pub(super) async fn stats(context: &mut Context, args: Stats) -> Result<(), Error> {
    let request = GetStats { days: args.days };
    let stats = context.call(request).await?;
    if context.global.json {
        return Ok(context.console.screen.json(&json::stats(&stats))?);
    }
    if let Some(by) = args.by {
        return spent(context, &stats, by, "no spending");
    }
    context.line(&table::pairs(&rows(&stats)))?;
    let by = if args.days > 1 { By::Day } else { By::Agent };
    if stats.spending.iter().any(|row| row.calls > 0) {
        context.line("")?;
        spent(context, &stats, by, "")?;
    }
    Ok(())
}

/// The daemon's figures by name.
pub(super) fn rows(stats: &DaemonStats) -> Vec<(&'static str, String)> {
    let of = |used: String, limit: Option<String>| match limit {
        Some(limit) => format!(
            "{used} of {limit}, resets {}",
            local(&stats.budgets_open_at)
        ),
        None => used,
    };
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
        (
            "tokens today",
            of(
                stats.tokens_today.to_string(),
                stats.tokens_per_day.map(|limit| limit.to_string()),
            ),
        ),
        (
            "money today",
            of(
                money(stats.money_today),
                stats.money_per_day.map(|limit| format!("${limit}")),
            ),
        ),
        ("scope violations", stats.scope_violations.to_string()),
    ]
}

fn spent(context: &mut Context, stats: &DaemonStats, by: By, none: &str) -> Result<(), Error> {
    let (header, rows) = spending(stats, by);
    context.print_table(&header, rows, none)
}

/// Spending in groups: the header and the rows of a table.
pub(super) fn spending(stats: &DaemonStats, by: By) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let name: &[&'static str] = match by {
        By::Day => &["day"],
        By::Agent => &["agent"],
        By::Model => &["model", "provider"],
        By::Conversation => &["agent", "sender"],
        By::Run => &["at", "agent", "sender", "run", "code"],
    };
    let mut header = name.to_vec();
    header.extend([
        "calls", "read", "cached", "written", "money", "unpriced", "budget",
    ]);
    let by = by.name();
    let rows = stats.spending.iter().filter(|row| row.by == by);
    let rows = rows.map(|row| {
        let mut cells: Vec<String> = name.iter().map(|name| named(row, name)).collect();
        cells.extend([
            row.calls.to_string(),
            row.prompt_tokens.to_string(),
            row.cache_hit_tokens.to_string(),
            row.completion_tokens.to_string(),
            money(row.money),
            row.unpriced_tokens.to_string(),
            budget(row),
        ]);
        cells
    });
    let rows = rows.collect();
    (header, rows)
}

fn named(row: &Spending, name: &str) -> String {
    match name {
        "day" => row.day.clone(),
        "at" => row.at.clone(),
        "code" => row.code.to_string(),
        "agent" => row.agent.clone(),
        "model" => row.model.clone(),
        "provider" => row.provider.clone(),
        "sender" if row.sender.is_empty() => "(others)".to_owned(),
        "sender" => row.sender.clone(),
        _ => row.run.to_string(),
    }
}

fn budget(row: &Spending) -> String {
    let tokens = row
        .tokens_per_day
        .map(|limit| format!("{limit} tokens a day"));
    let money = row.money_per_day.map(|limit| format!("${limit} a day"));
    let limits: Vec<String> = tokens.into_iter().chain(money).collect();
    limits.join(", ")
}
