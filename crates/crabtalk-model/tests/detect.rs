//! Detection of providers without a configuration.
//!
//! In paused time, which stands still while anything is under way between the probes
//! and the servers here: on a busy machine an answer may take longer than a probe.

use crabtalk_model::Kind;
use crabtalk_model::detect::{Detected, Options, PROBE_TIME, Ports, find};
use crabtalk_testkit::scripted::{Script, Server};
use tokio::net::TcpListener;
use tokio::time::Instant;

const LIST: &str = r#"{"object":"list","models":[
    {"name":"/models/small.Q4.gguf","capabilities":["completion","multimodal"]},
    {"name":"big","capabilities":["completion"]}],"data":[
    {"id":"text-embedding-x"},{"id":"/models/small.Q4.gguf","meta":{"n_ctx":4096}},{"id":"big"}]}"#;

fn with_env(vars: &[(&str, &str)]) -> Options {
    let env = vars
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    // Port 0 cannot be connected to.
    Options {
        env,
        probe: true,
        ports: Ports {
            ollama: 0,
            llama_cpp: 0,
            lm_studio: 0,
        },
    }
}

async fn at(ports: Ports) -> Detected {
    find(&Options {
        ports,
        ..with_env(&[])
    })
    .await
    .expect("no key")
}

async fn page(path: &str, body: &str) -> (Server, u16) {
    let server = Server::start(Script::default().page(path, body)).await;
    let port = server.address().port();
    (server, port)
}

#[tokio::test(start_paused = true)]
async fn key_takes_precedence_over_servers() {
    let (_server, ollama) = page("/api/tags", r#"{"models":[{"name":"x"}]}"#).await;
    for (vars, kind, model, url) in [
        (
            vec![("OPENAI_API_KEY", "sk-planted")],
            Kind::OpenAi,
            "gpt-5",
            None,
        ),
        (
            vec![("ANTHROPIC_API_KEY", "sk-planted")],
            Kind::Anthropic,
            "claude-sonnet-4-6",
            None,
        ),
        (
            vec![("OPENAI_API_KEY", "sk-planted"), ("GEMINI_API_KEY", "x")],
            Kind::OpenAi,
            "gpt-5",
            None,
        ),
        (
            vec![("GEMINI_API_KEY", "sk-planted")],
            Kind::Google,
            "gemini-flash-latest",
            None,
        ),
        (
            vec![
                ("GOOGLE_API_KEY", "sk-planted"),
                ("GOOGLE_GEMINI_BASE_URL", "http://h"),
            ],
            Kind::Google,
            "gemini-flash-latest",
            Some("http://h"),
        ),
        (
            vec![
                ("OPENAI_API_KEY", "sk-planted"),
                ("OPENAI_BASE_URL", "http://h/v1"),
            ],
            Kind::OpenAi,
            "gpt-5",
            Some("http://h/v1"),
        ),
    ] {
        let mut options = with_env(&vars);
        options.ports.ollama = ollama;
        let found = find(&options).await.expect("a kind that is built");
        assert_eq!(found.provider.kind, kind, "{vars:?}");
        assert_eq!(found.provider.models[0].name, model, "{vars:?}");
        assert_eq!(found.provider.base_url.as_deref(), url, "{vars:?}");
        assert!(found.why.contains(vars[0].0), "{}", found.why);
        assert!(!format!("{found:?}").contains("planted"), "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bedrock_key_alone_is_an_error() {
    let variable = "AWS_BEARER_TOKEN_BEDROCK";
    let error = find(&with_env(&[(variable, "planted")]))
        .await
        .expect_err("no model to choose");
    let text = error.to_string();
    assert!(
        text.contains(variable) && text.contains("[provider.NAME]"),
        "{text}"
    );
    assert!(!text.contains("planted"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn offline_model_is_the_last_resort() {
    let found = find(&with_env(&[("OPENAI_API_KEY", " ")]))
        .await
        .expect("no key");
    assert_eq!(found.provider.kind, Kind::Offline);
    for part in ["offline demonstration", "OPENAI_API_KEY", "Ollama"] {
        assert!(found.why.contains(part), "{}", found.why);
    }
}

#[tokio::test(start_paused = true)]
async fn local_servers_are_found_in_order() {
    let tags = r#"{"models":[{"name":"nomic-embed-text"},{"name":"llama3:8b"}]}"#;
    let (_a, ollama) = page("/api/tags", tags).await;
    let (_b, llama_cpp) = page("/v1/models", LIST).await;
    let (_c, lm_studio) = page("/v1/models", LIST).await;
    let found = at(Ports {
        ollama,
        llama_cpp,
        lm_studio,
    })
    .await;
    assert_eq!(
        (found.provider.kind, found.provider.models[0].name.as_str()),
        (Kind::Ollama, "llama3:8b")
    );
    assert_eq!(found.provider.models.len(), 1, "embeddings cannot talk");

    let found = at(Ports {
        ollama: 0,
        llama_cpp,
        lm_studio,
    })
    .await;
    assert_eq!(found.provider.name, "llama_cpp");
    let images = found.provider.models.iter().map(|model| model.images);
    let images: Vec<_> = images.collect();
    assert_eq!(
        images,
        [Some(true), Some(false)],
        "as the server was started"
    );
    let models: Vec<_> = found
        .provider
        .models
        .iter()
        .map(|m| (m.name.as_str(), m.id.as_str(), m.context))
        .collect();
    assert_eq!(
        models,
        [
            ("small.Q4", "/models/small.Q4.gguf", Some(4096)),
            ("big", "big", None)
        ]
    );

    let found = at(Ports {
        ollama: 0,
        llama_cpp: 0,
        lm_studio,
    })
    .await;
    assert_eq!(
        found.provider.base_url,
        Some(format!("http://127.0.0.1:{lm_studio}/v1"))
    );
    assert!(found.why.contains("LM Studio"), "{}", found.why);
}

#[tokio::test(start_paused = true)]
async fn other_servers_are_ignored() {
    for body in [
        "<html>",
        "{}",
        r#"{"data":"x"}"#,
        r#"{"data":[{"name":"x"}]}"#,
        "[]",
    ] {
        let (_server, port) = page("/v1/models", body).await;
        let found = at(Ports {
            ollama: port,
            llama_cpp: port,
            lm_studio: 0,
        })
        .await;
        assert_eq!(found.provider.kind, Kind::Offline, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_without_models_is_skipped() {
    let (_a, ollama) = page("/api/tags", r#"{"models":[]}"#).await;
    let (_b, llama_cpp) = page("/v1/models", LIST).await;
    let found = at(Ports {
        ollama,
        llama_cpp,
        lm_studio: 0,
    })
    .await;
    assert_eq!(found.provider.name, "llama_cpp");
    assert!(found.why.contains("Ollama runs on port"), "{}", found.why);
}

#[tokio::test(start_paused = true)]
async fn silent_ports_cost_the_probe_time_once() {
    // Listeners that accept and never answer.
    let mute = || async { TcpListener::bind("127.0.0.1:0").await.expect("a free port") };
    let (a, b) = (mute().await, mute().await);
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    let (_c, lm_studio) = page("/v1/models", LIST).await;
    let begin = Instant::now();
    let found = at(Ports {
        ollama: port(&a),
        llama_cpp: port(&b),
        lm_studio,
    })
    .await;
    assert_eq!(
        found.provider.name, "lm_studio",
        "a slow server hides no other"
    );
    let probes = begin.elapsed().as_millis() / PROBE_TIME.as_millis();
    assert_eq!(probes, 1, "both at once");
}

#[tokio::test(start_paused = true)]
async fn disabled_detection_probes_no_server() {
    let (server, llama_cpp) = page("/v1/models", LIST).await;
    let mut options = with_env(&[]);
    options.probe = false;
    options.ports.llama_cpp = llama_cpp;
    let found = find(&options).await.expect("no key");
    assert_eq!(found.provider.kind, Kind::Offline);
    assert!(found.why.contains("is off"), "{}", found.why);
    assert_eq!(server.progress().connections, 0);
}
