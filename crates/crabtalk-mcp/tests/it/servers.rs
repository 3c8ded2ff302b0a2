//! Servers behind a scripted HTTP port: connecting, calling, and errors of a server.

use crate::support::World;
use crabtalk_domain::BoxFuture;
use crabtalk_mcp::{
    Http, HttpError, HttpRequest, HttpResponse, Pace, Phase, ServerStatus, Settings, Source,
    Transport,
};
use http::header::{CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// An answer of the scripted server.
enum Answer {
    Result(Value),
    Status(StatusCode, HeaderName, &'static str),
    /// One event of so many bytes.
    Event(usize),
    Silence,
}

/// A server with one tool, `t`, that answers the calls of it so.
struct Scripted {
    tools: Value,
    answers_call: fn() -> Answer,
    answers_handshake: fn() -> Option<Answer>,
}

impl Http for Scripted {
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        let message: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let handshake = json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        });
        let answer = match message["method"].as_str() {
            Some("initialize") => {
                (self.answers_handshake)().unwrap_or_else(|| Answer::Result(handshake))
            }
            Some("tools/list") => Answer::Result(json!({"tools": self.tools})),
            Some("tools/call") => (self.answers_call)(),
            Some(_) => Answer::Status(StatusCode::ACCEPTED, LOCATION, ""),
            None => Answer::Status(StatusCode::METHOD_NOT_ALLOWED, LOCATION, ""),
        };
        let id = message["id"].clone();
        Box::pin(async move {
            Ok(match answer {
                Answer::Result(result) => {
                    let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
                    response(
                        StatusCode::OK,
                        CONTENT_TYPE,
                        "application/json",
                        body.to_string(),
                    )
                }
                Answer::Status(status, name, value) => response(status, name, value, String::new()),
                Answer::Event(bytes) => {
                    let event = format!("data: \"{}\"\n\n", "x".repeat(bytes));
                    response(StatusCode::OK, CONTENT_TYPE, "text/event-stream", event)
                }
                Answer::Silence => std::future::pending().await,
            })
        })
    }
}

fn response(
    status: StatusCode,
    name: HeaderName,
    value: &'static str,
    body: String,
) -> HttpResponse {
    let body = futures_util::stream::once(std::future::ready(Ok(body.into())));
    HttpResponse {
        status,
        headers: HeaderMap::from_iter([(name, HeaderValue::from_static(value))]),
        body: Box::pin(body),
    }
}

/// The server `s` with this script, once it has connected or failed.
async fn connected(http: Scripted) -> (World, ServerStatus) {
    let world = World::new(http, Pace::default());
    let transport = Transport::Url {
        url: "https://scripted.example/mcp".into(),
        headers: Default::default(),
    };
    let mut settings = Settings::new("s", Source::Config, transport);
    settings.timeout = Duration::from_secs(20);
    world.servers.configure(vec![settings]).await;
    let status = world
        .until(|all| {
            let tried = matches!(all[0].phase, Phase::Connected | Phase::Failed);
            tried.then(|| all[0].clone())
        })
        .await;
    (world, status)
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn scripted(answers_call: fn() -> Answer) -> Scripted {
    Scripted {
        tools: json!([tool("t")]),
        answers_call,
        answers_handshake: || None,
    }
}

/// Makes the answer of a scripted server.
type Respond = fn() -> Answer;

/// Makes the answer of a scripted server, if it has one.
type MayRespond = fn() -> Option<Answer>;

#[tokio::test(start_paused = true)]
async fn calls_return_the_answer_or_the_reason() {
    let cases: [(Respond, bool, &str); 5] = [
        (|| Answer::Result(text("hello")), false, "hello"),
        (
            || {
                Answer::Status(
                    StatusCode::TEMPORARY_REDIRECT,
                    LOCATION,
                    "https://other.example/",
                )
            },
            true,
            "redirects to https://other.example/",
        ),
        (
            || Answer::Status(StatusCode::UNAUTHORIZED, WWW_AUTHENTICATE, "Bearer"),
            true,
            "`crabtalk mcps login s`",
        ),
        (
            || Answer::Event(17 << 20),
            true,
            "its answer has more than 16777216 bytes",
        ),
        (|| Answer::Silence, true, "no answer within 20 s"),
    ];
    for (answers, is_error, want) in cases {
        let (world, status) = connected(scripted(answers)).await;
        assert_eq!((status.phase, status.tools), (Phase::Connected, 1));
        let output = world.call("s__t", json!({})).await;
        assert_eq!(output.is_error, is_error, "{}", output.content);
        assert!(output.content.contains(want), "{want}: {}", output.content);
        world.servers.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn failed_handshakes_are_named() {
    let cases: [(MayRespond, bool, &str); 2] = [
        (
            || {
                Some(Answer::Status(
                    StatusCode::UNAUTHORIZED,
                    WWW_AUTHENTICATE,
                    "Bearer",
                ))
            },
            true,
            "`crabtalk mcps login s`",
        ),
        (|| Some(Answer::Silence), false, "no handshake within"),
    ];
    for (answers_handshake, wants_login, want) in cases {
        let http = Scripted {
            answers_handshake,
            ..scripted(|| Answer::Silence)
        };
        let (world, status) = connected(http).await;
        assert_eq!(
            (status.phase, status.wants_login),
            (Phase::Failed, wants_login)
        );
        assert!(status.error.contains(want), "{want}: {}", status.error);
        world.servers.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lists_of_tools_are_bounded() {
    let tools: Vec<Value> = (0..600).map(|at| tool(&format!("t{at}"))).collect();
    let http = Scripted {
        tools: tools.into(),
        ..scripted(|| Answer::Silence)
    };
    let (world, status) = connected(http).await;
    assert_eq!(status.tools, 512);
    world.servers.shut_down().await;
}
