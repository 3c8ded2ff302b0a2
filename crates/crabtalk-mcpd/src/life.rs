//! Restarts a server with growing delays.
//!
//! Invariant: the port file exists only while a server answers. Sessions end with their
//! server, so that clients reconnect and list the tools of the next one.

use crate::bridge::{Below, Bridge, Sessions};
use crate::settings::Server;
use anyhow::{Context, bail};
use crabtalk_component::{Component, Home, Mcp, run_mcp};
use crabtalk_guardian::{
    Child, Children, Command, ExitStatus, Guardian, GuardianCommand, Run, Streams,
    child_environment,
};
use rmcp::service::{RoleClient, RunningService, serve_client};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Timeout of a handshake; the server may have to be downloaded first (`npx`).
const READY_WITHIN: Duration = Duration::from_secs(120);

/// The first delay between starts, and the longest; each is twice its predecessor.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A server that ran for this long resets the delay.
const STEADY: Duration = Duration::from_secs(60);

/// Time for a server to end after it closed its output.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Longest logged line of a server's standard error.
const MAX_LINE_BYTES: u64 = 4 * 1024;

/// Keeps a server running until `stop`.
pub(crate) async fn run(
    component: &Component,
    server: &Server,
    home: Home,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let children = Children::adopt().context("cannot adopt child processes")?;
    let program = GuardianCommand::own().context("cannot find the path of this program")?;
    let guardian = Guardian::new(program, children);
    let mut pause = FIRST_PAUSE;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let lived = tokio::select! {
            lived = live(component, server, &home, &guardian, &stop) => lived,
            () = not_ready_in(&stop) => Ok(()),
        };
        if stop.is_cancelled() {
            break;
        }
        if begun.elapsed() >= STEADY {
            pause = FIRST_PAUSE;
        }
        let why = lived
            .err()
            .map_or_else(|| "it ended".to_owned(), |e| format!("{e:#}"));
        tracing::warn!(server = component.name(), ?pause, "{why}; restarting it");
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    guardian.shut_down().await;
    Ok(())
}

/// Resolves some time after the stop if the server is not ready.
async fn not_ready_in(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
}

/// Runs a server until it ends.
async fn live(
    component: &Component,
    server: &Server,
    home: &Home,
    guardian: &Guardian,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut child = start(server, guardian)?;
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        bail!("it has no streams");
    };
    let sessions = Arc::new(Sessions::default());
    let below = Below::new(Arc::clone(&sessions));
    let complaints = async {
        log(component.name(), errors).await;
        // A server may close its standard error and continue to run.
        std::future::pending::<()>().await;
    };
    tokio::pin!(complaints);
    let ready = timeout(READY_WITHIN, serve_client(below, (output, input)));
    let running = tokio::select! {
        ready = ready => ready
            .context("no handshake in time")?
            .context("it does not speak the protocol")?,
        end = child.wait() => bail!("{}", told(&end)),
        () = &mut complaints => return Ok(()),
        () = stop.cancelled() => return Ok(()),
    };
    let ended = stop.child_token();
    let bridge = Bridge::new(running.peer().clone(), sessions)?;
    let service = Mcp::new(component.clone(), move || bridge.clone());
    let serving = run_mcp(service, home.clone(), ended.clone());
    tokio::pin!(serving);
    let end = tokio::select! {
        served = &mut serving => return served,
        end = ends(&mut child, running) => end,
        () = &mut complaints => return Ok(()),
    };
    ended.cancel();
    // Removes the port file and fails requests in flight.
    serving.await?;
    bail!("{end}")
}

fn start(server: &Server, guardian: &Guardian) -> anyhow::Result<Child> {
    let mut environment = child_environment(std::env::vars_os());
    for (name, value) in &server.env {
        environment.retain(|(known, _)| known != name.as_str());
        environment.push((name.into(), value.into()));
    }
    let home = || std::env::home_dir().filter(|home| home.is_dir());
    let cwd = server.cwd.clone().or_else(home);
    let command = Command {
        run: Run::Program {
            program: server.command.clone(),
            arguments: server.args.clone(),
        },
        environment,
        cwd: cwd.unwrap_or_else(|| "/".into()),
        sandbox: None,
        open_files: None,
    };
    Ok(guardian.spawn(command, Streams::Three)?)
}

/// Waits until a server ends or closes its output.
async fn ends(child: &mut Child, running: RunningService<RoleClient, Below>) -> String {
    let closed = running.waiting();
    tokio::pin!(closed);
    tokio::select! {
        end = child.wait() => told(&end),
        // The output also closes at the end of the process, whose status is more specific.
        _ = &mut closed => match timeout(ENDS_WITHIN, child.wait()).await {
            Ok(end) => told(&end),
            Err(_) => {
                child.kill();
                child.wait().await;
                "it closed its output".to_owned()
            }
        },
    }
}

fn told(end: &ExitStatus) -> String {
    match end {
        ExitStatus::Ended {
            code: Some(code), ..
        } => format!("it ended with code {code}"),
        ExitStatus::Ended {
            signal: Some(signal),
            ..
        } => format!("signal {signal} ended it"),
        ExitStatus::Ended { .. } => "it ended".to_owned(),
        ExitStatus::NotStarted { why } => format!("it cannot be started: {why}"),
        ExitStatus::GuardianKilled => "its guardian was killed".to_owned(),
        ExitStatus::Lost { why } => format!("its state is unknown: {why}"),
    }
}

/// Logs a server's standard error line by line.
async fn log(server: &str, errors: impl AsyncRead + Unpin) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut errors)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(1..) => {
                let said = String::from_utf8_lossy(&line);
                tracing::info!(server, "{}", said.trim_end().escape_debug());
            }
            Ok(0) | Err(_) => return,
        }
    }
}
