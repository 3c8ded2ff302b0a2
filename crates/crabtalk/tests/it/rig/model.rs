//! The scripted model server, run as a second process of this test program.

use super::wait::within;
use crabtalk_testkit::scripted::{self, Script};
use serde_json::Value;
use std::os::fd::AsFd;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// Environment variable with the script's file, for the other process.
const SCRIPT: &str = "CRABTALK_E2E_SCRIPT";

/// The prefix of the line with the address.
const SAYS: &str = "scripted server on ";

pub(crate) struct ModelServer {
    address: String,
    _child: Child,
    _script: tempfile::NamedTempFile,
}

/// Not a test: the process that [`ModelServer::start`] starts.
#[tokio::test]
async fn serve_a_script() {
    let Some(path) = std::env::var_os(SCRIPT) else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let script: Script = serde_json::from_str(&text).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    eprintln!("{SAYS}{}", listener.local_addr().unwrap());
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let mut parent = Receiver::from_owned_fd(stdin).unwrap();
    let mut nothing = [0];
    tokio::select! {
        () = scripted::serve(listener, script) => {}
        // It ends with the test that started it.
        _ = parent.read(&mut nothing) => {}
    }
    std::process::exit(0);
}

impl ModelServer {
    pub(crate) async fn start(script: Script) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        serde_json::to_writer(&file, &script).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["rig::model::serve_a_script", "--exact", "--nocapture"])
            .env(SCRIPT, file.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let find = async {
            loop {
                let line = lines.next_line().await.unwrap();
                let line = line.expect("the scripted server says where it is");
                if let Some(address) = line.strip_prefix(SAYS) {
                    return address.to_owned();
                }
            }
        };
        let address = within("the scripted server", find).await;
        Self {
            address,
            _child: child,
            _script: file,
        }
    }

    /// The `base_url` of the server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of its requests; asserts that a real provider would accept each.
    pub(crate) async fn requests(&self) -> Vec<Value> {
        let text = self.exchange("GET", "/requests").await;
        let list: Vec<Value> = serde_json::from_str(&text).unwrap();
        list.into_iter()
            .map(|request| {
                assert_eq!(request["problems"], serde_json::json!([]), "{request}");
                request["body"].clone()
            })
            .collect()
    }

    /// Continues the answer that has stalled longest.
    pub(crate) async fn release(&self) {
        self.exchange("POST", "/release").await;
    }

    async fn exchange(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        within("the scripted server's answer", read).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        body.to_owned()
    }
}
