//! Conversations that have grown.

use super::{SHORT, millis};
use crate::bench::client::Client;
use crate::bench::daemon::{Daemon, Home};
use crate::bench::direct::{Direct, request};
use crate::bench::server::ModelServer;
use crate::bench::stats::Row;
use anyhow::Context;
use std::time::Duration;

/// Messages of a working history that was never compacted.
const MESSAGES: usize = 10_000;

/// Messages of a usual one.
const USUAL: usize = 100;

/// Turns of one conversation: each makes it longer.
const TURNS: u32 = 20;

/// Conversations of a kind: enough turns in all for a clock of 10 ms.
const ALIKE: u32 = 20;

const ROUNDS: usize = 5;

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
