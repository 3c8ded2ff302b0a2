//! The TCP listeners of the configuration.
//!
//! Invariants: a reload keeps unchanged listeners and their connections; a listener that
//! cannot be opened is reported and has no effect on others; the service starts with the
//! first listener.

use super::certificate;
use crate::compose::Report;
use crate::services::{Service, Services};
use crabtalk_config::{Home, Tcp, TcpTls};
use crabtalk_domain::BoxFuture;
use crabtalk_transport::{Certificate, Fingerprint, TcpError, TcpListener, TlsListener};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Most listeners in the queue to the service.
const QUEUE: usize = 16;

/// Longest wait for a port that a closing listener of ours still holds.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// Interval between two attempts.
const AGAIN_EVERY: Duration = Duration::from_millis(10);

/// Pause before a failed listener is opened again: at boot, networks take a while.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Serves the connections of the listeners.
pub(crate) trait Answers: Send + Sync {
    /// The services of the daemon.
    fn services(&self) -> &Services;

    /// The listeners.
    fn ears(&self) -> &Ears;

    /// Serves the connections of a listener until `stop` is cancelled.
    fn answer(
        self: Arc<Self>,
        listener: Listener,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()>;
}

/// The open listeners.
pub(crate) struct Ears {
    home: Home,
    answering: OnceLock<Weak<dyn Answers>>,
    /// Locked during a change.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    listeners: Vec<Listening>,
    /// The queue to the service, once it runs.
    serve: Option<mpsc::Sender<Begin>>,
    /// The configuration with listeners that could not be opened.
    missing: Option<Tcp>,
    /// Wakes the service that opens them again, once it runs.
    retry: Option<Arc<Notify>>,
    fingerprint: Option<Fingerprint>,
}

struct Listening {
    /// The configured address.
    wanted: SocketAddr,
    /// The actual address.
    at: SocketAddr,
    /// Its settings.
    how: How,
    close: CancellationToken,
}

#[derive(Clone, PartialEq, Eq)]
struct How {
    tls: TcpTls,
    fingerprint: Option<Fingerprint>,
    proxy: Vec<IpAddr>,
}

/// A listener for the service.
struct Begin {
    listener: Listener,
    close: CancellationToken,
    /// Sent when the service has it.
    taken: oneshot::Sender<()>,
}

/// An open listener.
pub(crate) enum Listener {
    Plain(TcpListener),
    Tls(TlsListener),
}

impl Ears {
    pub(super) fn new(home: Home) -> Self {
        Self {
            home,
            answering: OnceLock::new(),
            open: Mutex::default(),
        }
    }

    /// Sets the server of their connections. Before that nothing is opened.
    pub(super) fn belong_to(&self, answering: Weak<dyn Answers>) {
        let _ = self.answering.set(answering);
    }

    /// The addresses, and the fingerprint of the certificate.
    pub(crate) async fn addresses(&self) -> (Vec<SocketAddr>, Option<Fingerprint>) {
        let open = self.open.lock().await;
        let at = open.listeners.iter().map(|listening| listening.at);
        (at.collect(), open.fingerprint)
    }

    /// Opens and closes listeners according to the configuration.
    pub(super) async fn apply(&self, wanted: Option<&Tcp>, report: &mut Report) {
        self.change(&mut *self.open.lock().await, wanted, report)
            .await;
    }

    async fn change(&self, open: &mut Open, wanted: Option<&Tcp>, report: &mut Report) {
        let Some(answering) = self.answering.get().and_then(Weak::upgrade) else {
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
            // Compared by the configured address, which may have port 0.
            if open.listeners.iter().any(|one| one.wanted == address) {
                continue;
            }
            let listener = match listen(address, &how, certificate.as_ref(), &left).await {
                Ok(listener) => listener,
                Err(error) => {
                    let again = RETRY_AFTER.as_secs();
                    let error = format!("[tcp]: {error}; the daemon tries again every {again} s");
                    report.errors.push(error);
                    open.missing = wanted.cloned();
                    continue;
                }
            };
            open.begin(&answering, address, how.clone(), listener).await;
        }
        if open.missing.is_some() {
            let retry = open.retry.get_or_insert_with(|| start_retrying(&answering));
            retry.notify_one();
        }
    }

    /// Opens failed listeners again until they are open or removed.
    async fn retry(&self) {
        loop {
            tokio::time::sleep(RETRY_AFTER).await;
            let mut open = self.open.lock().await;
            let Some(wanted) = open.missing.take() else {
                return;
            };
            // The first failure was reported.
            let mut report = Report::default();
            self.change(&mut open, Some(&wanted), &mut report).await;
        }
    }

    async fn certificate(&self, wanted: Option<&Tcp>) -> Result<Option<Certificate>, String> {
        let Some(tcp) = wanted else { return Ok(None) };
        let (home, tls) = (self.home.clone(), tcp.tls.clone());
        let loaded = tokio::task::spawn_blocking(move || certificate::load(&home, &tls));
        loaded.await.map_err(|e| e.to_string())?
    }
}

/// Opens a listener. The error names the address.
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
            // A closing listener of ours holds it.
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
    /// Closes other listeners. Returns their addresses.
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

    async fn begin(
        &mut self,
        answering: &Arc<dyn Answers>,
        wanted: SocketAddr,
        how: How,
        listener: Listener,
    ) {
        let at = listener.address().unwrap_or(wanted);
        let close = CancellationToken::new();
        let (taken, is_taken) = oneshot::channel();
        let begin = Begin {
            listener,
            close: close.clone(),
            taken,
        };
        let serve = self.serve.get_or_insert_with(|| start_service(answering));
        if serve.send(begin).await.is_err() || is_taken.await.is_err() {
            tracing::error!(address = %at, "the TCP service has ended; restart the daemon");
            return;
        }
        match &how.fingerprint {
            Some(fingerprint) => tracing::info!(address = %at, %fingerprint, "listening with TLS"),
            None => tracing::info!(address = %at, "listening without TLS"),
        }
        self.listeners.push(Listening {
            wanted,
            at,
            how,
            close,
        });
    }
}

/// Starts the service that opens failed listeners again.
fn start_retrying(answering: &Arc<dyn Answers>) -> Arc<Notify> {
    let wake = Arc::new(Notify::new());
    let (woken, who) = (Arc::clone(&wake), Arc::downgrade(answering));
    let service = Service::restarted("tcp-retry", "transport", move |_| {
        let (woken, who) = (Arc::clone(&woken), Weak::clone(&who));
        async move {
            loop {
                woken.notified().await;
                if let Some(answering) = who.upgrade() {
                    answering.ears().retry().await;
                }
            }
        }
    });
    answering.services().start(service);
    wake
}

/// Starts the service that serves all listeners.
fn start_service(answering: &Arc<dyn Answers>) -> mpsc::Sender<Begin> {
    let (begin, begun) = mpsc::channel(QUEUE);
    let who = Arc::clone(answering);
    let body = async move |stop: CancellationToken| {
        serve_all(who, begun, stop).await;
        Ok(())
    };
    // The Unix socket works without it.
    let service = Service::optional("tcp", "transport", body).draining();
    answering.services().start(service);
    begin
}

async fn serve_all(
    answering: Arc<dyn Answers>,
    mut begun: mpsc::Receiver<Begin>,
    stop: CancellationToken,
) {
    let mut loops = JoinSet::new();
    let mut open: Vec<CancellationToken> = Vec::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            next = begun.recv() => {
                let Some(Begin { listener, close, taken }) = next else { break };
                open.retain(|close| !close.is_cancelled());
                open.push(close.clone());
                loops.spawn(Arc::clone(&answering).answer(listener, close));
                // The caller may have stopped waiting.
                let _ = taken.send(());
            }
            Some(ended) = loops.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a TCP listener has ended; restart the daemon");
                }
            }
        }
    }
    for close in open {
        close.cancel();
    }
    while loops.join_next().await.is_some() {}
}
