//! Conversations that have grown.

use super::{SHORT, millis};
use crate::bench::client::Client;
use crate::bench::daemon::{Daemon, Home};
use crate::bench::direct::{Direct, request};
use crate::bench::server::{ModelServer, Plan};
use crate::bench::stats::Row;
use anyhow::Context;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::time::Duration;

/// Archived bytes.
const ARCHIVED: u64 = 500_000_000;

/// Messages of a working history that was never compacted.
const MESSAGES: usize = 10_000;

/// Messages of a usual one.
const USUAL: usize = 100;

/// Daemons that open the conversation.
const OPENS: usize = 7;

/// Turns after the first.
const LATER: usize = 40;

/// Turns of one conversation: each makes it longer.
const TURNS: u32 = 20;

/// Conversations of a kind: enough turns in all for a clock of 10 ms.
const ALIKE: u32 = 20;

const ROUNDS: usize = 5;

/// As in the relay's case: syncs run beside the model.
const PLAN: Plan = Plan {
    latency_us: 10_000,
    group: 1,
    ..SHORT
};

fn message(role: &str, number: usize) -> String {
    // A paragraph, as people and models write them.
    let text = "It was said before, at length, and with many words that say little. ".repeat(6);
    format!(
        "{{\"role\":\"{role}\",\"content\":\"{number}: {text}\",\"at\":\"2026-01-01T00:00:00Z\"}}\n"
    )
}

fn pair(number: usize) -> String {
    message("user", number) + &message("assistant", number)
}

/// A conversation with so many bytes behind a marker.
fn archived(home: &Home, sender: &str) -> anyhow::Result<()> {
    let path = home.conversation("crab", sender, "")?;
    let mut log = BufWriter::new(OpenOptions::new().append(true).open(path)?);
    let (mut bytes, mut number) = (0, 0);
    while bytes < ARCHIVED {
        let pair = pair(number);
        log.write_all(pair.as_bytes())?;
        bytes += pair.len() as u64;
        number += 1;
    }
    log.flush()?;
    let marker = log.get_ref().metadata()?.len();
    writeln!(
        log,
        "{{\"compact\":\"Much was said.\",\"title\":\"talk\",\
         \"archived_at\":\"2026-01-01T00:00:00Z\",\"prev\":0,\"messages\":{}}}",
        2 * number
    )?;
    // As a compaction leaves it: without its state behind it a marker is one that a
    // crash cut off, and whatever lies before is searched for that state.
    writeln!(
        log,
        "{{\"meta\":{{\"title\":\"talk\",\"cwd\":\"\",\"uptime_secs\":0,\"last_run\":0,\
         \"requests\":[]}},\"prev\":{marker},\"messages\":{}}}",
        2 * number
    )?;
    log.write_all(pair(0).as_bytes())?;
    Ok(log.flush()?)
}

/// Milliseconds by which the first chunk comes later for one than for another.
fn more_than(client: &mut Client, one: &str, other: &str) -> anyhow::Result<f64> {
    let one = client.turn("crab", one)?.first;
    let other = client.turn("crab", other)?.first;
    Ok(millis(one) - millis(other))
}

pub(super) fn archive(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let home = Home::new(server, "step", &[("crab", PLAN)])?;
    archived(&home, "old")?;
    let (mut extra, mut peaks, mut unindexed) = (Vec::new(), Vec::new(), Vec::new());
    for open in 0..OPENS {
        let daemon = home.start()?;
        let mut client = daemon.client()?;
        client.turn("crab", "warm")?;
        let short = pair(0);
        let sender = format!("short-{open}");
        home.conversation("crab", &sender, &short)?;
        let of_short = client.turn("crab", &sender)?.first;
        let of_old = client.turn("crab", "old")?.first;
        extra.push(millis(of_old) - millis(of_short));
        for _ in 0..LATER / OPENS {
            unindexed.push(more_than(&mut client, "old", &sender)?);
        }
        peaks.push(daemon.peak_mib()?);
        daemon.stop()?;
    }
    let daemon = home.start()?;
    let mut client = daemon.client()?;
    while !client.searches_all("crab", "old")? {}
    client.turn("crab", "short-0")?;
    let mut later = Vec::new();
    for _ in 0..LATER {
        later.push(more_than(&mut client, "old", "short-0")?);
    }
    Ok(vec![
        Row::at_most(
            "500 MB of archives: added to the first chunk on opening",
            "ms",
            3.0,
            extra,
        ),
        Row::at_most("500 MB of archives: peak memory", "MiB", 16.0, peaks),
        Row::at_most(
            "500 MB of archives: added to later first chunks",
            "ms",
            0.1,
            later,
        ),
        Row::beside(
            "the same, before they are indexed, every archived turn with a word that was asked for",
            "ms",
            unindexed,
        ),
    ])
}

/// Time of this thread on processors.
fn own_cpu() -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().context("a strange schedstat")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Milliseconds of the daemon on processors for a turn with so much history.
fn cpu_of_turn(
    home: &Home,
    daemon: &Daemon,
    client: &mut Client,
    messages: usize,
    round: usize,
) -> anyhow::Result<f64> {
    let lines: String = (0..messages / 2).map(pair).collect();
    let sender = |number| format!("of-{messages}-{round}-{number}");
    for number in 0..ALIKE {
        home.conversation("crab", &sender(number), &lines)?;
        client.turn("crab", &sender(number))?;
    }
    let before = daemon.cpu()?;
    for turn in 0..TURNS * ALIKE {
        client.turn("crab", &sender(turn % ALIKE))?;
    }
    Ok(millis((daemon.cpu()? - before) / (TURNS * ALIKE)))
}

pub(super) fn history(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let home = Home::new(server, "never", &[("crab", SHORT)])?;
    let daemon = home.start()?;
    let mut client = daemon.client()?;
    let mut direct = Direct::connect(&server.address)?;
    let (mut of_short, mut of_usual, mut of_long, mut of_posts) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        let mut cpu = |messages| cpu_of_turn(&home, &daemon, &mut client, messages, round);
        of_short.push(cpu(2)?);
        of_usual.push(cpu(USUAL)?);
        of_long.push(cpu(MESSAGES)?);
        let ready = request(SHORT, &server.last_body()?);
        let before = own_cpu()?;
        for _ in 0..TURNS * ALIKE {
            direct.turn(&ready)?;
        }
        of_posts.push(millis((own_cpu()? - before) / (TURNS * ALIKE)));
    }
    let row = |what: &str, times| Row::beside(format!("CPU of a turn, {what}"), "ms", times);
    Ok(vec![
        row("a short history", of_short),
        row("100 messages of history", of_usual),
        row("10,000 messages of history", of_long),
        row("the same, only posting the ready bytes", of_posts),
    ])
}
