//! The thread on which handshakes run.
//!
//! Invariants: so many at a time, and so many of one source; each ends within its
//! time; what is over it is closed without a word, since nothing can be said
//! before the handshake.

use crate::crowd::{Crowd, Limits, Place};
use crate::tcp::source_of;
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

/// Connections that wait for the thread, or for the accept loop. Whoever comes
/// when all are waiting is closed.
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

    /// Hands a connection to the thread, or closes it if there is no room.
    pub(super) fn begin(&self, stream: tokio::net::TcpStream, peer: SocketAddr) {
        let Ok((place, wait)) = self.crowd.enter(Some(source_of(peer))) else {
            return;
        };
        if !wait.is_zero() {
            // It comes too fast, and shall not cost a handshake for it.
            return;
        }
        let Ok(stream) = stream.into_std() else {
            return;
        };
        let begun = Begun {
            stream,
            peer,
            place,
        };
        if let Some(begin) = &self.begin {
            // Dropped, it is closed.
            let _ = begin.try_send(begun);
        }
    }

    /// The next connection whose handshake is over. Safe to cancel.
    pub(super) async fn done(&mut self) -> io::Result<Shaken> {
        let done = self.done.recv().await;
        done.ok_or_else(|| io::Error::other("the thread for TLS handshakes has ended"))
    }
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
