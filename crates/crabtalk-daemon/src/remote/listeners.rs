//! The TCP listeners of the configuration.
//!
//! Invariants: a reload keeps unchanged listeners and their connections; a listener that
//! cannot be opened is reported and does not affect others.

use super::certificate;
use crate::compose::Report;
use crabtalk_config::{Home, Tcp, TcpTls};
use crabtalk_domain::BoxFuture;
use crabtalk_transport::{Certificate, Fingerprint, TcpError, TcpListener, TlsListener};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Time limit for a port that a closing listener of this daemon still uses.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// Interval between attempts to open such a port.
const AGAIN_EVERY: Duration = Duration::from_millis(10);

/// Pause before a failed listener is opened again: at boot, networks are not ready yet.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Serves the connections of a listener until the token is cancelled.
pub(crate) type Serve =
    Box<dyn Fn(Listener, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// The open listeners. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ears(Arc<Inner>);

struct Inner {
    home: Home,
    serve: OnceLock<Serve>,
    /// Locked during a change.
    open: Mutex<Open>,
    /// The accept loops of all listeners.
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct Open {
    listeners: Vec<Listening>,
    /// The configuration, while some of its listeners could not be opened.
    missing: Option<Tcp>,
    /// Whether a task retries them.
    is_retrying: bool,
    fingerprint: Option<Fingerprint>,
}

struct Listening {
    /// The configured address.
    wanted: SocketAddr,
    /// The actual address.
    at: SocketAddr,
    /// The settings of the listener.
    how: How,
    close: CancellationToken,
}

#[derive(Clone, PartialEq, Eq)]
struct How {
    tls: TcpTls,
    fingerprint: Option<Fingerprint>,
    proxy: Vec<IpAddr>,
}

/// An open listener.
pub(crate) enum Listener {
    Plain(TcpListener),
    Tls(TlsListener),
}

impl Ears {
    pub(super) fn new(home: Home) -> Self {
        Self(Arc::new(Inner {
            home,
            serve: OnceLock::new(),
            open: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Sets the function that serves connections. Before that, no listener is opened.
    pub(super) fn belong_to(&self, serve: Serve) {
        let _ = self.0.serve.set(serve);
    }

    /// The addresses, and the fingerprint of the certificate.
    pub(crate) async fn addresses(&self) -> (Vec<SocketAddr>, Option<Fingerprint>) {
        let open = self.0.open.lock().await;
        let at = open.listeners.iter().map(|listening| listening.at);
        (at.collect(), open.fingerprint)
    }

    /// Opens and closes listeners according to the configuration.
    pub(super) async fn apply(&self, wanted: Option<&Tcp>, report: &mut Report) {
        let mut open = self.0.open.lock().await;
        self.change(&mut open, wanted, report).await;
        if open.missing.is_some() && !open.is_retrying {
            open.is_retrying = true;
            self.0.tasks.spawn(self.clone().retry());
        }
    }

    /// Closes all listeners. Resolves after replies in flight have drained.
    pub(crate) async fn shut_down(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    async fn change(&self, open: &mut Open, wanted: Option<&Tcp>, report: &mut Report) {
        let Some(serve) = self.0.serve.get() else {
            return;
        };
        open.missing = None;
        if wanted.is_none() && open.listeners.is_empty() {
            return;
        }
        let certificate = match self.certificate(wanted).await {
            Ok(certificate) => certificate,
            Err(error) => {
                let error = format!("[tcp] stays unchanged, because of its certificate: {error}");
                report.errors.push(error);
                return;
            }
        };
        open.fingerprint = certificate.as_ref().map(Certificate::fingerprint);
        let how = How {
            tls: wanted.map_or(TcpTls::Off, |tcp| tcp.tls.clone()),
            fingerprint: open.fingerprint,
            proxy: wanted.map(|tcp| tcp.proxy.clone()).unwrap_or_default(),
        };
        let addresses = wanted.map(|tcp| tcp.listen.clone()).unwrap_or_default();
        let left = open.close_all_but(&addresses, &how);
        for address in addresses {
            // Compared by the configured address, whose port may be 0.
            if open.listeners.iter().any(|one| one.wanted == address) {
                continue;
            }
            match listen(address, &how, certificate.as_ref(), &left).await {
                Ok(listener) => {
                    let listening = Listening::new(address, &how, &listener, &self.0.stop);
                    let loops = serve(listener, listening.close.clone());
                    self.0.tasks.spawn(loops);
                    open.listeners.push(listening);
                }
                Err(error) => {
                    let again = RETRY_AFTER.as_secs();
                    let error = format!("[tcp]: {error}; the daemon tries again every {again} s");
                    report.errors.push(error);
                    open.missing = wanted.cloned();
                }
            }
        }
    }

    /// Retries failed listeners until they are open or removed.
    async fn retry(self) {
        loop {
            tokio::select! {
                () = self.0.stop.cancelled() => return,
                () = tokio::time::sleep(RETRY_AFTER) => {}
            }
            let mut open = self.0.open.lock().await;
            let Some(wanted) = open.missing.take() else {
                open.is_retrying = false;
                return;
            };
            // The first failure was reported.
            let mut report = Report::default();
            self.change(&mut open, Some(&wanted), &mut report).await;
        }
    }

    async fn certificate(&self, wanted: Option<&Tcp>) -> Result<Option<Certificate>, String> {
        let Some(tcp) = wanted else { return Ok(None) };
        let (home, tls) = (self.0.home.clone(), tcp.tls.clone());
        let loaded = tokio::task::spawn_blocking(move || certificate::load(&home, &tls));
        loaded.await.map_err(|e| e.to_string())?
    }
}

impl Listening {
    fn new(wanted: SocketAddr, how: &How, listener: &Listener, stop: &CancellationToken) -> Self {
        let at = listener.address().unwrap_or(wanted);
        match &how.fingerprint {
            Some(fingerprint) => tracing::info!(address = %at, %fingerprint, "listening with TLS"),
            None => tracing::info!(address = %at, "listening without TLS"),
        }
        Self {
            wanted,
            at,
            how: how.clone(),
            close: stop.child_token(),
        }
    }
}

/// Opens a listener. An error names the address.
async fn listen(
    address: SocketAddr,
    how: &How,
    certificate: Option<&Certificate>,
    left: &[SocketAddr],
) -> Result<Listener, String> {
    let explain = |error: TcpError| match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    let begun = tokio::time::Instant::now();
    let tcp = loop {
        match TcpListener::bind(address, how.proxy.clone()).await {
            // A closing listener of this daemon may still use it.
            Err(TcpError::Taken(_))
                if left.contains(&address) && begun.elapsed() < AGAIN_WITHIN =>
            {
                tokio::time::sleep(AGAIN_EVERY).await;
            }
            bound => break bound.map_err(explain)?,
        }
    };
    Ok(match certificate {
        None => Listener::Plain(tcp),
        Some(certificate) => Listener::Tls(TlsListener::new(tcp, certificate.clone())),
    })
}

impl Listener {
    fn address(&self) -> std::io::Result<SocketAddr> {
        match self {
            Self::Plain(listener) => listener.local_addr(),
            Self::Tls(listener) => listener.local_addr(),
        }
    }
}

impl Open {
    /// Closes all other listeners and returns their addresses.
    fn close_all_but(&mut self, addresses: &[SocketAddr], how: &How) -> Vec<SocketAddr> {
        let mut left = Vec::new();
        self.listeners.retain(|listening| {
            let stays = addresses.contains(&listening.wanted) && listening.how == *how;
            if !stays {
                tracing::info!(address = %listening.at, "no longer listening");
                listening.close.cancel();
                left.push(listening.at);
            }
            stays
        });
        left
    }
}
