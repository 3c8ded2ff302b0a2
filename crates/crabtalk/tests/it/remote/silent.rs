//! Ten thousand connections that say nothing.

use super::{Elsewhere, PLAIN, TLS, client_at, token};
use crate::rig::{TestEnv, eventually, has_tools, skipped, within};
use crabtalk_client::{Client, GetStats, RunNews, StreamMsg, stream_event::Event};
use crabtalk_proto::{Client as _, DaemonStats, Ping};
use futures_util::StreamExt;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

/// Machines that connect, each under an address of its own.
const MACHINES: usize = 5;

/// Connections of each of them.
const EACH: usize = 2_000;

/// Descriptors that one of them needs beside these.
const BESIDE: usize = 64;

/// Strangers that the daemon has at a time: 64 of each address. And who is known here,
/// and those whose last word is on its way.
const STRANGERS: u32 = 64 * MACHINES as u32;
const OTHERS: u32 = 64;

/// What they may cost the daemon: some ten kilobytes for each that it has.
const COST: u64 = 32 << 20;

/// Lines that the log may grow by.
const LINES: usize = 100;

/// Opens its connections and begins each with some bytes, then keeps them all.
const SILENT: &str = "use IO::Socket::INET; $| = 1; my @all; my ($at, $own, $many, $bytes) = @ARGV; \
    $SIG{PIPE} = 'IGNORE'; while (@all < $many) { \
    my $s = IO::Socket::INET->new(PeerAddr => $at, LocalAddr => $own) or next; \
    syswrite $s, pack('H*', $bytes); push @all, $s; } print \"all\\n\"; <STDIN>;";

/// A machine that connects, and is done when it says so.
fn machine(env: &TestEnv, number: usize, address: &str, begin: &str) -> Child {
    let mut command = env.program("sh");
    let limit = format!("ulimit -n {}; exec perl -e \"$0\" \"$@\"", EACH + BESIDE);
    command.args(["-c", &limit, SILENT, address]);
    command.arg(format!("127.0.0.{}", number + 2));
    command.args([&EACH.to_string(), begin]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Whether one of them may have so many descriptors.
async fn may_open(test: &str) -> bool {
    let env = TestEnv::new();
    let limit = env.shell("ulimit -H -n").await.ok();
    let limit = limit.trim().parse().unwrap_or(usize::MAX);
    if limit >= EACH + BESIDE {
        return true;
    }
    let reason = format!("a process may have {limit} descriptors, and needs {EACH}");
    skipped(test, &reason);
    false
}

async fn stats(owner: &Client) -> DaemonStats {
    owner.call(GetStats::default()).await.unwrap()
}

/// A run of somebody who was here before, heard to its end.
async fn told(phone: Client, content: String) -> String {
    let mut run = phone.stream(StreamMsg {
        content,
        ..StreamMsg::default()
    });
    let mut said = String::new();
    while let Some(news) = within("the next word", run.next()).await {
        if let RunNews::Event(event) = news.unwrap()
            && let Some(Event::Chunk(chunk)) = event.event
        {
            said.push_str(&chunk.content);
        }
    }
    said
}

/// What a machine begins with, in hexadecimal digits: nothing, half a frame's
/// length, or the beginning of a handshake.
async fn say_nothing(config: &str, begins: [&str; MACHINES]) {
    let elsewhere = Elsewhere::with(config).await;
    let owner = elsewhere.owner();
    let made = elsewhere.token(token("phone", "talk", &[])).await;
    let address = &made.listen[0];
    let phone = client_at(address, &made);
    // Whatever is needed once is there.
    told(phone.clone(), "good day".into()).await;
    let before = stats(&owner).await.rss_bytes;
    // But for who comes in: that is this test's own doing.
    let lines = || {
        let log = elsewhere.daemon.stderr();
        log.lines()
            .filter(|line| !line.contains("a client authenticated"))
            .count()
    };
    let lines_before = lines();

    let content: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
    let content = content.join(" ");
    let mut telling = tokio::task::JoinSet::new();
    telling.spawn(told(phone.clone(), format!("/slow 20 {content}")));
    let mut machines = Vec::new();
    let mut ready = tokio::task::JoinSet::new();
    for (number, begin) in begins.into_iter().enumerate() {
        let mut machine = machine(&elsewhere.env, number, address, begin);
        let mut lines = BufReader::new(machine.stdout.take().unwrap()).lines();
        machines.push(machine);
        ready.spawn(async move {
            assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("all"));
        });
    }
    // Meanwhile everybody is answered: over the socket, on a connection that is
    // open, and on new ones of who has a token.
    let mut kept = phone.connect().await.unwrap();
    let (mut most, mut peak) = (0, 0);
    let mut turn = async || {
        let now = stats(&owner).await;
        (most, peak) = (most.max(now.connections), peak.max(now.rss_bytes));
        within("a kept connection", kept.ping(Ping {}))
            .await
            .unwrap();
        let mut new = within("a new connection", phone.connect()).await.unwrap();
        new.ping(Ping {}).await.unwrap();
    };
    let mut connected = 0;
    while connected < MACHINES {
        turn().await;
        let next = tokio::time::timeout(std::time::Duration::from_millis(50), ready.join_next());
        if let Ok(done) = next.await {
            done.unwrap().unwrap();
            connected += 1;
        }
    }
    for _ in 0..20 {
        turn().await;
    }
    let said = within("the run", telling.join_next())
        .await
        .unwrap()
        .unwrap();
    assert!(said.contains(&content), "{said}");
    assert!(most <= STRANGERS + OTHERS, "{most} connections");
    let cost = peak.saturating_sub(before);
    // All are there still, and are the daemon's no more.
    let few = eventually("the silent ones to be closed", async || {
        let now = stats(&owner).await;
        (now.connections <= 8).then_some(now)
    })
    .await;
    assert!(machines.iter_mut().all(|m| m.try_wait().unwrap().is_none()));
    let grown = lines() - lines_before;
    println!(
        "{} KiB before, {} with {most} connections, {} afterwards; {grown} lines of log",
        before >> 10,
        peak >> 10,
        few.rss_bytes >> 10,
    );
    assert!(cost <= COST, "{cost} bytes more than {before}");
    assert!(few.rss_bytes <= before + COST / 2, "{few:?}");
    assert!(grown <= LINES, "{grown} lines");
    drop(machines);
}

#[tokio::test]
async fn ten_thousand_that_say_nothing_cost_little_and_hold_up_nobody() {
    const NAME: &str = "ten_thousand_that_say_nothing_cost_little_and_hold_up_nobody";
    if has_tools(NAME, &["perl"]) && may_open(NAME).await {
        say_nothing(PLAIN, ["", "0000", "", "00001000c20c", ""]).await;
    }
}

#[tokio::test]
async fn ten_thousand_handshakes_that_stall_hold_up_nobody() {
    const NAME: &str = "ten_thousand_handshakes_that_stall_hold_up_nobody";
    if has_tools(NAME, &["perl"]) && may_open(NAME).await {
        let hello = "160301020001000100";
        say_nothing(TLS, ["", hello, "16", hello, "00"]).await;
    }
}
