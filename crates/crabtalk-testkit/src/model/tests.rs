use super::*;
use crabtalk_domain::ToolCall;
use futures_util::{FutureExt, StreamExt};
use serde_json::json;

fn request(messages: Vec<Message>) -> Request {
    Request::new("s", messages.into_iter().map(Arc::new).collect::<Vec<_>>())
}

fn hello() -> Request {
    request(vec![Message::user("hello")])
}

fn calling(ids: &[&str]) -> Message {
    let mut message = Message::assistant("");
    message.tool_calls = ids
        .iter()
        .map(|id| ToolCall {
            id: (*id).into(),
            name: "t".into(),
            arguments: "{}".into(),
        })
        .collect();
    message
}

#[tokio::test]
async fn replies_come_in_order_and_are_recorded() {
    let model = ScriptedModel::new(vec![
        Reply::text("hi"),
        Reply::tools([("read", json!({"path": "x"})), ("bash", json!({}))]),
        Reply::Error(Error::new(ErrorKind::Refused, "no")),
    ]);
    let first = model.send(hello()).await.expect("scripted");
    assert_eq!(
        (first.content.as_str(), first.stop),
        ("hi", Some(StopReason::Done))
    );
    let second = model.send(hello()).await.expect("scripted");
    let calls: Vec<_> = second
        .tool_calls
        .iter()
        .map(|c| (&*c.id, &*c.arguments))
        .collect();
    assert_eq!(calls, [("call-1", "{\"path\":\"x\"}"), ("call-2", "{}")]);
    assert_eq!(
        model.send(hello()).await.expect_err("scripted").kind,
        ErrorKind::Refused
    );
    assert!(
        model
            .send(hello())
            .await
            .expect_err("exhausted")
            .message
            .contains("no reply left")
    );
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn a_hanging_reply_waits_and_notices_its_drop() {
    let model = ScriptedModel::new(vec![Reply::hang(), Reply::hang_after("so far")]);
    let mut first = model.send(hello());
    assert!(first.as_mut().now_or_never().is_none());
    model.until(|p| p.hung == 1).await;
    model.release();
    assert_eq!(first.await.expect("released").content, "released");
    let mut second = model.stream(hello());
    assert!(matches!(
        second.next().await,
        Some(Ok(Chunk::Answering { .. }))
    ));
    assert_eq!(second.next().await, Some(Ok(Chunk::Text("so far".into()))));
    drop(second);
    assert_eq!(
        model.progress(),
        Counters {
            requests: 2,
            hung: 1,
            dropped: 1
        }
    );
}

#[tokio::test]
async fn what_a_provider_would_refuse_is_refused() {
    let mut injected = Message::injected("context");
    injected.auto_injected = true;
    for (messages, problem) in [
        (vec![], "no message"),
        (
            vec![Message::assistant("hi"), Message::user("a")],
            "first message",
        ),
        (
            vec![Message::user("a"), Message::tool("x", "r", false)],
            "result of no call",
        ),
        (
            vec![Message::user("a"), calling(&["1"]), Message::user("b")],
            "has no result",
        ),
        (
            vec![Message::user("a"), calling(&["1"])],
            "no result at the end",
        ),
        (vec![Message::user("a"), calling(&["1", "1"])], "twice"),
        (
            vec![Message::user("a"), Message::assistant("b")],
            "last message",
        ),
        (vec![injected], "injected"),
        (
            vec![
                Message::user("a"),
                Message::assistant("<from agent=\"g\">x</from>"),
                Message::user("b"),
            ],
            "already rendered",
        ),
    ] {
        let model = ScriptedModel::new(vec![Reply::text("fine")]);
        let error = model.send(request(messages)).await.expect_err(problem);
        assert!(
            error.message.contains(problem),
            "{} / {problem}",
            error.message
        );
        assert!(!model.problems().is_empty());
    }
    let fine = vec![
        Message::user("a"),
        calling(&["1", "2"]),
        Message::tool("2", "r", false),
        Message::tool("1", "r", false),
    ];
    let model = ScriptedModel::new(vec![Reply::text("fine")]);
    assert_eq!(
        model.send(request(fine)).await.expect("valid").content,
        "fine"
    );
}
