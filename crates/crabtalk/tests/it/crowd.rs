//! One process cannot take all connections (WIRE-9).

use crate::rig::{TestEnv, eventually, has_tools, within};
use crabtalk_proto::{Client, Ping};
use std::process::Stdio;
use tokio::process::Child;

/// Opens connections until one is refused, and keeps them.
const GREEDY: &str = "use IO::Socket::UNIX; $| = 1; $SIG{PIPE} = 'IGNORE'; my @all; \
    while (1) { my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or next; \
    select undef, undef, undef, 0.01; \
    syswrite $s, pack('N', 3).\"\\xf2\\x01\\x00\"; my $got = sysread $s, my $answer, 5; \
    if (!$got || substr($answer, 4) eq \"\\x0a\") { print scalar(@all), \"\\n\"; select undef, undef, undef, 0.05; next } \
    push @all, $s; }";

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

#[tokio::test]
async fn one_process_does_not_get_all_connections() {
    if !has_tools("one_process_does_not_get_all_connections", &["perl"]) {
        return;
    }
    let env = TestEnv::new();
    env.config("[limits]\nconnections = 64\n");
    let _daemon = env.daemon().await;
    let (mut greedy, mut count) = flood(&env, GREEDY);
    let got = within("a refusal", count.next_line()).await.unwrap();
    assert_eq!(got.as_deref(), Some("56"));
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
