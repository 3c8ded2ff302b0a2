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

/// Conversations on disk where lists are what counts.
const CROWD: usize = 100_000;

/// Lives of a daemon with that many, behind each kind of end.
const LIVES: usize = 5;

/// Conversations that a list shows.
const LISTED: u32 = 50;

const LISTS: usize = 25;

/// Daemons whose memory is measured.
const IDLE: usize = 5;

/// A conversation leaves memory five seconds after its last word, and three later at
/// most the daemon looks whether what it needed can go back.
const REST_SECS: u64 = 12;

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
    let mut rows = vec![
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
    ];
    rows.extend(crowd(server)?);
    Ok(rows)
}

/// The first Pong and the first list with very many conversations, behind an orderly end and
/// behind a kill. Each life talks in a conversation that is there and in a new one.
fn crowd(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let home = Home::new(server, "step", &[("crab", SHORT)])?;
    let line = r#"{"role":"user","content":"question","at":"2026-01-01T00:00:00Z"}"#;
    for number in 0..CROWD {
        home.conversation("crab", &format!("user-{number}"), &format!("{line}\n"))?;
    }
    let life = |number: usize| -> anyhow::Result<_> {
        let daemon = home.start()?;
        let mut client = daemon.client()?;
        let (cpu, listed) = (daemon.cpu()?, millis(client.list_latest(LISTED)?));
        let cpu = millis(daemon.cpu()? - cpu);
        for sender in [format!("user-{number}"), format!("new-{number}")] {
            client.turn("crab", &sender)?;
        }
        let pong = millis(daemon.pong);
        Ok((daemon, pong, listed, cpu))
    };
    let mut rows = Vec::new();
    let mut measured = |end: &str, lives: Vec<(f64, f64, f64)>| {
        let of = |one: fn(&(f64, f64, f64)) -> f64| lives.iter().map(one).collect::<Vec<_>>();
        let with = format!("{CROWD} conversations on disk, after {end}");
        rows.push(Row::beside(
            format!("{with}: start to first Pong"),
            "ms",
            of(|it| it.0),
        ));
        rows.push(Row::beside(
            format!("{with}: the latest {LISTED}"),
            "ms",
            of(|it| it.1),
        ));
        rows.push(Row::beside("the same, CPU", "ms", of(|it| it.2)));
    };
    // They were never listed before.
    let (daemon, pong, listed, cpu) = life(0)?;
    let mut client = daemon.client()?;
    let mut search = || Ok::<_, anyhow::Error>(millis(client.search("quest", LISTED)?));
    let first = search()?;
    let again = (0..LISTS)
        .map(|_| search())
        .collect::<Result<Vec<_>, _>>()?;
    daemon.stop()?;
    measured("nothing", vec![(pong, listed, cpu)]);
    let (mut orderly, mut killed) = (Vec::new(), Vec::new());
    for number in 0..LIVES {
        let (daemon, pong, listed, cpu) = life(2 * number + 1)?;
        orderly.push((pong, listed, cpu));
        drop(daemon);
        let (daemon, pong, listed, cpu) = life(2 * number + 2)?;
        killed.push((pong, listed, cpu));
        daemon.stop()?;
    }
    measured("an orderly end", orderly);
    measured("a kill", killed);
    let search = format!("{CROWD} conversations, {LISTED} messages with words that begin so");
    rows.push(Row::beside(
        format!("{search}, searched first"),
        "ms",
        [first],
    ));
    rows.push(Row::at_most("the same, searched again", "ms", 200.0, again));
    Ok(rows)
}

pub(super) fn memory(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let wait = |seconds| std::thread::sleep(std::time::Duration::from_secs(seconds));
    let (mut idle, mut later, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let (mut after, mut at_rest) = (Vec::new(), Vec::new());
    for _ in 0..IDLE {
        let home = Home::new(server, "step", &[("crab", SHORT)])?;
        let daemon = home.start()?;
        idle.push(daemon.rss_mib()?);
        daemon.client()?.turn("crab", "user")?;
        wait(1);
        after.push(daemon.rss_mib()?);
        own.push(daemon.own_mib()?);
        wait(REST_SECS);
        at_rest.push(daemon.rss_mib()?);
        daemon.stop()?;
        let daemon = home.start()?;
        wait(1);
        later.push(daemon.rss_mib()?);
        daemon.stop()?;
    }
    Ok(vec![
        Row::at_most("idle memory, after the first Pong", "MiB", 10.0, idle),
        Row::at_most("idle memory, a second later", "MiB", 10.0, later),
        Row::at_most("idle memory, a second after a run", "MiB", 10.0, after),
        Row::beside("of it the daemon's own data", "MiB", own),
        Row::at_most(
            "idle memory, once the conversation rests",
            "MiB",
            10.0,
            at_rest,
        ),
    ])
}
