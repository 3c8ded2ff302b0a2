//! A server over standard streams as a component: found by its port file, called over
//! HTTP, started again when it ends, and gone with its keeper.

use crabtalk_testkit::tools::has_tools;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);

struct Keeper {
    child: Child,
    home: tempfile::TempDir,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(more: &str) -> Keeper {
    let home = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server.py");
    std::fs::create_dir(home.path().join("config")).expect("made");
    let config = format!(
        "[server.plain]\ncommand = \"python3\"\nargs = [{:?}]\n{more}\n",
        script.display().to_string()
    );
    std::fs::write(home.path().join("config/mcpd.toml"), config).expect("written");
    let log = std::fs::File::create(home.path().join("log")).expect("made");
    let child = Command::new(env!("CARGO_BIN_EXE_crabtalk-mcpd"))
        .args(["plain", "serve"])
        .env("CRABTALK_HOME", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Keeper {
        child: child.expect("it starts"),
        home,
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}

impl Keeper {
    fn announced(&self) -> Option<String> {
        std::fs::read_to_string(self.home.path().join("run/plain.port")).ok()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).expect("there")
    }

    /// A session with the start that is announced now, if it is not this one.
    fn session(&self, but: &str) -> Session {
        let announced = until("the announcement", || {
            self.announced().filter(|announced| announced != but)
        });
        let port = announced.lines().next().and_then(|line| line.parse().ok());
        let mut session = Session {
            port: port.expect("a port"),
            announced,
            id: String::new(),
            told: Value::Null,
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"}});
        session.told = session.request("initialize", hello);
        session.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }
}

struct Session {
    port: u16,
    announced: String,
    id: String,
    told: Value,
}

impl Session {
    /// Sends a message; what comes back is read from the stream.
    fn send(&mut self, message: Value) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let (body, id, port) = (message.to_string(), &self.id, self.port);
        let session = match id.is_empty() {
            true => String::new(),
            false => format!("Mcp-Session-Id: {id}\r\nMcp-Protocol-Version: 2025-06-18\r\n"),
        };
        write!(
            stream,
            "POST /mcp HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        let mut answer = BufReader::new(stream);
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).expect("a head");
            if line.trim().is_empty() {
                return answer;
            }
            if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("mcp-session-id")
            {
                self.id = value.trim().to_owned();
            }
        }
    }

    /// The messages up to the response to a request, and the response.
    fn listen(&mut self, message: Value, mut said: impl FnMut(&mut Self, &Value)) -> Value {
        let answer = self.send(message);
        for line in answer.lines().map_while(Result::ok) {
            let data = line.strip_prefix("data:").unwrap_or(&line).trim();
            let Ok(message) = serde_json::from_str::<Value>(data) else {
                continue;
            };
            if message.get("method").is_none() {
                return message;
            }
            said(self, &message);
        }
        Value::Null
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.listen(message, |_, _| {})
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }
}

fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}

fn is_gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.as_deref().ok().and_then(|stat| stat.rsplit_once(") "));
    state.is_none_or(|(_, state)| state.starts_with(['Z', 'X']))
}

/// The server's process and one that it left to itself.
fn pids(session: &mut Session) -> Vec<i32> {
    let answer = session.call("pid", json!({}));
    let numbers = text(&answer)
        .split(' ')
        .map(|pid| pid.parse().expect("a number"));
    numbers.collect()
}

#[test]
fn a_server_is_called_as_it_is() {
    if !has_tools("a_server_is_called_as_it_is", &["python3"]) {
        return;
    }
    let keeper = start("env = { ENDING = \"!\" }");
    let mut session = keeper.session("");
    let told = session.told["result"].clone();
    assert_eq!(told["serverInfo"]["name"], "plain");
    assert_eq!(
        (
            &told["instructions"],
            &told["capabilities"]["tools"]["listChanged"]
        ),
        (&json!("Be kind."), &json!(true))
    );
    let tools = session.request("tools/list", json!({}));
    assert_eq!(
        tools["result"]["tools"].as_array().map(Vec::len),
        Some(7),
        "{tools}"
    );
    let echo = session.call("echo", json!({"text": "日本"}));
    assert_eq!(text(&echo), "日本!");
    let wrong = session.call("nothing", json!({}));
    assert_eq!(wrong["error"]["code"], -32602, "its own error: {wrong}");
    let none = session.request("prompts/list", json!({}));
    assert_eq!(none["error"]["message"], "no prompts/list");

    // Progress comes under the session's own name for it.
    let mut steps = Vec::new();
    let message = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params":
        {"name": "steps", "arguments": {}, "_meta": {"progressToken": "mine"}}});
    let done = session.listen(message, |_, said| {
        steps.push((
            said["params"]["progressToken"].clone(),
            said["params"]["message"].clone(),
        ));
    });
    assert_eq!(text(&done), "done");
    let want = [0, 1, 2].map(|step| (json!("mine"), json!(format!("step {step}"))));
    assert_eq!(steps, want, "{}", keeper.log());

    // Its request reaches the session with a request in flight, and the response reaches it.
    let message =
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "ask"}});
    let asked = session.listen(message, |session, said| {
        assert_eq!(said["params"]["message"], "Really?");
        let answer = json!({"action": "accept", "content": {}});
        session.send(json!({"jsonrpc": "2.0", "id": said["id"], "result": answer}));
    });
    assert!(!asked.is_null(), "{}", keeper.log());
    assert_eq!(text(&asked), "accept");
}

#[test]
fn cancelling_reaches_the_server() {
    if !has_tools("cancelling_reaches_the_server", &["python3"]) {
        return;
    }
    let keeper = start("");
    let mut session = keeper.session("");
    let waits =
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "wait"}});
    let _waiting = session.send(waits);
    session.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
    );
    assert_eq!(text(&session.call("was_cancelled", json!({}))), "True");
}

#[test]
fn a_server_that_ends_is_started_again_and_leaves_nothing() {
    if !has_tools(
        "a_server_that_ends_is_started_again_and_leaves_nothing",
        &["python3"],
    ) {
        return;
    }
    let mut keeper = start("");
    let mut first = keeper.session("");
    let before = pids(&mut first);
    let died = first.call("die", json!({}));
    assert!(died.is_null() || died.get("error").is_some(), "{died}");
    let mut second = keeper.session(&first.announced);
    for pid in &before {
        until("the end of what was left", || is_gone(*pid).then_some(()));
    }
    let why = "it ended with code 9; restarting it";
    until("the log", || keeper.log().contains(why).then_some(()));
    let after = pids(&mut second);
    assert!(after.iter().all(|pid| !is_gone(*pid)));

    // Nothing outlives the keeper, however it ends.
    keeper.child.kill().expect("killed");
    for pid in &after {
        until("the end of the server", || is_gone(*pid).then_some(()));
    }
}

#[test]
fn asked_to_stop_it_takes_its_server_and_its_port_along() {
    if !has_tools(
        "asked_to_stop_it_takes_its_server_and_its_port_along",
        &["python3"],
    ) {
        return;
    }
    let mut keeper = start("");
    let pids = pids(&mut keeper.session(""));
    let asked = Command::new("kill")
        .arg(keeper.child.id().to_string())
        .status();
    assert!(asked.is_ok_and(|status| status.success()));
    let status = until("the end", || keeper.child.try_wait().expect("waited for"));
    assert!(status.success(), "{status}: {}", keeper.log());
    assert!(keeper.announced().is_none());
    assert!(pids.iter().all(|pid| is_gone(*pid)));
}

#[test]
fn one_that_does_not_begin_is_named_and_tried_again() {
    if !has_tools(
        "one_that_does_not_begin_is_named_and_tried_again",
        &["python3"],
    ) {
        return;
    }
    let keeper = start("env = { FAILS = \"1\" }");
    until("three attempts", || {
        (keeper.log().matches("restarting it").count() >= 3).then_some(())
    });
    let log = keeper.log();
    assert!(
        log.contains("cannot begin") && log.contains("pause=1s"),
        "{log}"
    );
    assert!(keeper.announced().is_none());

    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(home.path().join("config")).expect("made");
    let config = home.path().join("config/mcpd.toml");
    std::fs::write(config, "[server.a]\ncommand = \"a\"\n").expect("written");
    let run = |name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_crabtalk-mcpd"))
            .args([name, "serve"])
            .env("CRABTALK_HOME", home.path())
            .output();
        let mut said = String::new();
        let output = output.expect("runs");
        let _ = output.stderr.as_slice().read_to_string(&mut said);
        (output.status.code(), said)
    };
    let (code, said) = run("b");
    assert!(code == Some(1) && said.contains("[server.b]"), "{said}");
    let (code, said) = run("../x");
    assert!(
        code == Some(2) && said.contains("is not a valid component name"),
        "{said}"
    );
}
