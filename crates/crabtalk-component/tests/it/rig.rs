//! Components as processes, and a client that speaks plain HTTP to them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take: the suite of others starts a program for
/// each scenario.
const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An example of the crate, which Cargo builds with its tests.
pub(crate) fn example(name: &str) -> Command {
    let tests = std::env::current_exe().expect("known");
    let built = tests.parent().and_then(Path::parent);
    let examples = built
        .expect("deps lie in the profile's folder")
        .join("examples");
    Command::new(examples.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}

/// Where a component of this name says its port.
pub(crate) fn port_file(home: &Path, name: &str) -> PathBuf {
    home.join(format!("run/{name}.port"))
}

/// Starts a component, and waits for its port.
pub(crate) fn start(mut command: Command, home: &Path, name: &str) -> (Running, u16) {
    command.env("CRABTALK_HOME", home).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.expect("it starts"));
    let path = port_file(home, name);
    let port = until("the announcement", || {
        let text = std::fs::read_to_string(&path).ok()?;
        text.lines().next()?.parse().ok()
    });
    (running, port)
}

/// One request, with further lines of its head, and all of the answer.
pub(crate) fn post(port: u16, extra: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n{extra}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}
