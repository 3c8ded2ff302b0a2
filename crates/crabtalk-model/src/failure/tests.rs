use super::*;
use http::HeaderValue;

fn peer() -> Peer {
    Peer {
        provider: "p".into(),
        url: "http://h/v1".into(),
        secrets: vec!["sk-planted".into(), "1".into()],
    }
}

fn refused(status: u16, body: &str) -> Error {
    let status = StatusCode::from_u16(status).expect("a status");
    peer().refused(
        status,
        &HeaderMap::new(),
        body.as_bytes(),
        "m-1",
        "\"sonnet\"",
    )
}

#[test]
fn statuses_and_words_become_kinds() {
    let limited = ErrorKind::RateLimited { retry_after: None };
    let provider = ErrorKind::Provider { retry_after: None };
    for (status, body, kind) in [
        (
            401,
            r#"{"error":{"message":"bad key"}}"#,
            ErrorKind::Refused,
        ),
        (403, "", ErrorKind::Refused),
        (402, "", ErrorKind::Refused),
        (
            404,
            r#"{"error":{"message":"The model `m-1` does not exist","code":"model_not_found"}}"#,
            ErrorKind::UnknownModel,
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m-1"}}"#,
            ErrorKind::UnknownModel,
        ),
        (404, "<html>nothing here</html>", ErrorKind::Invalid),
        (
            400,
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            ErrorKind::TooLong,
        ),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
            ErrorKind::TooLong,
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8"}}"#,
            ErrorKind::TooLong,
        ),
        (
            400,
            r#"{"error":{"code":"content_filter","message":"no"}}"#,
            ErrorKind::Filtered,
        ),
        (
            400,
            r#"{"error":{"message":"tools[0] is wrong"}}"#,
            ErrorKind::Invalid,
        ),
        (413, "", ErrorKind::TooLong),
        (422, r#"{"detail":"wrong"}"#, ErrorKind::Invalid),
        (301, "", ErrorKind::Invalid),
        (429, "", limited),
        (
            429,
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
            ErrorKind::Refused,
        ),
        (500, "oops", provider),
        (503, "", provider),
        (
            529,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            provider,
        ),
    ] {
        assert_eq!(refused(status, body).kind, kind, "{status} {body}");
    }
}

#[test]
fn errors_in_a_stream_become_kinds() {
    for (json, kind) in [
        (
            r#"{"type":"overloaded_error","message":"x"}"#,
            ErrorKind::Provider { retry_after: None },
        ),
        (
            r#"{"error":{"type":"rate_limit_error"}}"#,
            ErrorKind::RateLimited { retry_after: None },
        ),
        (
            r#"{"error":{"code":429,"message":"x"}}"#,
            ErrorKind::RateLimited { retry_after: None },
        ),
        (
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            ErrorKind::TooLong,
        ),
        (
            r#"{"error":"it broke"}"#,
            ErrorKind::Provider { retry_after: None },
        ),
        (
            r#"{"error":{"type":"invalid_request_error"}}"#,
            ErrorKind::Invalid,
        ),
    ] {
        let json = serde_json::from_str(json).expect("json");
        assert_eq!(peer().in_stream(&json).kind, kind, "{json}");
    }
}

#[test]
fn quotes_are_short_and_redacted() {
    let body = format!(
        r#"{{"error":{{"message":"bad key sk-planted {}"}}}}"#,
        "x".repeat(5000)
    );
    let error = refused(401, &body);
    assert!(error.message.contains("bad key *** xxx"), "{error}");
    assert!(
        error.message.contains("check its api_key") && error.message.len() < 700,
        "{error}"
    );
    assert!(
        refused(404, r#"{"error":{"message":"no model"}}"#)
            .message
            .contains("\"sonnet\"")
    );
    assert!(refused(404, "").message.contains("http://h/v1"));
    let echo = Failure::Broken("sent sk-planted".into());
    assert!(!peer().unanswered(echo).message.contains("planted"));
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now: Timestamp = "2015-10-21T07:27:00Z".parse().expect("an instant");
    for (value, want) in [
        ("7", Some(Duration::from_secs(7))),
        ("0.5", Some(Duration::from_millis(500))),
        (
            "Wed, 21 Oct 2015 07:28:00 GMT",
            Some(Duration::from_secs(60)),
        ),
        ("Wed, 21 Oct 2015 07:00:00 GMT", Some(Duration::ZERO)),
        ("-3", None),
        ("soon", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::RETRY_AFTER,
            HeaderValue::from_str(value).expect("a value"),
        );
        assert_eq!(retry_after(&headers, now), want, "{value}");
    }
    assert_eq!(retry_after(&HeaderMap::new(), now), None);
}
