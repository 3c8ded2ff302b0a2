//! The thread on which handshakes run.
//!
//! Invariants: so many at a time, and so many of one source; each ends within its
//! time; what is over is closed without a word, since nothing can be said before
//! the handshake.

use crate::crowd::{Crowd, Limits, Place};
use crate::tcp::{TcpListener, source_of};
use rustls::{ServerConfig, ServerConnection};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Handshakes at a time, each a few ten kilobytes: 32 MiB at most.
const AT_ONCE: usize = 1024;

/// How long one may take: the time that a stranger has to say hello.
const WITHIN: Duration = match cfg!(test) {
    false => Duration::from_secs(5),
    true => Duration::from_millis(500),
};

/// Connections that wait for the thread, or for the accept loop.
const WAITING: usize = 128;

/// A connection whose handshake is over.
pub(super) struct Shaken {
    pub(super) stream: TcpStream,
    pub(super) session: ServerConnection,
    pub(super) peer: SocketAddr,
}

struct Begun {
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
}

/// The handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Handshakes {
    begin: Option<mpsc::Sender<Begun>>,
    done: mpsc::Receiver<Shaken>,
    crowd: Crowd,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Begun").field(&self.peer).finish()
    }
}

impl Handshakes {
    pub(super) fn start(config: Arc<ServerConfig>) -> io::Result<Self> {
        let (begin, begun) = mpsc::channel(WAITING);
        let (tell, done) = mpsc::channel(WAITING);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let acceptor = TlsAcceptor::from(config);
        let thread = std::thread::Builder::new()
            .name("tls".into())
            .spawn(move || runtime.block_on(shake(begun, tell, acceptor)))?;
        let crowd = Crowd::new(Limits {
            connections: AT_ONCE,
            ..Limits::default()
        });
        Ok(Self {
            begin: Some(begin),
            done,
            crowd,
            thread: Some(thread),
        })
    }

    /// The next connection whose handshake is over; meanwhile those of a listener are
    /// handed to the thread, as fast as it takes them. Safe to cancel.
    pub(super) async fn next(&mut self, tcp: &TcpListener) -> io::Result<Shaken> {
        let Self {
            begin, done, crowd, ..
        } = self;
        let begin = begin.as_ref().ok_or_else(ended)?;
        loop {
            // Who finds no room waits where the system keeps it, and is not closed.
            let arriving = async {
                let room = begin.reserve().await.map_err(|_| ended())?;
                Ok::<_, io::Error>((room, tcp.next().await?))
            };
            tokio::select! {
                biased;
                shaken = done.recv() => return shaken.ok_or_else(ended),
                arrived = arriving => {
                    let (room, (stream, peer)) = arrived?;
                    if let Some(begun) = begun(crowd, stream, peer) {
                        room.send(begun);
                    }
                }
            }
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread for TLS handshakes has ended")
}

/// Gives a connection its place; `None` closes it.
fn begun(crowd: &Crowd, stream: tokio::net::TcpStream, peer: SocketAddr) -> Option<Begun> {
    let mut place = crowd.enter(Some(source_of(peer))).ok()?;
    place.is_strangers().ok()?;
    Some(Begun {
        stream: stream.into_std().ok()?,
        peer,
        place,
    })
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        self.begin = None;
        self.done.close();
        if let Some(thread) = self.thread.take() {
            // It waits for nobody once its channel is closed.
            let _ = thread.join();
        }
    }
}

async fn shake(
    mut begun: mpsc::Receiver<Begun>,
    done: mpsc::Sender<Shaken>,
    acceptor: TlsAcceptor,
) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            next = begun.recv() => {
                let Some(next) = next else { break };
                running.spawn(tokio::time::timeout(
                    WITHIN,
                    one(next, done.clone(), acceptor.clone()),
                ));
            }
            Some(_) = running.join_next() => {}
        }
    }
    running.shutdown().await;
}

async fn one(begun: Begun, done: mpsc::Sender<Shaken>, acceptor: TlsAcceptor) {
    let Begun {
        stream,
        peer,
        place,
    } = begun;
    let shaken = async {
        let stream = tokio::net::TcpStream::from_std(stream)?;
        let (stream, session) = acceptor.accept(stream).await?.into_inner();
        let stream = stream.into_std()?;
        Ok::<_, io::Error>(Shaken {
            stream,
            session,
            peer,
        })
    };
    match shaken.await {
        Ok(shaken) => {
            // The listener may have gone meanwhile.
            let _ = done.send(shaken).await;
        }
        Err(error) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
    }
    drop(place);
}
