//! Logins to servers on other machines (OAuth), against an authorization server on
//! the loopback that is stricter than most.

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

/// A server that wants a login.
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

    /// It, and a daemon that has nobody's login to it yet.
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

    /// Asks it for something that only tests want, and gives its counts.
    async fn control(&self, query: &str) -> Value {
        let (_, body) = get(&format!("http://127.0.0.1:{}/control?{query}", self.port)).await;
        serde_json::from_str(&body).unwrap()
    }
}

/// Gets an address of the loopback, without following it: where it points to, and
/// the body.
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

/// `crabtalk mcps login tickets`, up to the address that a person opens.
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
    // Its output goes on being read, so that it can say how it ended.
    let mut rest = child;
    rest.stdout = Some(lines.into_inner().into_inner());
    (rest, said["address"].as_str().unwrap().to_owned())
}

/// The same to its end: the person says yes, and the browser goes back.
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
    if !has_tools("login", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let tickets = Tickets::start(&env).await;
    env.config(&tickets.config(""));
    let daemon = env.daemon().await;
    let failed = comes_to_be(&env, "tickets", "failed").await;
    let mends = "it wants a login: `crabtalk mcps login tickets`";
    assert_eq!(failed.error, mends);
    let tested = env.run(&["mcps", "test", "tickets"]).await;
    assert!(tested.stderr.contains(mends), "{}", tested.stderr);
    // A run is told, too.
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

    // It is remembered, and shown nowhere.
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
async fn tokens_are_renewed_once_and_a_revoked_login_is_named() {
    if !has_tools("login", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    let (tickets, _daemon) = Tickets::and_daemon(&env).await;
    log_in(&env).await;
    comes_to_be(&env, "tickets", "connected").await;

    // The server takes the token no more, and eight calls at once find out.
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
    let counts = tickets.control("lasts=1").await;
    assert_eq!(
        (&counts["renewed"], &counts["reused"]),
        (&json!(1), &json!(0))
    );

    // Tokens that are too old are renewed before they are sent.
    tickets.control("revoke=access").await;
    for text in ["a", "b"] {
        assert_eq!(call(&env, text).await.output, text);
    }
    let counts = tickets.control("lasts=3600").await;
    assert!(counts["renewed"].as_u64() >= Some(3), "{counts}");
    assert_eq!(counts["reused"], 0, "{counts}");

    // A login that was taken back is one that a person has to give again.
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
async fn next_login_requests_more_scopes() {
    if !has_tools("login", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    let (tickets, _daemon) = Tickets::and_daemon(&env).await;
    log_in(&env).await;
    comes_to_be(&env, "tickets", "connected").await;
    tickets.control("scope=admin").await;
    let refused = call(&env, "x").await;
    assert!(refused.is_error, "{refused:?}");
    assert!(
        refused.output.contains("does not allow this"),
        "{refused:?}"
    );
    assert!(
        refused.output.contains("`crabtalk mcps login tickets`"),
        "{refused:?}"
    );
    log_in(&env).await;
    comes_to_be(&env, "tickets", "connected").await;
    assert_eq!(call(&env, "x").await.output, "x");
}

#[tokio::test]
async fn refused_logins_change_nothing() {
    if !has_tools("login", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    let tickets = Tickets::start(&env).await;
    let keyed = "headers = { Authorization = \"Bearer x\" }\n[mcp.files]\ncommand = \"cat\"";
    env.config(&tickets.config(keyed));
    let _daemon = env.daemon().await;
    for (name, why) in [
        ("tickets", "headers of the configuration"),
        ("files", "only servers at an address"),
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
    // So are processes with the mark of agents' commands, whatever they send.
    let place = back.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = place.split_once('/').unwrap();
    let script = format!(
        "ulimit -x 7; exec 3<>/dev/tcp/127.0.0.1/{port}; \
         printf '%s\\r\\n\\r\\n' 'GET /{path}?error=x&state={state} HTTP/1.1' >&3; cat <&3"
    );
    let marked = env.program("bash").args(["-c", &script]).output().await;
    assert!(marked.unwrap().stdout.is_empty());
    // The person says no.
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

#[tokio::test]
async fn client_credentials_log_in_and_stay_hidden() {
    if !has_tools("login", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let tickets = Tickets::start(&env).await;
    let file = env.root().join("secret");
    std::fs::write(&file, "s3cret/+\n").unwrap();
    let alone = format!(
        "[mcp.tickets.oauth]\ngrant = \"client_credentials\"\nclient_id = \"by:hand\"\nclient_secret_file = \"{}\"",
        file.display()
    );
    env.config(&tickets.config(&alone));
    let daemon = env.daemon().await;
    comes_to_be(&env, "tickets", "connected").await;
    assert_eq!(call(&env, "a").await.output, "a");
    assert_eq!(tickets.control("state").await["alone"], 1);
    // What is taken back is fetched again, and so is what ends.
    tickets.control("revoke=access").await;
    assert_eq!(call(&env, "b").await.output, "b");
    assert_eq!(tickets.control("lasts=1").await["alone"], 2);
    tickets.control("revoke=access").await;
    assert_eq!(call(&env, "c").await.output, "c");
    assert_eq!(call(&env, "d").await.output, "d");
    let fetched = tickets.control("lasts=3600").await["alone"].clone();
    assert!(fetched.as_u64() >= Some(4), "{fetched}");
    // No person can help, and none is asked to.
    let login = env.run(&["mcps", "login", "tickets"]).await;
    assert!(
        login.stderr.contains("client credentials"),
        "{}",
        login.stderr
    );
    let out = env.run(&["mcps", "logout", "tickets"]).await;
    assert_eq!(out.code, Some(0), "{}", out.stderr);

    // A client that is refused is named, and its server is tried again.
    tickets.control("secret=other&revoke=access").await;
    let refused = eventually("the refusal", async || {
        let known = components(&env).await.remove(0);
        let answer = call(&env, "e").await;
        (answer.is_error && known.error.contains("could not log in")).then_some(answer)
    })
    .await;
    let shown = env.run(&["--json", "mcps"]).await.stdout;
    let tested = env.run(&["mcps", "test", "tickets"]).await;
    let config = env.run(&["--json", "config", "show"]).await;
    let log = std::fs::read_to_string(env.home.join("logs/daemon.log")).unwrap_or_default();
    let all = [
        shown,
        tested.stdout,
        tested.stderr,
        config.stdout,
        log,
        daemon.stderr(),
        refused.output,
    ];
    for text in all {
        for secret in ["s3cret", "at-"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    tickets.control("secret=s3cret/%2B").await;
    eventually("another try", async || {
        let answer = call(&env, "f").await;
        (answer.output == "f").then_some(())
    })
    .await;
}
