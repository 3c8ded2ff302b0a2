//! A server built from llama.cpp's code, with a generated model.

use super::skipped;
use super::wait::eventually;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Environment variable with a Python that has the package `xllamacpp`, if `python3` does not.
const PYTHON: &str = "CRABTALK_LLAMA_CPP";

const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crabtalk-model/tests/real/llama_cpp/server.py"
);

pub(crate) struct LlamaCpp {
    address: String,
    _child: Child,
}

impl LlamaCpp {
    /// Starts the server in this folder with a context of this many tokens; every byte of a prompt
    /// is one token. `None` if it is not installed.
    pub(crate) async fn start(test: &str, folder: &Path, context: u32) -> Option<Self> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let has_package = Command::new(&python)
            .args(["-c", "import xllamacpp"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await;
        if !has_package.is_ok_and(|status| status.success()) {
            skipped(test, &format!("no xllamacpp; see {PYTHON}"));
            return None;
        }
        let (says, log) = (folder.join("address"), folder.join("log"));
        let child = Command::new(&python)
            // Python must not write files next to the scripts.
            .args(["-B", SERVER])
            .arg(folder.join("crab.gguf"))
            .arg(context.to_string())
            .env("HOME", folder)
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(&says).unwrap())
            .stderr(std::fs::File::create(log).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let address = eventually("llama.cpp's address", async || {
            let said = std::fs::read_to_string(&says).unwrap();
            said.strip_suffix('\n').map(str::to_owned)
        })
        .await;
        Some(Self {
            address,
            _child: child,
        })
    }

    /// The `base_url` of the server.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.address)
    }
}
