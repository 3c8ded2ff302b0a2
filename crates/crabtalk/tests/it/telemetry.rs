//! Metrics and traces of a daemon's runs (OPS-3).

use crate::components::{Serving, program, serve};
use crate::rig::{ModelServer, TestEnv, eventually, has_tools, skip, within};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;

/// Environment variable with a Python that has `prometheus_client`.
const PYTHON: &str = "CRABTALK_PROMETHEUS";

/// Environment variable with `promtool`, if it is not on PATH.
const PROMTOOL: &str = "CRABTALK_PROMTOOL";

/// Parses a page like Prometheus.
const READ: &str = "import sys\n\
    from prometheus_client.parser import text_string_to_metric_families as read\n\
    print(' '.join(sorted(m.name for m in read(sys.stdin.read()) if m.samples)))";

async fn started(env: &TestEnv, test: &str) -> Option<Serving> {
    Some(serve(env, &program(test, "crabtalk-telemetry")?).await)
}

/// A collector that accepts every request and returns the bodies.
async fn collector() -> (String, Receiver<Value>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (told, bodies) = channel(16);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            let body = loop {
                let mut chunk = [0; 4096];
                let count = stream.read(&mut chunk).await.unwrap();
                read.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&read);
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                assert!(head.starts_with("POST /v1/traces "), "{head}");
                assert!(head.contains("x-key: mine"), "{head}");
                if let Ok(body) = serde_json::from_str(body) {
                    break body;
                }
            };
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
            if told.send(body).await.is_err() {
                return;
            }
        }
    });
    (address, bodies, tasks)
}

async fn page(program: &Serving) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", program.port))
        .await
        .unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn runs_are_counted_and_traced_without_text() {
    let test = "runs_are_counted_and_traced";
    let model = ModelServer::start(Script::openai([
        openai::tools(
            "c1",
            &[(
                "bash",
                serde_json::json!({"command": "echo planted-output"}),
            )],
        ),
        openai::text("planted-answer"),
        openai::text("again"),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { bash: allow }");
    let (address, mut bodies, _collector) = collector().await;
    let config = format!(
        "[prometheus]\nlisten = \"127.0.0.1:0\"\n[otlp]\nendpoint = \"http://{address}\"\n\
         headers = {{ x-key = \"mine\" }}\n"
    );
    env.write(".crabtalk/config/telemetry.toml", &config);
    let daemon = env.daemon().await;
    let Some(program) = started(&env, test).await else {
        return;
    };
    eventually("the daemon to be seen", async || {
        page(&program)
            .await
            .contains("\ncrabtalk_up 1\n")
            .then_some(())
    })
    .await;
    env.run(&["ask", "planted-question"]).await.ok();
    let text = eventually("the run to be counted", async || {
        let page = page(&program).await;
        let counted = "crabtalk_runs_total{agent=\"crab\",outcome=\"ok\"} 1";
        page.contains(counted).then_some(page)
    })
    .await;
    for line in [
        "crabtalk_tool_calls_total{tool=\"bash\",outcome=\"ok\"} 1",
        "crabtalk_run_duration_seconds_count{agent=\"crab\"} 1",
        "crabtalk_model_calls_today{agent=\"crab\"} 2",
        "crabtalk_missed_events_total 0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
    }
    let body = within("the spans", bodies.recv()).await.unwrap();
    let spans = body.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap();
    let names: Vec<&str> = spans
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|s| s["name"].as_str())
        .collect();
    assert_eq!(names, ["execute_tool bash", "invoke_agent crab"]);
    checked(&env, test, &text).await;
    for said in [text, body.to_string()] {
        assert!(!said.contains("planted"), "{said}");
    }
    // Counters survive a restart of the daemon.
    daemon.kill().await;
    let down = page(&program).await;
    assert!(down.contains("\ncrabtalk_up 0\n"), "{down}");
    let _daemon = env.daemon().await;
    eventually("the second run to be counted", async || {
        env.run(&["ask", "again"]).await;
        let page = page(&program).await;
        let again = page
            .lines()
            .find_map(|line| line.strip_prefix("crabtalk_runs_total{agent=\"crab\",outcome="));
        again
            .is_some_and(|_| page.contains("crabtalk_up 1"))
            .then_some(())
    })
    .await;
}

/// Checks the page with Prometheus's own programs, if they are installed.
async fn checked(env: &TestEnv, test: &str, text: &str) {
    if let Some(python) = std::env::var_os(PYTHON) {
        let mut reader = env.program(python);
        reader.args(["-c", READ]);
        let names = crate::rig::run_to_end(reader, Some(text)).await.ok();
        for name in ["crabtalk_up", "crabtalk_info", "crabtalk_tokens_today"] {
            assert!(names.split_whitespace().any(|one| one == name), "{names}");
        }
    } else {
        skip(test, &format!("{PYTHON} is not set"));
    }
    let promtool = std::env::var(PROMTOOL).unwrap_or_else(|_| "promtool".to_owned());
    if has_tools(test, &[&promtool]) {
        let mut checker = env.program(promtool);
        checker.args(["check", "metrics"]);
        let said = crate::rig::run_to_end(checker, Some(text)).await;
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{text}");
    }
}
