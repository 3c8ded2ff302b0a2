//! Many at once.

use super::millis;
use crate::bench::daemon::{Daemon, Home};
use crate::bench::direct::{Direct, request};
use crate::bench::server::{ModelServer, Plan};
use crate::bench::stats::Row;
use anyhow::anyhow;
use std::sync::{Arc, Barrier};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// Conversations of the crowd.
const CROWD: usize = 1_000;

/// Two seconds of 50 chunks each.
const PACED: Plan = Plan {
    latency_us: 0,
    chunks: 50,
    gap_us: 40_000,
    group: 1,
};

/// The same answer at once.
const BURST: Plan = Plan {
    latency_us: 0,
    chunks: 50,
    gap_us: 0,
    group: 0,
};

const ROUNDS: usize = 5;

/// Stack of a reader's thread.
const STACK_BYTES: usize = 128 * 1024;

/// After which a daemon that has nothing to do has given its memory back.
const IDLE: Duration = Duration::from_secs(10);

/// Runs `work` for each client in a separate thread, all at
/// once, and tells how long all took together.
fn together(
    clients: usize,
    work: impl Fn(usize) -> anyhow::Result<()> + Send + Sync + 'static,
) -> anyhow::Result<Duration> {
    let (work, barrier) = (Arc::new(work), Arc::new(Barrier::new(clients + 1)));
    let mut threads = Vec::new();
    for client in 0..clients {
        let (work, barrier) = (Arc::clone(&work), Arc::clone(&barrier));
        let thread = Builder::new().stack_size(STACK_BYTES);
        threads.push(thread.spawn(move || {
            barrier.wait();
            work(client)
        })?);
    }
    barrier.wait();
    let begun = Instant::now();
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a client panicked"))??;
    }
    Ok(begun.elapsed())
}

/// Times of one crowd through the daemon and without it.
fn crowd_round(
    daemon: &Arc<Daemon>,
    address: &str,
    agent: &'static str,
    round: usize,
    ready: Vec<u8>,
) -> anyhow::Result<(Duration, Duration)> {
    let through = {
        let daemon = Arc::clone(daemon);
        together(CROWD, move |user| {
            let sender = format!("user-{round}-{user}");
            daemon.client()?.turn(agent, &sender).map(drop)
        })?
    };
    let address = address.to_owned();
    let direct = together(CROWD, move |_| {
        Direct::connect(&address)?.turn(&ready).map(drop)
    })?;
    Ok((through, direct))
}

pub(super) fn crowd(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for sync in ["step", "never"] {
        let home = Home::new(server, sync, &[("paced", PACED), ("burst", BURST)])?;
        let daemon = Arc::new(home.start()?);
        daemon.client()?.turn("paced", "warm")?;
        let body = server.last_body()?;
        let (mut ratios, mut peaks, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            daemon.forget_peak()?;
            let ready = request(PACED, &body);
            let (ours, theirs) = crowd_round(&daemon, &server.address, "paced", round, ready)?;
            peaks.push(daemon.peak_mib()?);
            ratios.push(millis(ours) / millis(theirs));
            sleep(IDLE);
            after.push(daemon.rss_mib()?);
        }
        let what = format!("1,000 conversations at once, sync = {sync}");
        rows.push(Row::at_most(format!("{what}, to direct"), "", 1.3, ratios));
        rows.push(Row::at_most(format!("{what}, peak"), "MiB", 60.0, peaks));
        rows.push(Row::at_most(
            format!("{what}, after 10 s of idleness"),
            "MiB",
            20.0,
            after,
        ));
        let mut bursts = Vec::new();
        for round in 0..ROUNDS {
            let ready = request(BURST, &body);
            let (ours, _) = crowd_round(&daemon, &server.address, "burst", round, ready)?;
            bursts.push(millis(ours));
        }
        rows.push(Row::beside(
            format!("{what}, answers that come at once: time of all"),
            "ms",
            bursts,
        ));
    }
    Ok(rows)
}
