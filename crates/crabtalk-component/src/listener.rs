//! A TCP listener that refuses agents' commands.

#[cfg(target_os = "linux")]
use crabtalk_guardian::Peers;
use std::io;
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Accepts connections, except from processes that an agent started.
///
/// The daemon checks every tool call of an agent at its gate; a command that connects
/// here would bypass it. Only Linux tells which process connects; on other systems all
/// connections are accepted.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    #[cfg(target_os = "linux")]
    peers: Arc<Peers>,
    #[cfg(target_os = "linux")]
    is_private: bool,
}

impl Listener {
    /// Accepts other users and other machines, as a gateway does.
    #[must_use]
    pub fn public(inner: TcpListener) -> Self {
        Self::new(inner, false)
    }

    /// Also refuses other users of this machine: a loopback port is open to all of them, and a
    /// component acts with one user's rights.
    #[must_use]
    pub fn private(inner: TcpListener) -> Self {
        Self::new(inner, true)
    }

    #[cfg(target_os = "linux")]
    fn new(inner: TcpListener, is_private: bool) -> Self {
        Self {
            inner,
            peers: Arc::default(),
            is_private,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn new(inner: TcpListener, _is_private: bool) -> Self {
        Self { inner }
    }

    /// Waits for the next accepted connection.
    ///
    /// # Errors
    /// If the system cannot accept connections.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let (stream, from) = self.inner.accept().await?;
            match self.judge(&stream, from).await {
                Ok(()) => {
                    let _ = stream.set_nodelay(true);
                    return Ok((stream, from));
                }
                Err(why) => tracing::warn!(target: "security", %from, why, "connection refused"),
            }
        }
    }

    #[cfg(target_os = "linux")]
    async fn judge(&self, stream: &TcpStream, from: SocketAddr) -> Result<(), String> {
        let here = stream.local_addr().map_err(|e| e.to_string())?;
        let peers = Arc::clone(&self.peers);
        let judged = tokio::task::spawn_blocking(move || peers.judge_socket(here, from)).await;
        let uid = judged
            .map_err(|e| e.to_string())?
            .map_err(|refusal| refusal.to_string())?;
        match uid {
            Some(uid) if self.is_private && uid != rustix::process::geteuid().as_raw() => {
                Err(format!("the client belongs to another user (uid {uid})"))
            }
            _ => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn judge(&self, _: &TcpStream, _: SocketAddr) -> Result<(), String> {
        Ok(())
    }
}

impl axum::serve::Listener for Listener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match Self::accept(self).await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}
