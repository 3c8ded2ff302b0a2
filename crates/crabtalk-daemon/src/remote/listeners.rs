//! The listeners, opened and closed as the configuration says.
//!
//! Invariants: a listener that stays as it is loses no connection to a reload; one
//! that cannot be opened is told, and stops neither the daemon nor the others; the
//! service exists from the first listener on, and not before.

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

/// Listeners that wait to be served: as many as there can be.
const QUEUE: usize = 16;

/// How long a port is tried again that a listener of ours has just left.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// Between two tries.
const AGAIN_EVERY: Duration = Duration::from_millis(10);

/// Until a listener is tried again whose port was taken or whose address was not up:
/// at boot, networks take a while.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Who answers those who come in.
pub(crate) trait Answers: Send + Sync {
    /// The services of the daemon, of which the listeners are one.
    fn services(&self) -> &Services;

    /// What listens.
    fn ears(&self) -> &Ears;

    /// Answers whoever comes in by this listener, until `stop` is cancelled.
    fn answer(
        self: Arc<Self>,
        listener: Listener,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()>;
}

/// What listens. Nothing, as long as nothing is configured.
pub(crate) struct Ears {
    home: Home,
    answering: OnceLock<Weak<dyn Answers>>,
    /// Held over a change.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    listeners: Vec<Listening>,
    /// To the service, once there is one.
    serve: Option<mpsc::Sender<Begin>>,
    /// What is wanted and not open.
    missing: Option<Tcp>,
    /// Wakes the service that tries that again, once there is one.
    retry: Option<Arc<Notify>>,
    fingerprint: Option<Fingerprint>,
}

struct Listening {
    /// As the configuration names it.
    wanted: SocketAddr,
    /// As the system does, with a port.
    at: SocketAddr,
    /// What it was opened with.
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
    /// Answered when it is in the service's hands.
    taken: oneshot::Sender<()>,
}

/// A listener that is open.
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

    /// Says whose they are. Before that nothing is opened.
    pub(super) fn belong_to(&self, answering: Weak<dyn Answers>) {
        let _ = self.answering.set(answering);
    }

    /// Where it listens, and by what its certificate is known.
    pub(crate) async fn addresses(&self) -> (Vec<SocketAddr>, Option<Fingerprint>) {
        let open = self.open.lock().await;
        let at = open.listeners.iter().map(|listening| listening.at);
        (at.collect(), open.fingerprint)
    }

    /// Opens what is wanted and not open, closes what is open and not wanted.
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
                let error = format!("[tcp] is as it was before: its certificate: {error}");
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
            // One with port 0 is open already too, by what it was called.
            if open.listeners.iter().any(|one| one.wanted == address) {
                continue;
            }
            let listener = match listen(address, &how, certificate.as_ref(), &left).await {
                Ok(listener) => listener,
                Err(error) => {
                    let again = RETRY_AFTER.as_secs();
                    let error = format!("[tcp]: {error}; it is tried again every {again} s");
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

    /// Tries again what could not be opened, until it is or is wanted no longer.
    async fn retry(&self) {
        loop {
            tokio::time::sleep(RETRY_AFTER).await;
            let mut open = self.open.lock().await;
            let Some(wanted) = open.missing.take() else {
                return;
            };
            // It was told when it failed first.
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
            // Ours, which is being closed this instant.
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
    /// The addresses that were left.
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
            tracing::error!(address = %at, "the service for TCP has ended; restart the daemon");
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

/// Starts the service that tries listeners again.
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
    // What an owner does on the Unix socket goes on without it.
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
                // Whoever waited for this may have given up.
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
