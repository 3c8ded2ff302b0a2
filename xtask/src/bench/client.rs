//! A client of the daemon that does nothing but read, in blocking calls.

use super::direct::Timing;
use anyhow::{bail, ensure};
use bytes::BytesMut;
use crabtalk_proto::{
    ClientMessage, CreateTokenMsg, HelloMsg, ListConversationsMsg, NewToken, PROTOCOL_VERSION,
    Ping, SearchMsg, ServerMessage, StreamEvent, StreamMsg, codec, server_message, stream_event,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The bytes' way to the daemon.
pub(crate) trait Way: Read + Write + Send {}

impl<W: Read + Write + Send> Way for W {}

/// A connection to the daemon.
pub(crate) struct Client {
    stream: Box<dyn Way>,
    chunk: Vec<u8>,
    input: BytesMut,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> std::io::Result<Self> {
        Ok(Self::over(UnixStream::connect(socket)?))
    }

    /// Over a stream that leads there.
    pub(crate) fn over(stream: impl Way + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            chunk: vec![0; 64 * 1024],
            input: BytesMut::new(),
        }
    }

    /// Says who this is.
    pub(crate) fn hello(&mut self, token: &str) -> anyhow::Result<()> {
        self.send(HelloMsg {
            protocol_version: PROTOCOL_VERSION,
            token: token.to_owned(),
            client: "bench".into(),
            ..HelloMsg::default()
        })?;
        match self.receive()?.msg {
            Some(server_message::Msg::Welcome(_)) => Ok(()),
            other => bail!("no Welcome: {other:?}"),
        }
    }

    /// Makes a token for this name.
    pub(crate) fn new_token(&mut self, name: &str) -> anyhow::Result<NewToken> {
        self.send(CreateTokenMsg {
            name: name.to_owned(),
            role: "talk".into(),
            senders: vec!["*".into()],
            ..CreateTokenMsg::default()
        })?;
        match self.receive()?.msg {
            Some(server_message::Msg::NewToken(made)) => Ok(made),
            other => bail!("no token: {other:?}"),
        }
    }

    fn send(&mut self, message: impl Into<ClientMessage>) -> anyhow::Result<()> {
        let mut frame = BytesMut::new();
        codec::encode(&message.into(), &mut frame)?;
        self.stream.write_all(&frame)?;
        // What encrypts may hold it back.
        self.stream.flush()?;
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<ServerMessage> {
        loop {
            if let Some(message) = codec::decode(&mut self.input)? {
                return Ok(message);
            }
            let count = self.stream.read(&mut self.chunk)?;
            ensure!(count > 0, "the daemon closed the connection");
            self.input.extend_from_slice(&self.chunk[..count]);
        }
    }

    /// Asks whether it is there.
    pub(crate) fn ping(&mut self) -> anyhow::Result<()> {
        self.send(Ping {})?;
        match self.receive()?.msg {
            Some(server_message::Msg::Pong(_)) => Ok(()),
            other => bail!("no Pong: {other:?}"),
        }
    }

    /// How long the list of the latest conversations takes.
    pub(crate) fn list_latest(&mut self, limit: u32) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.send(ListConversationsMsg {
            limit,
            ..ListConversationsMsg::default()
        })?;
        match self.receive()?.msg {
            Some(server_message::Msg::ConversationList(list)) => {
                ensure!(list.conversations.len() == limit as usize, "a short list");
                Ok(begun.elapsed())
            }
            other => bail!("no list: {other:?}"),
        }
    }

    /// Whether a search looks through all archives already. It indexes for some
    /// seconds what is not.
    pub(crate) fn searches_all(&mut self, agent: &str, sender: &str) -> anyhow::Result<bool> {
        self.send(SearchMsg {
            agent: agent.into(),
            sender: sender.into(),
            query: "length".into(),
            limit: 1,
        })?;
        match self.receive()?.msg {
            Some(server_message::Msg::SearchResults(found)) => Ok(!found.incomplete),
            other => bail!("no results: {other:?}"),
        }
    }

    /// One turn, read to its end.
    pub(crate) fn turn(&mut self, agent: &str, sender: &str) -> anyhow::Result<Timing> {
        let begun = Instant::now();
        self.send(StreamMsg {
            agent: agent.into(),
            content: "Say something.".into(),
            sender: Some(sender.into()),
            ..StreamMsg::default()
        })?;
        let mut first = None;
        loop {
            match self.receive()?.msg {
                Some(server_message::Msg::Stream(StreamEvent { event, .. })) => match event {
                    Some(stream_event::Event::Chunk(_)) => {
                        first.get_or_insert_with(|| begun.elapsed());
                    }
                    Some(stream_event::Event::End(end)) => {
                        ensure!(end.code == 0, "the run failed: {} {}", end.code, end.error);
                        let whole = begun.elapsed();
                        return Ok(Timing {
                            first: first.unwrap_or(whole),
                            whole,
                        });
                    }
                    Some(_) | None => {}
                },
                other => bail!("no event of a run: {other:?}"),
            }
        }
    }
}
