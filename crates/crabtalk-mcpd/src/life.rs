//! One start of a server after another, with pauses that grow.
//!
//! Invariant: the port file is there while a server answers and no longer. A server
//! that ends takes its sessions along, so that whoever had one begins anew with the
//! next start and sees what that offers.

use crate::bridge::{Below, Bridge, Sessions};
use crate::settings::Server;
use anyhow::{Context, bail};
use crabtalk_component::{Component, Home, Mcp, McpService, Service, axum, run_mcp};
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

/// How long a server may take to say who it is: those that are fetched first by their
/// starter (`npx`) take longest.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Pauses between starts: from the first to the longest, each twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Who ran for this long begins with the first pause again.
const STEADY: Duration = Duration::from_secs(60);

/// How long a server may go on that says nothing any more.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A line of what a server complains of is logged up to here.
const MAX_LINE_BYTES: u64 = 4 * 1024;

/// Keeps a server running until `stop`.
pub(crate) async fn run(
    component: &Component,
    server: &Server,
    home: Home,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let children = Children::adopt().context("cannot watch over processes")?;
    let program = GuardianCommand::own().context("cannot tell where this program lies")?;
    let guardian = Guardian::new(program, children);
    let mut pause = FIRST_PAUSE;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let lived = tokio::select! {
            lived = live(component, server, &home, &guardian, &stop) => lived,
            // Also while it is not ready yet.
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
        tracing::warn!(
            server = component.name(),
            ?pause,
            "{why}; it is started again"
        );
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    guardian.shut_down().await;
    Ok(())
}

/// A while after the stop, within which a server that serves ends by itself.
async fn not_ready_in(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
}

/// One start, to the server's end.
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
        // A server may close this stream and go on.
        std::future::pending::<()>().await;
    };
    tokio::pin!(complaints);
    let ready = timeout(READY_WITHIN, serve_client(below, (output, input)));
    let running = tokio::select! {
        ready = ready => ready
            .context("it does not say who it is")?
            .context("it does not speak the protocol")?,
        end = child.wait() => bail!("{}", told(&end)),
        () = &mut complaints => return Ok(()),
        () = stop.cancelled() => return Ok(()),
    };
    let ended = stop.child_token();
    let bridge = Bridge::new(running.peer().clone(), sessions)?;
    let service = Bridged {
        component: component.clone(),
        bridge,
    };
    let serving = run_mcp(service, home.clone(), ended.clone());
    tokio::pin!(serving);
    let end = tokio::select! {
        served = &mut serving => return served,
        end = ends(&mut child, running) => end,
        () = &mut complaints => return Ok(()),
    };
    ended.cancel();
    // Its port file goes first, and what was being answered gets an error.
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

/// Waits for the end of a server: its process's, or that of what it says.
async fn ends(child: &mut Child, running: RunningService<RoleClient, Below>) -> String {
    let closed = running.waiting();
    tokio::pin!(closed);
    tokio::select! {
        end = child.wait() => told(&end),
        // Its output closes as it ends; its end says more.
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
        ExitStatus::NotStarted { why } => format!("it does not start: {why}"),
        ExitStatus::GuardianKilled => "its guardian was killed".to_owned(),
        ExitStatus::Lost { why } => format!("it is lost: {why}"),
    }
}

/// Logs what a server complains of, line by line.
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

/// What is served while a server runs.
struct Bridged {
    component: Component,
    bridge: Bridge,
}

impl Service for Bridged {
    fn component(&self) -> &Component {
        &self.component
    }

    async fn serve(self, home: Home, stop: CancellationToken) -> anyhow::Result<()> {
        run_mcp(self, home, stop).await
    }
}

impl McpService for Bridged {
    fn router(&self, stop: CancellationToken) -> axum::Router {
        let bridge = self.bridge.clone();
        Mcp::new(self.component.clone(), move || bridge.clone()).router(stop)
    }
}
