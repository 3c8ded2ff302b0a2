use super::*;
use crate::codec::FrameError;
use crate::status::Status;
use crate::{ErrorMsg, code};
use futures_util::FutureExt;
use std::collections::VecDeque;

/// Answers requests with prepared messages.
struct Canned(VecDeque<ServerMessage>);

impl Canned {
    fn new(answers: impl IntoIterator<Item = ServerMessage>) -> Self {
        Self(answers.into_iter().collect())
    }
}

impl Client for Canned {
    async fn request(&mut self, _: ClientMessage) -> Result<ServerMessage, ClientError> {
        self.0
            .pop_front()
            .ok_or(ClientError::Connection(FrameError::Closed))
    }

    fn request_stream(
        &mut self,
        _: ClientMessage,
    ) -> impl Stream<Item = Result<ServerMessage, ClientError>> + Send {
        futures_util::stream::iter(self.0.drain(..).map(Ok))
    }
}

fn event(event: stream_event::Event) -> ServerMessage {
    StreamEvent::from(event).into()
}

fn chunk(content: &str) -> ServerMessage {
    event(stream_event::Event::Chunk(StreamChunk {
        content: content.into(),
    }))
}

fn streamed(answers: Vec<ServerMessage>) -> Vec<String> {
    let mut client = Canned::new(answers);
    let events: Vec<_> = client
        .stream(StreamMsg::default())
        .collect()
        .now_or_never()
        .expect("ready");
    let show = |event: Result<StreamEvent, ClientError>| match event {
        Ok(StreamEvent {
            event: Some(stream_event::Event::Chunk(chunk)),
            ..
        }) => chunk.content,
        Ok(event) if event.is_end() => "end".into(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    };
    events.into_iter().map(show).collect()
}

#[test]
fn response_is_typed() {
    let stats = DaemonStats {
        uptime_secs: 7,
        ..DaemonStats::default()
    };
    let mut client = Canned::new([stats.clone().into(), Pong::default().into()]);
    let got = client
        .get_stats(GetStats::default())
        .now_or_never()
        .expect("ready");
    assert_eq!(got.expect("stats"), stats);
    client
        .reload(ReloadMsg {})
        .now_or_never()
        .expect("ready")
        .expect("pong");
}

#[test]
fn error_message_is_a_refusal() {
    let mut client = Canned::new([Status::not_found("no such run").into()]);
    let error = client
        .kill(KillMsg::default())
        .now_or_never()
        .expect("ready")
        .expect_err("404");
    assert_eq!(error.code(), Some(code::NOT_FOUND));
    assert_eq!(error.to_string(), "no such run (404)");
}

#[test]
fn other_response_is_unexpected() {
    let mut client = Canned::new([Pong::default().into()]);
    let error = client
        .get_stats(GetStats::default())
        .now_or_never()
        .expect("ready")
        .expect_err("pong");
    assert!(matches!(error, ClientError::Unexpected("Stats")));
}

#[test]
fn stream_ends_after_its_end() {
    let end = event(stream_event::Event::End(StreamEnd::default()));
    assert_eq!(
        streamed(vec![chunk("a"), chunk("b"), end, chunk("late")]),
        ["a", "b", "end"]
    );
}

#[test]
fn stream_ends_after_an_error() {
    let error = ErrorMsg {
        code: 429,
        message: "queue full".into(),
    };
    let error = ServerMessage {
        msg: Some(server_message::Msg::Error(error)),
    };
    assert_eq!(streamed(vec![error, chunk("late")]), ["queue full (429)"]);
}
