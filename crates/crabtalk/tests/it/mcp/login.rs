//! Logins to MCP servers (OAuth), with a strict authorization server on loopback.

use super::{allowing, comes_to_be, components, server, stream_to_end, tool};
use crate::rig::{Daemon, TestEnv, eventually, has_tools, within};
use crabtalk_proto::ToolResultEvent;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

/// A server that demands a login.
struct Tickets {
    _child: Child,
    port: u16,
}

impl Tickets {
    async fn start(env: &TestEnv) -> Self {
        let program = PathBuf::from(server()).with_file_name("auth_server.py");
        let file = env.root().join("tickets.port");
        let mut command = env.program("python3");
        command.arg(program).arg(&file).stderr(Stdio::inherit());
        let child = command.spawn().unwrap();
        let port = eventually("the server's port", async || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.lines().next()?.parse().ok()
        });
        Self {
            _child: child,
            port: port.await,
        }
    }

    /// Starts the server, and a daemon without a login to it.
    async fn and_daemon(env: &TestEnv) -> (Self, Daemon) {
        allowing(env);
        let tickets = Self::start(env).await;
        env.config(&tickets.config(""));
        let daemon = env.daemon().await;
        comes_to_be(env, "tickets", "failed").await;
        (tickets, daemon)
    }

    fn config(&self, more: &str) -> String {
        let port = self.port;
        format!("[mcp.tickets]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{more}\n")
    }

    /// Sends a control request and returns the server's counts.
    async fn control(&self, query: &str) -> Value {
        let (_, body) = get(&format!("http://127.0.0.1:{}/control?{query}", self.port)).await;
        serde_json::from_str(&body).unwrap()
    }
}

/// Sends a GET request and returns the redirect's target and the body.
async fn get(address: &str) -> (String, String) {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let location = head
        .lines()
        .find_map(|line| line.strip_prefix("Location: "));
    (location.unwrap_or_default().to_owned(), body.to_owned())
}

/// Starts `crabtalk mcps login tickets`; returns the address that a person opens.
async fn begin(env: &TestEnv) -> (Child, String) {
    let mut command = env.program(crate::rig::CRABTALK);
    command
        .args(["--json", "mcps", "login", "tickets"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within("the address", lines.next_line()).await.unwrap();
    let Some(line) = line else {
        let ended = child.wait_with_output().await.unwrap();
        panic!("{}", String::from_utf8_lossy(&ended.stderr));
    };
    let said: Value = serde_json::from_str(&line).unwrap();
    // The rest of its output is read later.
    let mut rest = child;
    rest.stdout = Some(lines.into_inner().into_inner());
    (rest, said["address"].as_str().unwrap().to_owned())
}

/// Completes a login like a person with a browser.
async fn log_in(env: &TestEnv) {
    let (child, address) = begin(env).await;
    let (back, body) = get(&address).await;
    assert!(!back.is_empty(), "{body}");
    let (_, page) = get(&back).await;
    assert!(page.contains("You are logged in to tickets"), "{page}");
    let ended = within("the command", child.wait_with_output())
        .await
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

/// Calls a tool of the server, which may be allowed to fail.
async fn call(env: &TestEnv, text: &str) -> ToolResultEvent {
    super::call(env, "tickets__echo", json!({"text": text})).await
}

fn kept(env: &TestEnv) -> PathBuf {
    env.home.join("state/oauth/tickets.json")
}

#[tokio::test]
async fn person_logs_in_with_a_browser_and_logs_out() {
    if !has_tools("person_logs_in_with_a_browser_and_logs_out", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let tickets = Tickets::start(&env).await;
    env.config(&tickets.config(""));
    let daemon = env.daemon().await;
    let failed = comes_to_be(&env, "tickets", "failed").await;
    let mends = "it needs a login: run `crabtalk mcps login tickets`";
    assert_eq!(failed.error, mends);
    let tested = env.run(&["mcps", "test", "tickets"]).await;
    assert!(tested.stderr.contains(mends), "{}", tested.stderr);
    // A run also reports it.
    let said = call(&env, "a").await;
    assert!(said.is_error, "{said:?}");

    log_in(&env).await;
    comes_to_be(&env, "tickets", "connected").await;
    assert_eq!(call(&env, "hello").await.output, "hello");
    let mode = std::fs::metadata(kept(&env)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let counts = tickets.control("state").await;
    assert_eq!(
        (&counts["registered"], &counts["exchanged"]),
        (&json!(1), &json!(1))
    );

    // The login survives a restart and is never shown.
    daemon.kill().await;
    let daemon = env.daemon().await;
    comes_to_be(&env, "tickets", "connected").await;
    let shown = env.run(&["--json", "mcps"]).await.stdout;
    let log = std::fs::read_to_string(env.home.join("logs/daemon.log")).unwrap_or_default();
    for text in [shown, log, daemon.stderr()] {
        assert!(!text.contains("at-") && !text.contains("rt-"), "{text}");
    }

    let out = env.run(&["mcps", "logout", "tickets"]).await;
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(!kept(&env).exists());
    comes_to_be(&env, "tickets", "failed").await;
    let again = env.run(&["mcps", "logout", "tickets"]).await;
    assert!(again.stderr.contains("not logged in"), "{}", again.stderr);
}

#[tokio::test]
async fn tokens_are_renewed_once_and_revocation_is_named() {
    if !has_tools(
        "tokens_are_renewed_once_and_revocation_is_named",
        &["python3"],
    ) {
        return;
    }
    let env = TestEnv::new();
    let (tickets, _daemon) = Tickets::and_daemon(&env).await;
    log_in(&env).await;
    comes_to_be(&env, "tickets", "connected").await;

    // Eight concurrent calls renew a revoked token once.
    tickets.control("revoke=access").await;
    let calls: Vec<String> = (0..8)
        .map(|at| format!("/tool tickets__echo {}", json!({"text": format!("{at}")})))
        .collect();
    let events = stream_to_end(&env, super::say(calls.join("\n"))).await;
    let results: Vec<ToolResultEvent> = events
        .into_iter()
        .filter_map(|event| match event.event {
            Some(crabtalk_proto::stream_event::Event::ToolResult(result)) => Some(result),
            _ => None,
        })
        .collect();
    assert!(
        results.len() == 8 && results.iter().all(|r| !r.is_error),
        "{results:?}"
    );
    let counts = tickets.control("state").await;
    assert_eq!(
        (&counts["renewed"], &counts["reused"]),
        (&json!(1), &json!(0))
    );

    // After a revoked login, a person must log in again.
    tickets.control("revoke=all").await;
    let said = stream_to_end(&env, tool("tickets__echo", json!({"text": "x"}))).await;
    let said = super::result(&said);
    assert!(said.is_error, "{said:?}");
    assert!(
        said.output.contains("`crabtalk mcps login tickets`"),
        "{said:?}"
    );
    let failed = comes_to_be(&env, "tickets", "failed").await;
    assert!(
        failed.error.contains("crabtalk mcps login tickets"),
        "{failed:?}"
    );
    log_in(&env).await;
    comes_to_be(&env, "tickets", "connected").await;
    assert_eq!(call(&env, "again").await.output, "again");
}

#[tokio::test]
async fn refused_logins_change_nothing() {
    if !has_tools("refused_logins_change_nothing", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    let tickets = Tickets::start(&env).await;
    let keyed = "headers = { Authorization = \"Bearer x\" }\n[mcp.files]\ncommand = \"cat\"";
    env.config(&tickets.config(keyed));
    let _daemon = env.daemon().await;
    for (name, why) in [
        ("tickets", "headers with credentials"),
        ("files", "only servers with a url"),
        ("nobody", "unknown MCP server"),
    ] {
        let said = env.run(&["mcps", "login", name]).await;
        assert_ne!(said.code, Some(0));
        assert!(said.stderr.contains(why), "{name}: {}", said.stderr);
    }
    let failed = comes_to_be(&env, "tickets", "failed").await;
    assert!(failed.error.contains("headers"), "{failed:?}");

    env.config(&tickets.config(""));
    assert_eq!(env.run(&["daemon", "reload"]).await.code, Some(0));
    eventually("the server without a key", async || {
        let all = components(&env).await;
        all.into_iter().find(|one| one.error.contains("mcps login"))
    })
    .await;
    let (child, address) = begin(&env).await;
    let of = |name: &str| {
        let (_, query) = address.split_once('?').unwrap();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    let back = of("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    // Requests with a guessed state are refused.
    let (_, page) = get(&format!("{back}?code=x&state=guessed")).await;
    assert_eq!(page, "There is nothing here.");
    let state = of("state");
    // So are requests of agents' commands, even with the right state.
    let place = back.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = place.split_once('/').unwrap();
    let script = format!(
        "ulimit -x 7; exec 3<>/dev/tcp/127.0.0.1/{port}; \
         printf '%s\\r\\n\\r\\n' 'GET /{path}?error=x&state={state} HTTP/1.1' >&3; cat <&3"
    );
    let marked = env.program("bash").args(["-c", &script]).output().await;
    assert!(marked.unwrap().stdout.is_empty());
    // The person refuses.
    let (_, page) = get(&format!("{back}?error=access_denied&state={state}")).await;
    assert!(page.contains("failed"), "{page}");
    let ended = within("the command", child.wait_with_output())
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        !ended.status.success() && said.contains("access_denied"),
        "{said}"
    );
    assert!(!kept(&env).exists());
}
