//! Starting, and what an idle daemon costs.

use super::{SHORT, millis};
use crate::bench::daemon::Home;
use crate::bench::server::ModelServer;
use crate::bench::stats::Row;
use std::fmt::Write;

/// Starts of each kind.
const STARTS: usize = 25;

/// Conversations on disk.
const MANY: usize = 10_000;

/// Conversations that a list shows.
const LISTED: u32 = 50;

/// Lists of them.
const LISTS: usize = 25;

/// Daemons whose memory is looked at.
const IDLE: usize = 5;

pub(super) fn start(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let empty = Home::new(server, "step", &[("crab", SHORT)])?;
    let full = Home::new(server, "step", &[("crab", SHORT)])?;
    for number in 0..MANY {
        let mut lines = String::new();
        for turn in 0..5 {
            writeln!(
                lines,
                r#"{{"role":"user","content":"question {turn}","at":"2026-01-01T00:00:00Z"}}"#
            )?;
            writeln!(
                lines,
                r#"{{"role":"assistant","content":"answer {turn}","at":"2026-01-01T00:00:00Z"}}"#
            )?;
        }
        full.conversation("crab", &format!("user-{number}"), &lines)?;
    }
    let (mut of_empty, mut of_full) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        for (home, times) in [(&empty, &mut of_empty), (&full, &mut of_full)] {
            let daemon = home.start()?;
            times.push(millis(daemon.pong));
            daemon.stop()?;
        }
    }
    let daemon = full.start()?;
    let mut client = daemon.client()?;
    let first = millis(client.list_latest(LISTED)?);
    let mut again = Vec::new();
    for _ in 0..LISTS {
        again.push(millis(client.list_latest(LISTED)?));
    }
    daemon.stop()?;
    Ok(vec![
        Row::at_most("start to first Pong, empty home", "ms", 6.0, of_empty),
        Row::at_most(
            format!("start to first Pong, {MANY} conversations on disk"),
            "ms",
            6.0,
            of_full,
        ),
        Row::beside(
            format!("the latest {LISTED} of {MANY} conversations, asked for first"),
            "ms",
            [first],
        ),
        Row::at_most("the same, asked for again", "ms", 10.0, again),
    ])
}

pub(super) fn memory(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let rest = || std::thread::sleep(std::time::Duration::from_secs(1));
    let (mut idle, mut rested) = (Vec::new(), Vec::new());
    let (mut after, mut own) = (Vec::new(), Vec::new());
    for _ in 0..IDLE {
        let home = Home::new(server, "step", &[("crab", SHORT)])?;
        let daemon = home.start()?;
        idle.push(daemon.rss_mib()?);
        rest();
        rested.push(daemon.rss_mib()?);
        daemon.client()?.turn("crab", "user")?;
        rest();
        after.push(daemon.rss_mib()?);
        own.push(daemon.own_mib()?);
        daemon.stop()?;
    }
    Ok(vec![
        Row::at_most("idle memory, after the first Pong", "MiB", 10.0, idle),
        Row::at_most("idle memory, a second later", "MiB", 10.0, rested),
        Row::at_most("idle memory, a second after a run", "MiB", 10.0, after),
        Row::beside("of it the daemon's own data", "MiB", own),
    ])
}
