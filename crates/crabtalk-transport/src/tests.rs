//! Doubles for the tests of this crate: a server whose streams the test
//! drives, and connections in memory.

use crate::accept::Accept;
use crate::crowd::Source;
use bytes::{Buf, BytesMut};
use crabtalk_proto::{
    AgentEventMsg, ClientMessage, ConfigMsg, GetAgentMsg, GetConfig, Ping, ReloadMsg, Role,
    SendMsg, SendResponse, Server, ServerMessage, Status, StreamChunk, StreamEnd, StreamEvent,
    StreamMsg, SubscribeEvents, codec, server_message, stream_event,
};
use futures_core::Stream;
use std::future::{Ready, pending, ready};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) const VERSION: &str = "9.9.9";

/// A server whose `stream` relays the test's events, and whose `send` never
/// answers.
#[derive(Clone)]
pub(crate) struct Scripted {
    events: Arc<Mutex<Option<mpsc::Receiver<StreamEvent>>>>,
    pub(crate) pings: Arc<Mutex<u32>>,
    /// Revokes the access of its connections.
    pub(crate) cut: CancellationToken,
}

impl Scripted {
    /// The sender's `closed` resolves when the reply was dropped.
    pub(crate) fn new() -> (mpsc::Sender<StreamEvent>, Self) {
        Self::with_capacity(64)
    }

    /// Like [`Self::new`], with room for `capacity` events.
    pub(crate) fn with_capacity(capacity: usize) -> (mpsc::Sender<StreamEvent>, Self) {
        let (sender, receiver) = mpsc::channel(capacity);
        let events = Arc::new(Mutex::new(Some(receiver)));
        (
            sender,
            Self {
                events,
                pings: Arc::default(),
                cut: CancellationToken::new(),
            },
        )
    }
}

impl Server for Scripted {
    fn version(&self) -> &str {
        VERSION
    }

    fn role(&self) -> Role {
        Role::Admin
    }

    fn ended(&self) -> impl Future<Output = Status> + Send + 'static {
        let cut = self.cut.clone();
        async move {
            cut.cancelled().await;
            Status::unauthorized("the token was removed")
        }
    }

    async fn ping(&self, _: Ping) -> Result<(), Status> {
        *self.pings.lock().unwrap() += 1;
        Ok(())
    }

    async fn send(&self, request: SendMsg) -> Result<SendResponse, Status> {
        if request.content == "hang" {
            pending::<()>().await;
        }
        Ok(SendResponse {
            content: request.content,
            ..SendResponse::default()
        })
    }

    async fn reload(&self, _: ReloadMsg) -> Result<(), Status> {
        panic!("a bug")
    }

    /// Answers with a message above the frame limit.
    async fn get_config(&self, _: GetConfig) -> Result<ConfigMsg, Status> {
        Ok(ConfigMsg {
            config: "x".repeat(codec::MAX_FRAME),
        })
    }

    fn stream(
        self: Arc<Self>,
        _: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        let mut events = self
            .events
            .lock()
            .unwrap()
            .take()
            .expect("one stream per test");
        futures_util::stream::poll_fn(move |cx| events.poll_recv(cx).map(|event| event.map(Ok)))
    }

    /// A stream without events or end.
    fn subscribe_events(
        self: Arc<Self>,
        _: SubscribeEvents,
    ) -> impl Stream<Item = Result<AgentEventMsg, Status>> + Send + 'static {
        futures_util::stream::pending()
    }
}

pub(crate) fn chunk(content: impl Into<String>) -> StreamEvent {
    stream_event::Event::Chunk(StreamChunk {
        content: content.into(),
    })
    .into()
}

pub(crate) fn end() -> StreamEvent {
    stream_event::Event::End(StreamEnd::default()).into()
}

pub(crate) fn send(content: &str) -> ClientMessage {
    SendMsg {
        content: content.into(),
        ..SendMsg::default()
    }
    .into()
}

pub(crate) fn unknown_agent() -> ClientMessage {
    GetAgentMsg::default().into()
}

pub(crate) fn frames(messages: impl IntoIterator<Item = ClientMessage>) -> BytesMut {
    let mut bytes = BytesMut::new();
    for message in messages {
        codec::encode(&message, &mut bytes).expect("small");
    }
    bytes
}

/// Renders a message for comparison: text, code and message, or the variant's name.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects"
)]
pub(crate) fn show(message: ServerMessage) -> String {
    use server_message::Msg;
    match message.msg.expect("known") {
        Msg::Error(error) => format!("{}: {}", error.code, error.message),
        Msg::Pong(_) => "pong".into(),
        Msg::Response(response) => response.content,
        Msg::Stream(StreamEvent {
            event: Some(stream_event::Event::Chunk(chunk)),
            ..
        }) => chunk.content,
        Msg::Stream(StreamEvent {
            event: Some(stream_event::Event::End(end)),
            ..
        }) => {
            format!("end {}{}", end.code, end.error)
        }
        other => format!("{other:?}"),
    }
}

/// Reads exactly one answer; `closed` at end of input.
pub(crate) async fn next(reader: &mut (impl AsyncRead + Unpin)) -> String {
    match frame(reader)
        .await
        .map(|mut frame| codec::decode(&mut frame))
    {
        Ok(Ok(Some(message))) => show(message),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => "closed".into(),
        other => format!("{other:?}"),
    }
}

async fn frame(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<BytesMut> {
    let mut frame = BytesMut::zeroed(codec::HEADER);
    reader.read_exact(&mut frame).await?;
    let length = (&frame[..]).get_u32() as usize;
    frame.resize(codec::HEADER + length, 0);
    reader.read_exact(&mut frame[codec::HEADER..]).await?;
    Ok(frame)
}

/// Accepts connections that the test sends.
pub(crate) struct InMemory(pub(crate) mpsc::Receiver<io::Result<DuplexStream>>);

impl Accept for InMemory {
    type Read = tokio::io::ReadHalf<DuplexStream>;
    type Write = WriteHalf<DuplexStream>;
    type Peer = ();
    type Opening = Ready<io::Result<(Self::Read, Self::Write)>>;

    async fn accept(&mut self) -> io::Result<(Self::Opening, ())> {
        match self.0.recv().await {
            Some(stream) => Ok((ready(Ok(tokio::io::split(stream?))), ())),
            None => pending().await,
        }
    }

    fn source((): &()) -> Option<Source> {
        None
    }
}

pub(crate) async fn write(stream: &mut (impl tokio::io::AsyncWrite + Unpin), bytes: &[u8]) {
    stream.write_all(bytes).await.expect("the peer reads");
}
