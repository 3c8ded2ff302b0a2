//! One process that floods the socket leaves the daemon to others (WIRE-9),
//! and a socket that is removed comes back.

use crate::rig::{TestEnv, eventually, has_tools};
use crabtalk_proto::{Client, Ping};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Child;

/// Connects as fast as it can, and keeps nothing.
const HASTY: &str = "use IO::Socket::UNIX; $| = 1; my $n = 0; \
    while (1) { IO::Socket::UNIX->new(Peer => $ARGV[0]); print \"$n\\n\" if ++$n % 5000 == 0; }";

/// Keeps every connection that it gets, until it gets no more.
const GREEDY: &str = "use IO::Socket::UNIX; $| = 1; my @all; \
    while (1) { my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or next; \
    syswrite $s, pack('N', 3).\"\\xf2\\x01\\x00\"; my $got = sysread $s, my $answer, 5; \
    if (!$got || substr($answer, 4) eq \"\\x0a\") { print scalar(@all), \"\\n\"; select undef, undef, undef, 0.05; next } \
    push @all, $s; }";

/// What a person does not notice.
const SOON: Duration = Duration::from_millis(50);

/// How long a new connection may take behind those that are in line already,
/// on a machine that does much else at the same time.
const IN_LINE: Duration = Duration::from_secs(1);

fn flood(
    env: &TestEnv,
    script: &str,
) -> (
    Child,
    tokio::io::Lines<impl tokio::io::AsyncBufRead + Unpin>,
) {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut command = env.program("perl");
    command.args(["-e", script]).arg(env.socket());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// The middle one of many.
async fn median(count: usize, mut work: impl AsyncFnMut()) -> Duration {
    let mut took = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        work().await;
        took.push(began.elapsed());
    }
    took.sort();
    took[count / 2]
}

#[tokio::test]
async fn a_flood_from_one_process_leaves_others_their_answers() {
    if !has_tools("a_flood_from_one_process", &["perl"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let (mut flood, mut count) = flood(&env, HASTY);
    // It is well under way.
    count.next_line().await.unwrap().unwrap();
    let open = median(51, async || connection.ping(Ping {}).await.unwrap()).await;
    let new = median(11, async || {
        env.connect_silently().await.ping(Ping {}).await.unwrap();
    })
    .await;
    // And still is.
    count.next_line().await.unwrap().unwrap();
    flood.kill().await.unwrap();
    assert!(open < SOON, "{open:?} on an open connection");
    assert!(new < IN_LINE, "{new:?} on a new one");
}

#[tokio::test]
async fn one_process_does_not_get_all_connections() {
    if !has_tools("one_process_does_not_get_all_connections", &["perl"]) {
        return;
    }
    let env = TestEnv::new();
    env.config("[limits]\nconnections = 64\n");
    let _daemon = env.daemon().await;
    let (mut greedy, mut count) = flood(&env, GREEDY);
    let got = count.next_line().await.unwrap().unwrap();
    assert_eq!(got, "56");
    env.connect().await.ping(Ping {}).await.unwrap();
    greedy.kill().await.unwrap();
    eventually("its places to be free", async || {
        let mut all = Vec::new();
        for _ in 0..20 {
            let mut connection = env.connect_silently().await;
            connection.ping(Ping {}).await.ok()?;
            all.push(connection);
        }
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_socket_that_is_removed_is_made_again() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    std::fs::remove_file(env.socket()).unwrap();
    eventually("the socket", async || env.socket().exists().then_some(())).await;
    env.run(&["daemon", "status"]).await.ok();
    env.connect().await.ping(Ping {}).await.unwrap();
    assert!(
        daemon
            .stderr()
            .contains("the socket was gone and has been made again")
    );
}
