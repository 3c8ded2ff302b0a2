use super::*;
use crate::beside::tests::without_threads;
use futures_util::poll;
use std::pin::pin;

/// What a program's output becomes, and what of it is no message.
async fn heard(output: &[u8]) -> (Vec<ServerJsonRpcMessage>, String, Option<&'static str>) {
    let (babble, given_up) = (Complaints::default(), GivenUp::default());
    let mut pipes = Pipes::new(output, tokio::io::sink(), babble.clone(), given_up.clone());
    let mut messages = Vec::new();
    while let Some(message) = pipes.receive().await {
        messages.push(message);
    }
    (messages, babble.text(), given_up.get().copied())
}

fn error_of(message: &ServerJsonRpcMessage) -> (Option<RequestId>, String) {
    match message {
        JsonRpcMessage::Error(error) => (error.id.clone(), error.error.message.to_string()),
        JsonRpcMessage::Request(_)
        | JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_) => panic!("{message:?}"),
    }
}

#[tokio::test]
async fn a_line_is_a_message_and_what_is_none_is_kept_as_words() {
    let output = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\nWelcome\n\
        {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\
        {\"level\":\"info\",\"said\":\"a line of a log\"}\nhalf a li";
    let (messages, babble, given_up) = heard(output.as_bytes()).await;
    assert!(
        matches!(
            messages[..],
            [JsonRpcMessage::Response(_), JsonRpcMessage::Notification(_)]
        ),
        "{messages:?}"
    );
    assert_eq!((babble.as_str(), given_up), ("Welcome", None));
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_of_its_call() {
    let deep = "[".repeat(100_000);
    for (line, wanted) in [
        (
            r#"{"jsonrpc": "2.0", "id": 7, "result": {"n": NaN}}"#.to_owned(),
            Some(7),
        ),
        (
            r#"{"result": {"n": NaN, "id": 3}, "jsonrpc": "2.0", "id": 7 }"#.to_owned(),
            Some(7),
        ),
        (r#"{"id":7,"result":{}}"#.to_owned(), Some(7)),
        (
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{deep}}}"#),
            Some(7),
        ),
        // An id of something else, or of a question, is none of ours.
        (
            r#"{"jsonrpc":"2.0","result":{"n": NaN, "id": 3}}"#.to_owned(),
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":NaN}"#.to_owned(),
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","result":NaN}"#.to_owned(),
            None,
        ),
        (r#"{"id": 7, "said": "result"}"#.to_owned(), None),
        ("{".to_owned(), None),
    ] {
        let (messages, babble, _) = heard(format!("{line}\n").as_bytes()).await;
        assert_eq!(messages.len(), usize::from(wanted.is_some()), "{line:.80}");
        for message in messages {
            let (id, why) = error_of(&message);
            assert_eq!(id, wanted.map(RequestId::Number), "{line:.80}");
            assert!(why.starts_with("its answer cannot be read: "), "{why}");
        }
        assert_eq!(babble, "", "{line:.80}");
    }
}

#[tokio::test]
async fn a_long_answer_is_an_error_of_its_call_wherever_its_number_stands() {
    let long = "x".repeat(MAX_LINE);
    let output = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{long}\"}}\n\
         {{\"result\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":8}}\n{long}{long}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{{}}}}\n"
    );
    let (messages, _, given_up) = heard(output.as_bytes()).await;
    let [first, second, JsonRpcMessage::Response(_)] = &messages[..] else {
        panic!("{}", messages.len())
    };
    for (message, id) in [(first, 7), (second, 8)] {
        let (of, why) = error_of(message);
        assert_eq!(of, Some(RequestId::Number(id)));
        assert!(
            why.contains(&format!("more than {MAX_LINE} bytes")),
            "{why}"
        );
    }
    assert_eq!(given_up, None);
}

#[test]
fn a_long_line_is_read_beside_and_what_follows_waits_for_it() {
    let long = "x".repeat(MAX_AT_ONCE);
    let output = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"x\":\"{long}\"}}}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{}}}}\n"
    );
    let pipes = |output| Pipes::new(output, tokio::io::sink(), <_>::default(), <_>::default());
    let id = |message: Option<ServerJsonRpcMessage>| match message {
        Some(JsonRpcMessage::Response(response)) => response.id,
        other => panic!("{other:?}"),
    };
    let (at_once, first) = without_threads(async { pipes(output.as_bytes()).receive().await });
    assert!(at_once && id(first) == RequestId::Number(1));
    let (at_once, rest) = without_threads(async {
        let mut pipes = pipes(output.as_bytes());
        pipes.receive().await;
        // Whoever waits may stop waiting, and wait again.
        assert!(poll!(pin!(pipes.receive())).is_pending());
        [pipes.receive().await, pipes.receive().await].map(id)
    });
    assert!(!at_once);
    assert_eq!(rest, [2, 3].map(RequestId::Number));
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    use tokio::io::AsyncReadExt;
    let (babble, given_up) = (Complaints::default(), GivenUp::default());
    let endless = tokio::io::repeat(b'y').take(u64::MAX);
    let mut pipes = Pipes::new(endless, tokio::io::sink(), babble, given_up.clone());
    assert!(pipes.receive().await.is_none());
    assert_eq!(given_up.get(), Some(&WITHOUT_END));
    assert!(pipes.line.bytes.capacity() <= 2 * ENDS, "little is kept");
}
