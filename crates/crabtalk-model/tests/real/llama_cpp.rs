//! A server of llama.cpp's own code with a model made up for it.
//!
//! The package `xllamacpp` has that server for Python; `CRABTALK_LLAMA_CPP`
//! names the Python that has the package, where `python3` has not.

use crate::program::{Program, START_TIME};
use crate::support::{calling, history, offer};
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Model, Request, Response, StopReason};
use crabtalk_domain::{Message, ToolCall};
use crabtalk_model::detect::{self, Detected, Ports};
use crabtalk_model::{Kind, ProviderConfig, Registry};
use crabtalk_testkit::tools::skipped;
use futures_util::StreamExt;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const PYTHON: Program = Program {
    name: "python3",
    variable: "CRABTALK_LLAMA_CPP",
    package: "xllamacpp",
};

const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/real/llama_cpp/server.py"
);

/// The model's answer to a text that does not end with `!` or `#`.
const SAID: &str = "The crab walks sideways.";

/// Tokens that it reads; every byte of a prompt is one.
const CONTEXT: u64 = 1024;

/// Looks for a server that is there; the time of one is short for a machine
/// with other things to do.
const LOOKS: u32 = 20;

/// The Python that has the package, or why there is none.
async fn python() -> Result<std::path::PathBuf, String> {
    let python = PYTHON.find()?;
    let import = Command::new(&python)
        .args(["-c", "import xllamacpp"])
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| format!("{}: {error}", python.display()))?;
    let missing = || {
        let said = String::from_utf8_lossy(&import.stderr);
        format!(
            "{} has no xllamacpp (pip install xllamacpp, or see CRABTALK_LLAMA_CPP): {}",
            python.display(),
            said.lines().last().unwrap_or_default()
        )
    };
    import
        .status
        .success()
        .then(|| python.clone())
        .ok_or_else(missing)
}

/// The server; it ends with this.
struct Server {
    _process: Child,
    port: u16,
}

impl Server {
    async fn start(python: &Path, folder: &Path) -> Self {
        let log = folder.join("log");
        let mut process = Command::new(python)
            // Nothing is written beside the scripts.
            .args(["-B", SERVER])
            .arg(folder.join("crab.gguf"))
            .arg(CONTEXT.to_string())
            .current_dir(folder)
            .env("HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).expect("the folder can be written"))
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let output = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines();
        let said = tokio::time::timeout(START_TIME, lines.next_line()).await;
        let address = said.ok().and_then(Result::ok).flatten();
        let port = address.as_deref().and_then(|url| url.rsplit(':').next());
        let port = port.and_then(|port| port.parse().ok());
        let why = || std::fs::read_to_string(&log).unwrap_or_default();
        Self {
            port: port.unwrap_or_else(|| panic!("it said {address:?}: {}", why())),
            _process: process,
        }
    }

    /// The provider that a node without configuration finds.
    async fn detected(&self) -> Detected {
        let mut options = detect::Options {
            probe: true,
            ..detect::Options::default()
        };
        options.ports = Ports {
            ollama: 0,
            llama_cpp: self.port,
            lm_studio: 0,
        };
        for _ in 1..LOOKS {
            let found = detect::find(&options).await.expect("no key");
            if found.provider.name == "llama_cpp" {
                return found;
            }
        }
        detect::find(&options).await.expect("no key")
    }
}

#[tokio::test]
async fn llama_cpp_is_detected_and_interoperates() {
    let name = "llama_cpp_is_detected_and_interoperates";
    let python = match python().await {
        Ok(python) => python,
        Err(reason) => return skipped(name, &reason),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&python, folder.path()).await;
    let detected = found(&server).await;
    // It answers in two formats.
    let other = ProviderConfig {
        kind: Kind::Anthropic,
        ..detected.clone()
    };
    for provider in [detected, other] {
        let registry = Registry::new(vec![provider], None).expect("a good provider");
        streams_in_pieces(&registry).await;
        ends_at_its_context(&registry).await;
        calls_a_tool_and_reads_its_result(&registry).await;
        reads_a_prefix_once(&registry).await;
        says_that_it_is_too_long(&registry).await;
    }
}

async fn found(server: &Server) -> ProviderConfig {
    let Detected {
        mut provider, why, ..
    } = server.detected().await;
    let port = server.port;
    assert_eq!(
        why,
        format!("using \"crab\" of the llama.cpp server on port {port}")
    );
    assert_eq!(provider.kind, Kind::OpenAi);
    assert_eq!(provider.models[0].context, Some(CONTEXT));
    assert_eq!(provider.models[0].images, Some(false));
    provider.max_retries = 0;
    provider
}

fn asking(text: &str) -> Request {
    history(vec![Message::user(text)])
}

async fn stream(registry: &Registry, request: Request) -> Result<Vec<Chunk>, Error> {
    let chunks: Vec<_> = registry.stream(request).collect().await;
    chunks.into_iter().collect()
}

/// Chunks and what they add up to.
async fn answer(registry: &Registry, request: Request) -> (Vec<Chunk>, Response) {
    let chunks = stream(registry, request).await.expect("an answer");
    let mut response = Response::default();
    chunks.iter().for_each(|chunk| response.push(chunk.clone()));
    (chunks, response)
}

async fn streams_in_pieces(registry: &Registry) {
    let (chunks, response) = answer(registry, asking("hi?")).await;
    assert_eq!(response.content, SAID);
    assert_eq!(response.stop, Some(StopReason::Done));
    assert_eq!(
        (response.provider.as_str(), response.model.as_str()),
        ("llama_cpp", "crab")
    );
    let pieces = chunks.iter().filter(|c| matches!(c, Chunk::Text(_)));
    assert!(pieces.count() > 3, "{chunks:?}");
    let usage = response.usage.expect("figures");
    // Five pieces, and the end.
    assert_eq!(usage.completion_tokens, 6);
    assert!(usage.prompt_tokens > 10, "{usage:?}");
    let whole = registry.send(asking("hi?")).await.expect("an answer");
    assert_eq!(whole.content, SAID);
    assert_eq!(whole.stop, Some(StopReason::Done));
    assert_eq!(whole.usage.map(|u| u.completion_tokens), Some(6));
}

async fn ends_at_its_context(registry: &Registry) {
    let (_, response) = answer(registry, asking("sing!")).await;
    assert_eq!(response.stop, Some(StopReason::Length), "{response:?}");
    let sung = &response.content;
    assert!(sung.starts_with("la la, lo, la, lo, la, lo,"), "{sung}");
    let usage = response.usage.expect("figures");
    let total = usage.prompt_tokens + usage.completion_tokens;
    assert!((CONTEXT - 2..=CONTEXT).contains(&total), "{usage:?}");
}

async fn calls_a_tool_and_reads_its_result(registry: &Registry) {
    let mut asked = asking("what is next?");
    offer(&mut asked, &["read", "bash"]);
    let (_, response) = answer(registry, asked).await;
    assert_eq!(response.content, SAID, "a tool need not be called");
    let mut asked = asking("look into the notes #");
    offer(&mut asked, &["read", "bash"]);
    let (chunks, response) = answer(registry, asked).await;
    assert_eq!(response.stop, Some(StopReason::ToolCalls), "{response:?}");
    assert_eq!(response.content, "");
    let [
        ToolCall {
            id,
            name,
            arguments,
        },
    ] = &response.tool_calls[..]
    else {
        panic!("{response:?}");
    };
    assert_eq!(name, "read");
    let arguments_json: serde_json::Value = serde_json::from_str(arguments).expect("JSON");
    assert_eq!(arguments_json, serde_json::json!({"path": "notes.txt"}));
    let pieces = chunks
        .iter()
        .filter(|c| matches!(c, Chunk::ToolCallArguments { .. }));
    assert!(pieces.count() > 1, "{chunks:?}");
    let mut asked = history(vec![
        Message::user("look into the notes #"),
        calling(&[(id, name, arguments)]),
        Message::tool(id.clone(), "is that all?", false),
    ]);
    offer(&mut asked, &["read", "bash"]);
    let (_, response) = answer(registry, asked).await;
    assert_eq!(response.content, SAID, "{response:?}");
}

async fn reads_a_prefix_once(registry: &Registry) {
    let mut messages = vec![Message::user("how do crabs walk?")];
    let (_, first) = answer(registry, history(messages.clone())).await;
    messages.push(Message::assistant(first.content));
    messages.push(Message::user("and why?"));
    let (_, second) = answer(registry, history(messages)).await;
    let (first, second) = (
        first.usage.expect("figures"),
        second.usage.expect("figures"),
    );
    let hits = second.cache_hit_tokens.expect("it tells");
    assert!(
        hits >= first.prompt_tokens && hits < second.prompt_tokens,
        "{first:?} {second:?}"
    );
}

async fn says_that_it_is_too_long(registry: &Registry) {
    let long = asking(&"long ".repeat(300));
    for error in [
        stream(registry, long.clone()).await.expect_err("too long"),
        registry.send(long).await.expect_err("too long"),
    ] {
        assert_eq!(error.kind, ErrorKind::TooLong, "{error}");
        assert!(error.message.contains("1024"), "{error}");
    }
}
