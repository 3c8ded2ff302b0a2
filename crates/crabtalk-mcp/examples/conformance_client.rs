//! The client as the protocol's conformance suite drives it: it connects to the
//! address that it is given, logs in where that is wanted, and calls what the
//! scenario wants called.

use crabtalk_domain::tool::{Caller, Invocation, Subject, ToolProvider};
use crabtalk_domain::{
    AgentConfig, AgentName, AskQuestion, BoxFuture, ConversationKey, Origin, Principal,
};
use crabtalk_guardian::{Children, Guardian, GuardianCommand};
use crabtalk_mcp::{
    Http, HttpError, HttpRequest, HttpResponse, OAuthClient, Outputs, Pace, Parts, Phase, Programs,
    Secret, Servers, Settings, Source, Transport,
};
use futures_util::stream;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Plain calls, a connection for each.
struct Plain;

impl Http for Plain {
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let host = request.uri().authority().map(ToString::to_string);
            let broken = |e: &dyn std::fmt::Display| HttpError::Broken(e.to_string());
            let stream = tokio::net::TcpStream::connect(host.unwrap_or_default())
                .await
                .map_err(|e| HttpError::Refused(e.to_string()))?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|e| broken(&e))?;
            let (mut parts, body) = request.into_parts();
            let path = parts.uri.path_and_query().map(ToString::to_string);
            parts.uri = path.unwrap_or_default().parse().map_err(|e| broken(&e))?;
            let request = http::Request::from_parts(parts, Full::new(body));
            let mut connection = Box::pin(connection);
            let answer = tokio::select! {
                answer = sender.send_request(request) => answer.map_err(|e| broken(&e))?,
                _ = &mut connection => return Err(HttpError::Broken("closed".into())),
            };
            let (parts, incoming) = answer.into_parts();
            // Reading the body drives the connection.
            let state = (incoming, connection, sender);
            let body = stream::unfold(state, |(mut incoming, mut connection, sender)| async move {
                loop {
                    let frame = tokio::select! {
                        biased;
                        frame = incoming.frame() => frame,
                        _ = &mut connection => incoming.frame().await,
                    };
                    let bytes = match frame? {
                        Ok(frame) => frame.into_data().ok().map(Ok),
                        Err(e) => Some(Err(HttpError::Broken(e.to_string()))),
                    };
                    if let Some(bytes) = bytes {
                        return Some((bytes, (incoming, connection, sender)));
                    }
                }
            });
            Ok(HttpResponse {
                status: parts.status,
                headers: parts.headers,
                body: Box::pin(body),
            })
        })
    }
}

/// Takes what the server would take.
struct Person;

impl Caller for Person {
    fn ask<'a>(&'a self, questions: Vec<AskQuestion>) -> BoxFuture<'a, Option<Value>> {
        let answer = |q: &AskQuestion| {
            let offers = |label: &str| q.options.iter().any(|option| option.label == label);
            let answer = if offers("Answer") {
                "Answer"
            } else {
                "default"
            };
            (q.question.clone(), Value::from(answer))
        };
        let answers: serde_json::Map<_, _> = questions.iter().map(answer).collect();
        Box::pin(std::future::ready(Some(answers.into())))
    }
}

struct Nowhere;

impl Outputs for Nowhere {
    fn keep<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: Vec<u8>,
    ) -> BoxFuture<'a, Result<PathBuf, String>> {
        Box::pin(std::future::ready(Err("nothing is kept here".into())))
    }
}

/// Arguments that fit the tools of the scenarios.
fn arguments(tool: &str) -> Value {
    match tool {
        tool if tool.ends_with("add_numbers") => json!({"a": 5, "b": 3}),
        _ => json!({}),
    }
}

/// How often a person tries another login.
const LOGINS: usize = 2;

/// The redirect address; the code is read from the redirect itself.
const REDIRECT: &str = "http://127.0.0.1:3999/callback";

/// The scenario in which no person is there.
const ALONE: &str = "auth/client-credentials-basic";

/// A client that the scenario has registered.
fn registered_by_hand() -> OAuthClient {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let text = |key: &str| context[key].as_str().unwrap_or_default().to_owned();
    OAuthClient {
        id: text("client_id"),
        secret: Secret(text("client_secret")),
        scopes: Vec::new(),
        is_alone: std::env::var("MCP_CONFORMANCE_SCENARIO").is_ok_and(|s| s == ALONE),
    }
}

/// Waits for the server, and logs in if it demands that.
async fn connected(servers: &Servers, settings: &Settings) -> Result<(), String> {
    let mut logins = 0;
    loop {
        let status = servers.list().remove(0);
        match status.phase {
            Phase::Connected => return Ok(()),
            Phase::Failed if status.wants_login && logins < LOGINS => {
                logins += 1;
                log_in(servers, settings).await?;
            }
            Phase::Failed if status.connected == 0 || status.wants_login => {
                return Err(status.error);
            }
            Phase::Idle | Phase::Connecting | Phase::Hanging | Phase::Off | Phase::Failed => {
                tokio::time::sleep(Duration::from_millis(10)).await
            }
        }
    }
}

/// The person says yes at once, and the browser returns.
async fn log_in(servers: &Servers, settings: &Settings) -> Result<(), String> {
    let address = servers.begin_login(settings, REDIRECT).await?;
    let mut request = HttpRequest::new(Default::default());
    *request.uri_mut() = address.parse().map_err(|_| "no address".to_owned())?;
    if let Some(host) = request.uri().authority().cloned() {
        let host = host.as_str().parse().map_err(|_| "no host".to_owned())?;
        request.headers_mut().insert(http::header::HOST, host);
    }
    let answer = Plain.send(request).await.map_err(|e| e.to_string())?;
    let location = answer.headers.get(http::header::LOCATION);
    let location = location.and_then(|to| to.to_str().ok()).unwrap_or_default();
    servers.finish_login(&settings.name, location).await
}

async fn run(url: String, folder: PathBuf) -> Result<(), String> {
    let programs = Programs {
        guardian: Guardian::new(GuardianCommand::new(folder.clone()), Children::default()),
        environment: Vec::new(),
        cwd: folder.clone(),
        open_files: None,
    };
    let servers = Servers::new(Parts {
        programs,
        http: Arc::new(Plain),
        outputs: Arc::new(Nowhere),
        seen: folder.join("mcp.json"),
        logins: folder.join("oauth"),
        news: Arc::new(|_, _| {}),
        pace: Pace::default(),
    });
    let transport = Transport::Url {
        url,
        headers: Default::default(),
    };
    let mut settings = Settings::new("suite", Source::Config, transport);
    settings.oauth = registered_by_hand();
    servers.configure(vec![settings.clone()]).await;
    connected(&servers, &settings).await?;
    let key = ConversationKey::new("crab", "user").map_err(|e| e.to_string())?;
    let name = AgentName::new("crab").map_err(|e| e.to_string())?;
    for spec in servers.specs() {
        let call = Invocation {
            key: key.clone(),
            origin: Origin::Client {
                principal: Principal::Owner,
            },
            run: 1,
            root: (key.clone(), 1),
            agent: Arc::new(AgentConfig::new(name.clone(), "")),
            call_id: "1".into(),
            arguments: arguments(&spec.name),
            name: spec.name.clone(),
            cwd: folder.clone(),
        };
        let mut output = servers
            .call_for(&call, &Subject::Other, None, &Person)
            .await;
        // The person reads that a token is not enough, and tries another login.
        for _ in 0..LOGINS {
            if !output.content.contains("crabtalk mcps login") {
                break;
            }
            log_in(&servers, &settings).await?;
            connected(&servers, &settings).await?;
            output = servers
                .call_for(&call, &Subject::Other, None, &Person)
                .await;
        }
        tracing::info!(tool = %spec.name, said = %output.content, failed = output.is_error, "called");
        if output.is_error {
            return Err(format!("{}: {}", spec.name, output.content));
        }
    }
    servers.shut_down().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let url = std::env::args().next_back().unwrap_or_default();
    let folder = std::env::current_dir().unwrap_or_default();
    let folder = folder.join(format!("client-{}", std::process::id()));
    match run(url, folder).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The suite shows it with what it found.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), why.as_bytes());
            ExitCode::FAILURE
        }
    }
}
