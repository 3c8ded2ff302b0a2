//! A live connection to a server.
//!
//! Invariant: callers hold a [`Link`]; the task of the server holds the [`Connection`],
//! and closing it ends every call of the link.

use crate::answers::MAX_EVENT;
use crate::handler::{Calls, Handler, HttpTransport};
use crate::http::Http;
use crate::loopback::Loopback;
use crate::oauth::{Logins, Tokens};
use crate::pipes::Pipes;
use crate::program::{self, Programs};
use crate::program_output::{CLOSED, NotOpened, ProgramOutput, ended, handshake, refused, seconds};
use crate::said;
use crate::settings::{Settings, Transport};
use crate::streamable::Streamable;
use crabtalk_domain::BoxFuture;
use crabtalk_guardian::{Child, ExitStatus};
use http::{HeaderName, HeaderValue};
use rmcp::service::{
    ClientInitializeError, Peer, RoleClient, RunningService, RunningServiceCancellationToken,
    serve_client_with_ct,
};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Timeout for closing a connection.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Time for a program to end after its input is closed.
const END_WITHIN: Duration = Duration::from_millis(500);

/// Delay before a broken stream is reopened.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Maximum number of concurrent calls of one server; over HTTP each may need a connection. Others
/// wait.
const MAX_CALLS: usize = 128;

/// Additional concurrent requests: pings and lists.
const BESIDE_CALLS: usize = 8;

/// Attempts to reopen a stream; after that the server is reconnected.
const TIMES: usize = 4;

/// The part of a connection that callers use.
pub(crate) struct Link {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) calls: Arc<Calls>,
    /// Permits for concurrent calls.
    pub(crate) turns: Semaphore,
    /// Cancelled when the connection is closed.
    pub(crate) gone: CancellationToken,
    /// The reason why the server ended the connection, if it did.
    pub(crate) over: OnceLock<String>,
    /// Name and version of the server.
    pub(crate) server: String,
    pub(crate) protocol: String,
    /// Whether the server declares tools.
    pub(crate) has_tools: bool,
    /// The tokens of a login.
    pub(crate) tokens: Option<Arc<Tokens>>,
}

/// A connection and its resources, owned by the server's task.
pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    /// Ends the library's task.
    stop: RunningServiceCancellationToken,
    /// Resolves when that task has ended.
    done: BoxFuture<'static, ()>,
    is_done: bool,
    child: Option<Child>,
    pub(crate) words: ProgramOutput,
    /// Notified when the list of tools changed.
    pub(crate) changed: Arc<Notify>,
    /// Notified when the server may be gone.
    pub(crate) doubt: Arc<Notify>,
    /// Cancels HTTP requests in flight.
    _ends: DropGuard,
}

/// Resources for making connections.
pub(crate) struct Means {
    pub(crate) programs: Programs,
    /// HTTP for addresses other than components.
    pub(crate) http: Arc<dyn Http>,
    pub(crate) tasks: TaskTracker,
    /// The files of logins.
    pub(crate) logins: Arc<Logins>,
    /// Tokens by the name of the server; all connections share them, since a refresh
    /// token can be used once.
    pub(crate) tokens: Mutex<HashMap<String, Arc<Tokens>>>,
}

impl Means {
    fn all_tokens(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Tokens>>> {
        // A panic cannot leave the map inconsistent.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens of a server at an address for which no `Authorization` header is
    /// configured.
    pub(crate) fn tokens(&self, settings: &Settings) -> Option<Arc<Tokens>> {
        let Transport::Url { url, headers } = &settings.transport else {
            return None;
        };
        if headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"))
        {
            return None;
        }
        let mut all = self.all_tokens();
        let known = all
            .get(&settings.name)
            .filter(|known| known.is_for(url, &settings.oauth));
        let tokens = known.cloned().unwrap_or_else(|| {
            let (logins, http) = (Arc::clone(&self.logins), Arc::clone(&self.http));
            let (name, client, tasks) = (&settings.name, &settings.oauth, self.tasks.clone());
            Arc::new(Tokens::new(name, url, client, logins, http, tasks))
        });
        all.insert(settings.name.clone(), Arc::clone(&tokens));
        Some(tokens)
    }

    /// Removes and returns the tokens of a login that changed.
    pub(crate) fn forget_tokens(&self, name: &str) -> Option<Arc<Tokens>> {
        self.all_tokens().remove(name)
    }
}

/// An attempt to connect.
struct Attempt {
    /// The program, if there is one.
    child: Option<Child>,
    words: ProgramOutput,
    tokens: Option<Arc<Tokens>>,
    doubt: Arc<Notify>,
    /// Cancels HTTP requests in flight.
    over: CancellationToken,
}

/// The library's result of a handshake.
type Served = Result<RunningService<RoleClient, Handler>, ClientInitializeError>;

impl Attempt {
    /// Connects and does the handshake.
    async fn shake_hands(
        &mut self,
        means: &Means,
        settings: &Settings,
        handler: Handler,
        stop: CancellationToken,
    ) -> Result<Served, NotOpened> {
        let (url, headers, http, tokens) = match &settings.transport {
            Transport::Program { .. } => {
                return self.with_program(means, settings, handler, stop).await;
            }
            Transport::Port(port) => {
                let tasks = means.tasks.clone();
                let http: Arc<dyn Http> = Arc::new(Loopback { tasks });
                let url = format!("http://127.0.0.1:{}/mcp", port.port);
                (url, HashMap::new(), http, None)
            }
            Transport::Url { url, headers } => {
                let http = Arc::clone(&means.http);
                (url.clone(), sensitive(headers)?, http, self.tokens.clone())
            }
        };
        let client = Streamable {
            http,
            doubt: Arc::clone(&self.doubt),
            tokens,
            over: self.over.clone(),
        };
        let transport = HttpTransport::with_client(client, transport(&url, headers));
        Ok(serve_client_with_ct(handler, transport, stop).await)
    }

    /// Starts the server's program, which may end during the handshake.
    async fn with_program(
        &mut self,
        means: &Means,
        settings: &Settings,
        handler: Handler,
        stop: CancellationToken,
    ) -> Result<Served, NotOpened> {
        let Settings {
            name, transport, ..
        } = settings;
        let started = program::start(&means.programs, name, transport, &means.tasks)?;
        self.words.complaints = started.complaints;
        let (babble, given_up) = self.words.beside();
        let pipes = Pipes::new(started.reads, started.writes, babble, given_up);
        let child = self.child.insert(started.child);
        let mut serving = std::pin::pin!(serve_client_with_ct(handler, pipes, stop));
        let end = tokio::select! {
            served = &mut serving => return Ok(served),
            end = child.wait() => end,
        };
        // The pipe may contain the reason.
        match tokio::time::timeout(END_WITHIN, serving).await {
            Ok(Err(error)) if refused(&error) => Ok(Err(error)),
            _ => Err(self.words.not_opened(ended(&end, &self.words))),
        }
    }

    /// The reason of a failed handshake. Ends the program.
    async fn failed(mut self, error: &ClientInitializeError) -> NotOpened {
        let wants_login = self.tokens.is_some() && error.is_authorization_required();
        let why = match self.tokens.as_ref().filter(|_| wants_login) {
            Some(tokens) => tokens.wanted(),
            None => handshake(error, &self.words),
        };
        let why = match self.end_program(END_WITHIN).await {
            // The exit status is more specific.
            Some(end) if !refused(error) => ended(&end, &self.words),
            _ => why,
        };
        NotOpened {
            wants_login,
            ..self.words.not_opened(why)
        }
    }

    /// The reason of a handshake that timed out. Ends the program.
    async fn late(mut self, within: Duration) -> NotOpened {
        let why = format!("no handshake within {} s", seconds(within));
        self.end_program(Duration::ZERO).await;
        self.words.not_opened(self.words.with(why))
    }

    /// Waits for the program to end, kills it after `within`, and returns the exit status if it ended itself.
    async fn end_program(&mut self, within: Duration) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        if let Ok(end) = tokio::time::timeout(within, child.wait()).await {
            return Some(end);
        }
        child.kill();
        child.wait().await;
        None
    }
}

impl Connection {
    /// Connects and does the handshake within a timeout.
    pub(crate) async fn open(
        means: &Means,
        settings: &Settings,
        within: Duration,
    ) -> Result<Self, NotOpened> {
        let (changed, doubt) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let calls = Arc::<Calls>::default();
        let handler = Handler {
            server: settings.name.clone(),
            calls: Arc::clone(&calls),
            changed: Arc::clone(&changed),
        };
        let stop = CancellationToken::new();
        // Cancels a handshake that is abandoned.
        let guard = stop.clone().drop_guard();
        let over = CancellationToken::new();
        let ends = over.clone().drop_guard();
        let mut attempt = Attempt {
            child: None,
            words: ProgramOutput::default(),
            tokens: means.tokens(settings),
            doubt: Arc::clone(&doubt),
            over,
        };
        let shaken = attempt.shake_hands(means, settings, handler, stop);
        let running = match tokio::time::timeout(within, shaken).await {
            Ok(Ok(Ok(running))) => running,
            Ok(Ok(Err(error))) => return Err(attempt.failed(&error).await),
            Ok(Err(not)) => return Err(not),
            Err(_) => return Err(attempt.late(within).await),
        };
        drop(guard.disarm());
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let server = info.as_ref().and_then(|info| info.server_info.as_ref());
        let link = Link {
            calls,
            turns: Semaphore::new(MAX_CALLS),
            gone: CancellationToken::new(),
            over: OnceLock::new(),
            server: server.map_or_else(String::new, |s| {
                let (name, version) = (said::name(s.name.clone()), said::name(s.version.clone()));
                format!("{name} {version}")
            }),
            protocol: info
                .as_ref()
                .map_or_else(String::new, |i| said::name(i.protocol_version.to_string())),
            has_tools: info
                .as_ref()
                .is_some_and(|i| i.capabilities.tools.is_some()),
            tokens: attempt.tokens,
            peer,
        };
        let stop = running.cancellation_token();
        let done = Box::pin(async move {
            // The reason is reported elsewhere.
            let _ = running.waiting().await;
        });
        Ok(Self {
            link: Arc::new(link),
            stop,
            done,
            is_done: false,
            child: attempt.child,
            words: attempt.words,
            changed,
            doubt,
            _ends: ends,
        })
    }

    /// Waits until the server ends the connection; returns the reason.
    pub(crate) async fn ended(&mut self) -> String {
        if self.is_done {
            return CLOSED.into();
        }
        match &mut self.child {
            Some(child) => tokio::select! {
                end = child.wait() => ended(&end, &self.words),
                () = &mut self.done => {
                    self.is_done = true;
                    self.words.closed()
                }
            },
            None => {
                (&mut self.done).await;
                self.is_done = true;
                CLOSED.into()
            }
        }
    }

    /// The reason why the transport closed, which may take a moment to arrive.
    pub(crate) async fn ended_soon(&mut self) -> Option<String> {
        if !self.link.peer.is_transport_closed() {
            return None;
        }
        // Over HTTP the error of the request is more specific.
        let child = self.child.as_mut()?;
        let end = tokio::time::timeout(END_WITHIN, child.wait()).await;
        Some(end.map_or_else(|_| self.words.closed(), |end| ended(&end, &self.words)))
    }

    /// Ends the connection, the program, and every call.
    pub(crate) async fn close(self) {
        self.link.gone.cancel();
        self.stop.cancel();
        if !self.is_done && tokio::time::timeout(CLOSE_WITHIN, self.done).await.is_err() {
            tracing::debug!("closing the connection to an MCP server timed out");
        }
        if let Some(mut child) = self.child
            && tokio::time::timeout(END_WITHIN, child.wait())
                .await
                .is_err()
        {
            child.kill();
            child.wait().await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

fn transport(
    url: &str,
    headers: HashMap<HeaderName, HeaderValue>,
) -> StreamableHttpClientTransportConfig {
    let mut again = ExponentialBackoff::default();
    again.base_duration = AGAIN_AFTER;
    again.max_times = Some(TIMES);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_concurrent_requests(MAX_CALLS + BESIDE_CALLS)
        .max_sse_event_size(MAX_EVENT);
    config.retry_config = Arc::new(again);
    config
}

/// Marks headers as sensitive, so that logs do not show them.
fn sensitive(
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, value): (&String, &String)| {
        let wrong = |what: &str| format!("the header {name:?} has an invalid {what}");
        let known: HeaderName = name.parse().map_err(|_| wrong("name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        Ok((known, value))
    };
    headers.iter().map(header).collect()
}
