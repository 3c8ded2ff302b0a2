//! Providers that refuse, break off or talk nonsense.

use crate::dialect::{Dialect, up_to};
use crate::support::request;
use crate::{Case, Cell};
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Model};
use crabtalk_testkit::scripted::{Action, Format, Reply, answer, google};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const CASES: [Case; 19] = [
    Case::new("401: fails without retry, key not shown", |d| {
        Box::pin(refused(d, 401))
    }),
    Case::new("403: fails without retry", |d| Box::pin(refused(d, 403))),
    Case::new("404, unknown model: lists the configured ones", |d| {
        Box::pin(no_model(d))
    }),
    Case::timed("429: retried after Retry-After", |d| Box::pin(limited(d))),
    Case::new("429 with a long Retry-After: fails", |d| {
        Box::pin(limited_long(d))
    }),
    Case::timed("500: retried", |d| Box::pin(again(d, 500))),
    Case::timed("503: retried", |d| Box::pin(again(d, 503))),
    Case::timed("529: retried", |d| Box::pin(again(d, 529))),
    Case::timed("connection lost before the first content: retried", |d| {
        Box::pin(cut_early(d))
    }),
    Case::new(
        "connection lost during the answer: 502, no repeated text",
        |d| Box::pin(cut(d)),
    ),
    Case::timed("stalled during the answer: 504 after 120 s", |d| {
        Box::pin(stalled(d))
    }),
    Case::timed("no response: 504 after 30 s", |d| Box::pin(silent(d))),
    Case::new(
        "malformed during the answer: 502 with the partial text",
        |d| Box::pin(malformed(d)),
    ),
    Case::new("an error during the answer is reported", |d| {
        Box::pin(reported(d))
    }),
    Case::new("an unterminated event: 502", |d| Box::pin(endless(d))),
    Case::new("connection closed without response: 502", |d| {
        Box::pin(nothing(d))
    }),
    Case::new("a filtered request: 422", |d| Box::pin(filtered(d))),
    Case::new("context exceeded: distinct error, for compaction", |d| {
        Box::pin(too_long(d))
    }),
    Case::new("dropping the answer closes the connection", |d| {
        Box::pin(dropped(d))
    }),
];

/// The error of one call, which is not tried again.
async fn error(dialect: Dialect, reply: Reply) -> Error {
    let bench = dialect.bench([reply, dialect.text(&["never"])]).await;
    let error = bench.send(&request("hi")).await.expect_err("a failure");
    assert_eq!(bench.server.progress().requests, 1, "{error}");
    assert!(error.message.contains("\"p\""), "{error}");
    assert!(!error.message.contains("planted"), "{error}");
    error
}

/// The chunks before an answer failed after one request.
async fn amid(dialect: Dialect, reply: Reply) -> (String, Error) {
    let bench = dialect.bench([reply, dialect.text(&["never"])]).await;
    let mut stream = bench.registry.stream(request("hi"));
    let mut heard = String::new();
    loop {
        match stream.next().await.expect("no end without an error") {
            Ok(Chunk::Text(text)) => heard.push_str(&text),
            Ok(Chunk::Stop(stop)) => panic!("it stopped: {stop:?}"),
            Ok(_) => {}
            Err(error) => {
                assert!(stream.next().await.is_none(), "one error is the end");
                assert_eq!(bench.server.progress().requests, 1, "{error}");
                return (heard, error);
            }
        }
    }
}

/// An answer of which the first piece is sent.
fn begun(dialect: Dialect) -> (Reply, usize) {
    let reply = dialect.text(&["alpha", "beta"]);
    let at = up_to(&reply, "alpha");
    (reply, at)
}

async fn refused(dialect: Dialect, status: u16) -> Cell {
    let reply = dialect.refusal(status, "you sent sk-planted");
    let error = error(dialect, reply).await;
    assert_eq!((error.kind, error.kind.code()), (ErrorKind::Refused, 502));
    assert!(error.message.contains("check its api_key"), "{error}");
    if dialect == Dialect::Google && status == 401 {
        // A key that is none has the status of a bad request here.
        let error = self::error(dialect, google::bad_key()).await;
        assert_eq!(error.kind, ErrorKind::Refused);
    }
    Cell::Holds
}

async fn no_model(dialect: Dialect) -> Cell {
    let unknown =
        |status, class, message| answer::refusal(dialect.format(), status, class, message);
    let replies = match dialect.format() {
        Format::OpenAi => vec![unknown(
            404,
            "model_not_found",
            "The model `x` does not exist",
        )],
        Format::Anthropic => vec![unknown(404, "not_found_error", "model: x")],
        Format::Google => vec![unknown(
            404,
            "NOT_FOUND",
            "models/x is not found for API version v1beta, or is not supported for \
             generateContent.",
        )],
        Format::Bedrock => vec![
            unknown(
                404,
                "ResourceNotFoundException",
                "Could not resolve the foundation model",
            ),
            unknown(
                400,
                "ValidationException",
                "The provided model identifier is invalid.",
            ),
        ],
    };
    for reply in replies {
        let error = error(dialect, reply).await;
        assert_eq!(
            (error.kind, error.kind.code()),
            (ErrorKind::UnknownModel, 404)
        );
        assert!(error.message.contains("\"m\", \"other\""), "{error}");
    }
    Cell::Holds
}

async fn limited(dialect: Dialect) -> Cell {
    let mut replies = vec![(Reply::rate_limited("7"), 7)];
    if dialect == Dialect::Google {
        // Its own way to say it.
        replies.push((google::exhausted("5s"), 5));
    }
    for (reply, wait) in replies {
        let bench = dialect.bench([reply, dialect.text(&["at last"])]).await;
        let begin = Instant::now();
        let answer = bench
            .send(&request("hi"))
            .await
            .expect("the second attempt");
        assert_eq!(answer.content, "at last");
        assert_eq!(begin.elapsed().as_secs(), wait);
    }
    Cell::Holds
}

async fn limited_long(dialect: Dialect) -> Cell {
    let error = error(dialect, Reply::rate_limited("61")).await;
    let retry_after = Some(Duration::from_secs(61));
    assert_eq!(error.kind, ErrorKind::RateLimited { retry_after });
    Cell::Holds
}

async fn again(dialect: Dialect, status: u16) -> Cell {
    let reply = || dialect.refusal(status, "busy");
    let bench = dialect
        .bench([reply(), reply(), dialect.text(&["at last"])])
        .await;
    let answer = bench.send(&request("hi")).await.expect("the third attempt");
    assert_eq!(answer.content, "at last");
    let sent = bench.server.requests();
    assert_eq!((sent.len(), &sent[0].text), (3, &sent[2].text));
    // And not forever.
    let bench = dialect.bench((0..4).map(|_| reply())).await;
    let error = bench.send(&request("hi")).await.expect_err("it stays busy");
    assert!(
        error.message.contains("busy") && error.message.contains("(3 attempts)"),
        "{error}"
    );
    assert_eq!((bench.server.requests().len(), error.kind.code()), (3, 502));
    Cell::Holds
}

async fn cut_early(dialect: Dialect) -> Cell {
    let (reply, at) = begun(dialect);
    let replies = [
        Reply::new([Action::Cut]),
        reply.cut_after(at - 1),
        dialect.text(&["at last"]),
    ];
    let bench = dialect.bench(replies).await;
    let answer = bench.send(&request("hi")).await.expect("the third attempt");
    assert_eq!(answer.content, "at last");
    Cell::Holds
}

async fn cut(dialect: Dialect) -> Cell {
    let (reply, at) = begun(dialect);
    let mut ended = reply.clone();
    ended.actions.truncate(at);
    for reply in [reply.cut_after(at), ended] {
        let (heard, error) = amid(dialect, reply).await;
        assert_eq!(
            (heard.as_str(), error.kind),
            ("alpha", ErrorKind::Malformed)
        );
        assert!(error.message.contains("is incomplete"), "{error}");
        assert_eq!(error.kind.code(), 502);
    }
    Cell::Holds
}

async fn stalled(dialect: Dialect) -> Cell {
    let (reply, at) = begun(dialect);
    let bench = dialect.bench([reply.stall_after(at)]).await;
    let begin = Instant::now();
    let error = bench.send(&request("hi")).await.expect_err("silence");
    assert_eq!((error.kind, error.kind.code()), (ErrorKind::Stalled, 504));
    assert_eq!(begin.elapsed().as_secs(), 120);
    bench.server.until(|p| p.closed_early == 1).await;
    Cell::Holds
}

async fn silent(dialect: Dialect) -> Cell {
    let bench = dialect
        .bench((0..3).map(|_| Reply::new([Action::Stall])))
        .await;
    let begin = Instant::now();
    let error = bench.send(&request("hi")).await.expect_err("silence");
    assert_eq!((error.kind, error.kind.code()), (ErrorKind::Timeout, 504));
    // Three attempts and the waits between them.
    assert_eq!(begin.elapsed().as_secs(), 90);
    Cell::Holds
}

async fn malformed(dialect: Dialect) -> Cell {
    let (mut reply, at) = begun(dialect);
    reply.actions.truncate(at);
    let reply = reply.then([answer::nonsense(dialect.format())]);
    let (heard, error) = amid(dialect, reply).await;
    assert_eq!(
        (heard.as_str(), error.kind),
        ("alpha", ErrorKind::Malformed)
    );
    assert!(error.message.contains("{oops"), "{error}");
    Cell::Holds
}

async fn reported(dialect: Dialect) -> Cell {
    let class = match dialect.format() {
        Format::OpenAi => "server_error",
        Format::Anthropic => "overloaded_error",
        Format::Google => "UNAVAILABLE",
        Format::Bedrock => "modelStreamErrorException",
    };
    let (mut reply, at) = begun(dialect);
    reply.actions.truncate(at);
    let reply = reply.then([answer::failure(dialect.format(), class, "I fell over")]);
    let (heard, error) = amid(dialect, reply).await;
    assert_eq!(heard, "alpha");
    assert_eq!(error.kind, ErrorKind::Provider { retry_after: None });
    assert!(error.message.contains("I fell over"), "{error}");
    Cell::Holds
}

async fn endless(dialect: Dialect) -> Cell {
    let (mut reply, at) = begun(dialect);
    reply.actions.truncate(at);
    let reply = match dialect.format() {
        Format::OpenAi | Format::Anthropic | Format::Google => {
            let much = "x".repeat(1 << 20);
            let begin = Action::Body("data: \"".into());
            reply
                .then([begin])
                .then((0..9).map(|_| Action::Body(much.clone())))
        }
        // Here the length comes first.
        Format::Bedrock => {
            let prelude = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
            reply.then([Action::Bytes(prelude.to_vec())])
        }
    };
    let (heard, error) = amid(dialect, reply).await;
    assert_eq!(
        (heard.as_str(), error.kind),
        ("alpha", ErrorKind::Malformed)
    );
    assert!(
        error.message.contains("event of more than 4 MiB"),
        "{error}"
    );
    Cell::Holds
}

async fn nothing(dialect: Dialect) -> Cell {
    let reply = || Reply::page(200, &[("content-type", "text/event-stream")], "");
    let bench = dialect.bench((0..4).map(|_| reply())).await;
    let error = bench.send(&request("hi")).await.expect_err("no answer");
    assert_eq!((error.kind, error.kind.code()), (ErrorKind::Malformed, 502));
    Cell::Holds
}

async fn filtered(dialect: Dialect) -> Cell {
    let reply = match dialect.format() {
        Format::OpenAi => filter_of_openai(),
        Format::Google => google::blocked("PROHIBITED_CONTENT"),
        Format::Anthropic | Format::Bedrock => {
            return Cell::Absent("answers with the filter reported");
        }
    };
    let error = error(dialect, reply).await;
    assert_eq!((error.kind, error.kind.code()), (ErrorKind::Filtered, 422));
    Cell::Holds
}

fn filter_of_openai() -> Reply {
    Reply::error(400, "content_filter", "The prompt was filtered")
}

async fn too_long(dialect: Dialect) -> Cell {
    let (class, message) = match dialect.format() {
        Format::OpenAi => (
            "context_length_exceeded",
            "This model's maximum context length is 8 tokens",
        ),
        Format::Anthropic => (
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
        ),
        Format::Google => (
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        ),
        Format::Bedrock => (
            "ValidationException",
            "Input is too long for requested model.",
        ),
    };
    let reply = answer::refusal(dialect.format(), 400, class, message);
    assert_eq!(error(dialect, reply).await.kind, ErrorKind::TooLong);
    Cell::Holds
}

async fn dropped(dialect: Dialect) -> Cell {
    let (reply, at) = begun(dialect);
    let bench = dialect.bench([reply.stall_after(at)]).await;
    let mut stream = bench.registry.stream(request("hi"));
    loop {
        let chunk = stream.next().await.expect("no end before the text");
        if matches!(chunk.expect("no error"), Chunk::Text(_)) {
            break;
        }
    }
    bench.server.until(|p| p.stalled == 1).await;
    drop(stream);
    bench.server.until(|p| p.closed_early == 1).await;
    Cell::Holds
}
