//! The program without a daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

fn home(config: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(home.path().join("config")).expect("made");
    std::fs::write(home.path().join("config/telemetry.toml"), config).expect("written");
    home
}

fn start(home: &tempfile::TempDir) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crabtalk-telemetry"))
        .arg("serve")
        .env("CRABTALK_HOME", home.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

#[test]
fn what_cannot_work_is_said_and_ends_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address");
    let busy =
        format!("[prometheus]\nlisten = \"{taken}\"\n[otlp]\nendpoint = \"http://{taken}\"\n");
    for (config, said) in [("", "telemetry.toml"), (busy.as_str(), "cannot listen")] {
        let output = start(&home(config)).wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn without_a_daemon_it_says_that_it_is_down() {
    let home = home("[prometheus]\nlisten = \"127.0.0.1:0\"\n");
    let mut child = start(&home);
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let address = said.find_map(|line| {
        let line = line.expect("text");
        let at = line.find("127.0.0.1:")?;
        Some(line[at..].trim().to_owned())
    });
    let address = address.expect("it says where it listens");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .expect("written");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("an answer");
    child.kill().expect("ended");
    child.wait().expect("ended");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("version=0.0.4"), "{page}");
    assert!(page.contains("\ncrabtalk_up 0\n"), "{page}");
}
