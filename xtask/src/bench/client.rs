//! A client of the daemon that does nothing but read, in blocking calls.

use super::direct::Timing;
use anyhow::{bail, ensure};
use bytes::BytesMut;
use crabtalk_proto::{
    ClientMessage, ListConversationsMsg, Ping, SearchConversationsMsg, ServerMessage, StreamEvent,
    StreamMsg, codec, server_message, stream_event,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection to the daemon.
pub(crate) struct Client {
    stream: UnixStream,
    chunk: Vec<u8>,
    input: BytesMut,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> std::io::Result<Self> {
        Ok(Self {
            stream: UnixStream::connect(socket)?,
            chunk: vec![0; 64 * 1024],
            input: BytesMut::new(),
        })
    }

    fn send(&mut self, message: impl Into<ClientMessage>) -> anyhow::Result<()> {
        let mut frame = BytesMut::new();
        codec::encode(&message.into(), &mut frame)?;
        self.stream.write_all(&frame)?;
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

    /// How long a search of all conversations takes that finds so many messages.
    pub(crate) fn search(&mut self, query: &str, found: u32) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.send(SearchConversationsMsg {
            query: query.into(),
            limit: found,
            ..SearchConversationsMsg::default()
        })?;
        match self.receive()?.msg {
            Some(server_message::Msg::FoundMessageList(list)) => {
                ensure!(list.messages.len() == found as usize, "too few are found");
                Ok(begun.elapsed())
            }
            other => bail!("no messages: {other:?}"),
        }
    }

    /// One turn, read to its end.
    pub(crate) fn turn(&mut self, agent: &str, sender: &str) -> anyhow::Result<Timing> {
        self.say(StreamMsg {
            agent: agent.into(),
            content: "Say something.".into(),
            sender: Some(sender.into()),
            ..StreamMsg::default()
        })
    }

    /// One turn with this message, read to its end.
    pub(crate) fn say(&mut self, message: StreamMsg) -> anyhow::Result<Timing> {
        let begun = Instant::now();
        self.send(message)?;
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
