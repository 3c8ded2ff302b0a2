//! The cost of a chunk that the daemon relays.

use super::millis;
use crate::bench::daemon::Home;
use crate::bench::direct::{Direct, request};
use crate::bench::floor::Floor;
use crate::bench::server::{ModelServer, Plan};
use crate::bench::stats::Row;

/// Pairs of first chunks; the added time is small beside the noise of one.
const FIRST_PAIRS: usize = 400;

/// A model's time to its first token, in which syncs run: less than any real
/// one takes.
const LATENCY_US: u64 = 10_000;

/// A backlogged source: as many chunks as make the time of one measurable.
const BACKLOG: Plan = Plan {
    latency_us: 0,
    chunks: 200_000,
    gap_us: 0,
    group: 0,
};

/// As many writes as chunks.
const EACH: Plan = Plan {
    latency_us: 0,
    chunks: 50_000,
    gap_us: 0,
    group: 1,
};

const ROUNDS: usize = 9;

pub(super) fn first_chunk(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let slow = Plan {
        latency_us: LATENCY_US,
        chunks: 3,
        gap_us: 1_000,
        group: 1,
    };
    let instant = Plan {
        latency_us: 0,
        ..slow
    };
    let whole = Plan {
        gap_us: 0,
        ..instant
    };
    for (sync, plan, what, target) in [
        (
            "step",
            slow,
            "added to the first chunk, sync = step",
            Some(0.12),
        ),
        (
            "never",
            slow,
            "added to the first chunk, sync = never",
            Some(0.12),
        ),
        (
            "never",
            instant,
            "the same, a model without latency, sync = never",
            None,
        ),
        (
            "step",
            instant,
            "the same, a model without latency, sync = step",
            None,
        ),
        (
            "never",
            whole,
            "the same, a model without latency or pauses, sync = never",
            Some(0.12),
        ),
    ] {
        let (added, least) = beside(server, sync, plan)?;
        rows.push(match target {
            Some(target) => Row::at_most(what, "ms", target, added),
            None => Row::beside(what, "ms", added),
        });
        if sync == "never" {
            let what = format!("{what}; a relay that only copies bytes");
            rows.push(Row::beside(what, "ms", least));
        }
    }
    Ok(rows)
}

/// Milliseconds that the daemon, and a relay that only copies bytes, add to the first
/// chunk of a model.
fn beside(server: &ModelServer, sync: &str, plan: Plan) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let home = Home::new(server, sync, &[("crab", plan)])?;
    let daemon = home.start()?;
    let mut client = daemon.client()?;
    client.turn("crab", "user")?;
    let request = request(plan, &server.last_body()?);
    let mut direct = Direct::connect(&server.address)?;
    direct.turn(&request)?;
    let floor = Floor::start(server)?;
    let mut copied = Direct::over(floor.connect()?);
    copied.turn(&request)?;
    let (mut added, mut least) = (Vec::new(), Vec::new());
    for pair in 0..FIRST_PAIRS {
        // A new conversation now and then keeps histories short.
        let sender = format!("user-{}", pair / 20);
        if pair % 20 == 0 {
            client.turn("crab", &sender)?;
        }
        // Each comes first as often as the others: the first one finds the
        // server's code out of the processor's caches.
        let [mut ours, mut theirs, mut copies] = [0.0; 3];
        for turn in 0..3 {
            match (pair + turn) % 3 {
                0 => ours = millis(client.turn("crab", &sender)?.first),
                1 => theirs = millis(direct.turn(&request)?.first),
                _ => copies = millis(copied.turn(&request)?.first),
            }
        }
        added.push(ours - theirs);
        least.push(copies - theirs);
    }
    Ok((added, least))
}

pub(super) fn cpu(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let of = |plan: Plan| -> anyhow::Result<Vec<f64>> {
        let home = Home::new(server, "step", &[("crab", plan)])?;
        let daemon = home.start()?;
        let mut client = daemon.client()?;
        client.turn("crab", "warm")?;
        let mut per_chunk = Vec::new();
        for round in 0..ROUNDS {
            let before = daemon.cpu()?;
            client.turn("crab", &format!("user-{round}"))?;
            let spent = daemon.cpu()? - before;
            per_chunk.push(spent.as_secs_f64() * 1e6 / plan.chunks as f64);
        }
        Ok(per_chunk)
    };
    Ok(vec![
        Row::at_most("CPU per chunk, backlogged source", "µs", 4.0, of(BACKLOG)?),
        Row::beside("CPU per chunk, event by event", "µs", of(EACH)?),
    ])
}

pub(super) fn throughput(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (plan, what, target) in [
        (EACH, "throughput to direct, event by event", Some(0.9)),
        (BACKLOG, "throughput to direct, backlogged source", None),
    ] {
        let home = Home::new(server, "step", &[("crab", plan)])?;
        let daemon = home.start()?;
        let mut client = daemon.client()?;
        client.turn("crab", "warm")?;
        let request = request(plan, &server.last_body()?);
        let mut direct = Direct::connect(&server.address)?;
        let mut ratios = Vec::new();
        for round in 0..ROUNDS {
            let theirs = direct.turn(&request)?.whole;
            let ours = client.turn("crab", &format!("user-{round}"))?.whole;
            ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
        }
        rows.push(match target {
            Some(target) => Row::at_least(what, "", target, ratios),
            None => Row::beside(what, "", ratios),
        });
    }
    Ok(rows)
}
