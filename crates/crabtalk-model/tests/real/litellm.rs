//! The `litellm` proxy: three formats, with made-up texts.
//!
//! Install it with `pip install 'litellm[proxy]'`; `CRABTALK_LITELLM` names the
//! program where it is not on the path.

use crate::program::{Program, until_it_listens};
use crate::support::{offer, request};
use crabtalk_domain::model::{Chunk, ErrorKind, Model, StopReason};
use crabtalk_model::{Kind, ModelConfig, ProviderConfig, Registry, Secret};
use crabtalk_testkit::tools::skipped;
use futures_util::StreamExt;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};

const PROGRAM: Program = Program {
    name: "litellm",
    variable: "CRABTALK_LITELLM",
    package: "litellm[proxy]",
};

const KEY: &str = "sk-of-the-test";
const SAID: &str = "The crab walks sideways, \u{e9}ven here.";

const CONFIG: &str = r#"
model_list:
  - model_name: mocked
    litellm_params: {model: openai/gpt-4o-mini, api_key: none, mock_response: "SAID"}
  - model_name: limited
    litellm_params: {model: openai/gpt-4o-mini, api_key: none, mock_response: litellm.RateLimitError}
  - model_name: broken
    litellm_params: {model: openai/gpt-4o-mini, api_key: none, mock_response: litellm.InternalServerError}
  - model_name: long
    litellm_params: {model: openai/gpt-4o-mini, api_key: none, mock_response: litellm.ContextWindowExceededError}
general_settings: {master_key: KEY}
router_settings: {num_retries: 0}
"#;

/// The proxy in a temporary folder; it ends with this.
struct Proxy {
    _process: Child,
    port: u16,
}

impl Proxy {
    async fn start(program: &Path, folder: &Path) -> Self {
        let port = crabtalk_testkit::ports::free();
        let config = folder.join("config.yaml");
        let text = CONFIG.replace("SAID", SAID).replace("KEY", KEY);
        std::fs::write(&config, text).expect("the folder can be written");
        let log = std::fs::File::create(folder.join("log")).expect("the folder can be written");
        let mut process = Command::new(program)
            .arg("--config")
            .arg(&config)
            .args(["--host", "127.0.0.1", "--telemetry", "False", "--port"])
            .arg(port.to_string())
            .current_dir(folder)
            .env("HOME", folder)
            // Prices come from the package, not from the network.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("an open file"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let log = folder.join("log");
        until_it_listens(port, &mut process, &log).await;
        Self {
            _process: process,
            port,
        }
    }

    fn provider(&self, kind: Kind) -> ProviderConfig {
        let mut config = ProviderConfig::new(kind.as_str(), kind);
        // Bare: every kind finds its own way from there.
        config.base_url = Some(format!("http://127.0.0.1:{}", self.port));
        config.api_key = Some(Secret::new(KEY));
        config.max_retries = 0;
        config.models = ["mocked", "limited", "broken", "long", "unknown"]
            .map(|id| ModelConfig {
                id: id.into(),
                ..ModelConfig::new(format!("{kind}-{id}"))
            })
            .into();
        config
    }
}

#[tokio::test]
async fn litellm_interoperates() {
    let name = "litellm_interoperates";
    let program = match PROGRAM.find() {
        Ok(program) => program,
        Err(reason) => return skipped(name, &reason),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Proxy::start(&program, folder.path()).await;
    let kinds = [Kind::OpenAi, Kind::Anthropic, Kind::Google];
    let providers = kinds.map(|kind| proxy.provider(kind)).into();
    let registry = Registry::new(providers, None).expect("a good configuration");
    for kind in kinds {
        chat(&registry, kind).await;
        stream(&registry, kind).await;
    }
    failures(&registry).await;
    refused(&proxy).await;
}

async fn chat(registry: &Registry, kind: Kind) {
    let mut asked = request("hi");
    asked.model = format!("{kind}-mocked");
    offer(&mut asked, &["read", "bash"]);
    let answer = registry.send(asked).await.expect("an answer");
    assert_eq!(answer.content, SAID, "{kind}");
    assert_eq!(answer.provider, kind.as_str());
    assert_eq!(answer.stop, Some(StopReason::Done), "{kind}");
    assert!(answer.usage.is_some(), "{kind}");
}

async fn stream(registry: &Registry, kind: Kind) {
    let mut asked = request("hi");
    asked.model = format!("{kind}-mocked");
    let chunks: Vec<_> = registry.stream(asked).collect().await;
    let chunks: Result<Vec<_>, _> = chunks.into_iter().collect();
    let chunks = chunks.expect("no error");
    let pieces = chunks.iter().filter(|c| matches!(c, Chunk::Text(_)));
    // Made-up answers in Anthropic's format come whole.
    if kind != Kind::Anthropic {
        assert!(pieces.count() > 3, "{kind}: {chunks:?}");
    }
    assert!(matches!(chunks.last(), Some(Chunk::Stop(_))), "{kind}");
}

async fn failures(registry: &Registry) {
    let limited = ErrorKind::RateLimited { retry_after: None };
    let broken = ErrorKind::Provider { retry_after: None };
    for (model, kind) in [
        ("openai-limited", limited),
        ("openai-broken", broken),
        ("openai-long", ErrorKind::TooLong),
        ("openai-unknown", ErrorKind::UnknownModel),
    ] {
        let mut asked = request("hi");
        asked.model = model.into();
        let error = registry.send(asked).await.expect_err(model);
        assert_eq!(error.kind, kind, "{model}: {error}");
        assert!(!error.message.contains(KEY), "{error}");
    }
    let mut asked = request("hi");
    asked.model = "openai-broken".into();
    asked.fallback = vec!["openai-limited".into(), "google-mocked".into()];
    let answer = registry.send(asked).await.expect("the last one");
    assert_eq!(
        (answer.model.as_str(), answer.content.as_str()),
        ("google-mocked", SAID)
    );
}

async fn refused(proxy: &Proxy) {
    let mut config = proxy.provider(Kind::OpenAi);
    config.api_key = Some(Secret::new("sk-another-one"));
    let registry = Registry::new(vec![config], None).expect("a good configuration");
    let error = registry.send(request("hi")).await.expect_err("a wrong key");
    assert!(!error.message.contains("sk-another-one"), "{error}");
}
