//! A daemon that sends scripted frames.

use crate::{Client, Endpoint};
use bytes::BytesMut;
use crabtalk_proto::client_message::Msg;
use crabtalk_proto::{ClientMessage, Pong, ServerMessage, WelcomeMsg, codec};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The answers of one connection, after its Welcome.
pub(crate) struct Turn {
    pub(crate) says: Vec<ServerMessage>,
    /// Whether the connection is closed after the answers.
    pub(crate) closes: bool,
}

/// Sends the messages and closes the connection.
pub(crate) fn cut<M: Into<ServerMessage>>(says: impl IntoIterator<Item = M>) -> Turn {
    Turn {
        closes: true,
        ..stay(says)
    }
}

/// Sends the messages and keeps the connection open.
pub(crate) fn stay<M: Into<ServerMessage>>(says: impl IntoIterator<Item = M>) -> Turn {
    Turn {
        says: says.into_iter().map(Into::into).collect(),
        closes: false,
    }
}

pub(crate) struct Fake {
    folder: TempDir,
    requests: mpsc::Receiver<Msg>,
    _server: JoinSet<()>,
}

impl Fake {
    /// A daemon that answers everything with a Pong.
    pub(crate) async fn start() -> Self {
        Self::turns([]).await
    }

    /// A daemon that answers each connection with the next turn.
    pub(crate) async fn turns(turns: impl IntoIterator<Item = Turn>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("daemon.sock")).unwrap();
        let turns: VecDeque<Turn> = turns.into_iter().collect();
        let turns = Arc::new(Mutex::new(turns));
        let (heard, requests) = mpsc::channel(64);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (turns, heard) = (Arc::clone(&turns), heard.clone());
                connections.spawn(async move {
                    let _ = answer(stream, &turns, &heard).await;
                });
            }
        });
        Self {
            folder,
            requests,
            _server: server,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Endpoint::of_home(self.folder.path()), "test/1")
    }

    /// The next request after a Hello.
    pub(crate) async fn heard(&mut self) -> Msg {
        self.requests.recv().await.unwrap()
    }
}

async fn say(stream: &mut UnixStream, message: &ServerMessage) -> Result<(), codec::FrameError> {
    let mut frame = BytesMut::new();
    codec::encode(message, &mut frame)?;
    Ok(stream.write_all(&frame).await?)
}

async fn answer(
    mut stream: UnixStream,
    turns: &Mutex<VecDeque<Turn>>,
    heard: &mpsc::Sender<Msg>,
) -> Result<(), codec::FrameError> {
    let mut came = BytesMut::new();
    loop {
        let Some(message) = codec::decode::<ClientMessage>(&mut came)? else {
            if stream.read_buf(&mut came).await? == 0 {
                return Err(codec::end_of_file(&came));
            }
            continue;
        };
        let request = message.msg.expect("a request");
        if let Msg::Hello(hello) = &request {
            assert_eq!(hello.client, "test/1");
            let welcome = WelcomeMsg {
                daemon_version: crate::VERSION.into(),
                ..WelcomeMsg::default()
            };
            say(&mut stream, &welcome.into()).await?;
            continue;
        }
        heard.send(request).await.unwrap();
        let turn = turns.lock().unwrap().pop_front();
        let turn = turn.unwrap_or_else(|| stay([Pong::default()]));
        for message in &turn.says {
            say(&mut stream, message).await?;
        }
        if turn.closes {
            return Ok(());
        }
    }
}
