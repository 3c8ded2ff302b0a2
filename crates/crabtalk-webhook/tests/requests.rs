//! The gateway as a process without a daemon: refused requests and invalid settings.

use ring::hmac;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);

const SECRET: &str = "0123456789abcdef0123456789abcdef";

struct Gateway {
    child: Child,
    port: u16,
    _home: tempfile::TempDir,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn home(config: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let secret = home.path().join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).expect("written");
    std::fs::create_dir(home.path().join("config")).expect("made");
    let config = config.replace("SECRET", &secret.display().to_string());
    std::fs::write(home.path().join("config/webhook.toml"), config).expect("written");
    home
}

fn command(home: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crabtalk-webhook"));
    command
        .arg("serve")
        .env("CRABTALK_HOME", home.path())
        .stdin(Stdio::null());
    command
}

fn start(config: &str) -> Gateway {
    let home = home(config);
    let mut child = command(&home)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let port = said.find_map(|line| {
        let line = line.expect("text");
        line.rsplit_once("127.0.0.1:")
            .and_then(|(_, port)| port.parse().ok())
    });
    let port = port.expect("it says where it listens");
    Gateway {
        child,
        port,
        _home: home,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// The headers of a signed body.
fn signed(id: &str, at: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, format!("{id}.{at}.{body}").as_bytes());
    let tag = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, tag);
    format!("webhook-id: {id}\r\nwebhook-timestamp: {at}\r\nwebhook-signature: v1,{tag}\r\n")
}

fn ask(gateway: &Gateway, first: &str, headers: &str, body: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", gateway.port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let length = body.len();
    let head = format!("{first} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n");
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    // A refusal may come before all of a large body was read.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no answer: {answer}"))
}

const CONFIG: &str = "listen = \"127.0.0.1:0\"\n[hook.ci]\nsecret_file = \"SECRET\"\nevent = \"ci\"\nper_minute = 3\n";

#[test]
fn unsigned_and_old_requests_are_refused() {
    let gateway = start(CONFIG);
    let fine = signed("m1", now(), "x");
    let old = signed("m1", now() - 1000, "x");
    for (first, headers, body, status) in [
        ("POST /hook/ci", "", &b"x"[..], 401),
        ("POST /hook/ci", &*fine, b"y", 401),
        ("POST /hook/ci", &*old, b"x", 401),
        ("POST /hook/other", &*fine, b"x", 404),
        ("POST /", &*fine, b"x", 404),
        ("GET /hook/ci", &*fine, b"x", 405),
        ("POST /hook/ci", &*fine, b"\xff", 400),
        ("POST /hook/ci", &*fine, &[b'x'; 300 * 1024], 413),
    ] {
        assert_eq!(
            ask(&gateway, first, headers, body),
            status,
            "{first} {}",
            body.len()
        );
    }
}

#[test]
fn requests_without_a_daemon_may_be_repeated_within_the_limit() {
    let gateway = start(CONFIG);
    // The minute may change once in between; three pass in each.
    let mut taken = 0;
    for id in 0..7 {
        let headers = signed("same", now(), "x");
        match ask(&gateway, "POST /hook/ci", &headers, b"x") {
            503 => taken += 1,
            429 => {}
            other => panic!("{id}: {other}"),
        }
    }
    assert!((3..=6).contains(&taken), "{taken}");
}

/// A process with the mark that guardians put on agents' commands.
#[cfg(target_os = "linux")]
#[test]
fn agents_commands_are_refused() {
    let gateway = start(CONFIG);
    let ask = |mark: &str| {
        let script = format!(
            "{mark} exec 3<>/dev/tcp/127.0.0.1/{}; \
             printf 'GET /hook/ci HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3",
            gateway.port
        );
        let output = Command::new("bash").args(["-c", &script]).output();
        String::from_utf8(output.expect("bash runs").stdout).expect("text")
    };
    assert!(ask("").starts_with("HTTP/1.1 405"), "{}", ask(""));
    assert_eq!(ask("ulimit -x 7;"), "");
}

#[test]
fn invalid_settings_are_named() {
    for (config, why) in [
        ("", "listen"),
        (
            "listen = \"127.0.0.1:0\"\n[hook.a]\nsecret_file = \"SECRET\"\n",
            "either `event` or `agent`",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[hook.a]\nsecret_file = \"SECRET\"\nevent = \"e\"\nagent = \"a\"\n",
            "either `event` or `agent`",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[hook.a]\nsecret_file = \"/nowhere\"\nevent = \"e\"\n",
            "cannot read /nowhere",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[hook.a]\nsecret_file = \"/dev/null\"\nevent = \"e\"\n",
            "shorter than 16 bytes",
        ),
        ("listen = \"127.0.0.1:0\"\nhooks = 1\n", "hooks"),
    ] {
        let home = home(config);
        let output = command(&home).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(why),
            "{config}: {said}"
        );
    }
}
