//! The task that owns one server.
//!
//! It connects at once, or, a program, when somebody wants it; asks for the
//! tools; pings; notices the end; and connects again after a pause that grows.
//!
//! Invariants: only this task changes what is known of its server; whoever waits
//! for the server waits for a bounded time; when the task ends, so have the
//! connection and the program.

use crate::link::{Connection, Link, Means, NotOpened};
use crate::list::{self, Tools};
use crate::loopback;
use crate::seen::Seen;
use crate::settings::{Reach, Settings};
use futures_util::FutureExt;
use rmcp::model::{ClientRequest, PingRequest};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The beats of a server's life.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long a handshake over HTTP may take.
    pub connect: Duration,
    /// How long a program's may: it may have to be fetched first.
    pub start: Duration,
    /// How long a list of tools may take.
    pub list: Duration,
    /// How often a server is asked for a sign of life (COMP-1).
    pub ping: Duration,
    /// How long that sign may take.
    pub answer: Duration,
    /// How often one that hangs is asked.
    pub hanging: Duration,
    /// Between two lists of a server that says again and again that its tools
    /// changed.
    pub changes: Duration,
    /// The first pause after a failure, and the longest.
    pub pause: (Duration, Duration),
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            start: Duration::from_secs(60),
            list: Duration::from_secs(15),
            ping: Duration::from_secs(30),
            answer: Duration::from_secs(10),
            hanging: Duration::from_secs(5),
            changes: Duration::from_secs(1),
            pause: (Duration::from_millis(250), Duration::from_secs(60)),
        }
    }
}

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A program that does not run; a call starts it.
    Idle,
    /// It is being connected.
    Connecting,
    /// It answers.
    Connected,
    /// It is connected, and does not answer.
    Hanging,
    /// It cannot be reached, or has died.
    Failed,
    /// It is switched off.
    Off,
}

impl Phase {
    /// The word that lists have.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Hanging => "hanging",
            Self::Failed => "failed",
            Self::Off => "off",
        }
    }
}

/// What is known of a server.
#[derive(Debug, Clone)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Where it is known from.
    pub source: &'static str,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// Its port on the loopback, for a component.
    pub port: u16,
    /// Which start of the component this is.
    pub instance: String,
    /// Where it stands.
    pub phase: Phase,
    /// Why it failed last; empty if it never did.
    pub error: String,
    /// Whether that is because a person has to log in to it.
    pub wants_login: bool,
    /// Tools on offer.
    pub tools: usize,
    /// Whether another one stands before it.
    pub shadowed: bool,
    /// Name and version by its own account.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
    /// How long it has been in this phase.
    pub since: Duration,
    /// Calls in flight.
    pub calls: usize,
    /// How often it was connected.
    pub connected: u32,
}

/// What its task has found out.
#[derive(Clone)]
pub(crate) struct Now {
    pub(crate) phase: Phase,
    pub(crate) error: String,
    pub(crate) wants_login: bool,
    pub(crate) since: Instant,
    pub(crate) tools: Arc<Tools>,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) server: String,
    pub(crate) protocol: String,
    pub(crate) connected: u32,
    /// Attempts to connect that have come to an end.
    pub(crate) tried: u32,
}

/// What everybody sees of a server.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    now: watch::Sender<Now>,
    wanted: Notify,
    used: Mutex<Instant>,
    pub(crate) cancel: CancellationToken,
}

impl Server {
    /// A server that nobody has looked at. `tools` are those that it had when
    /// it ran last.
    pub(crate) fn new(
        settings: Settings,
        tools: Tools,
        connected: u32,
        cancel: CancellationToken,
    ) -> Self {
        let phase = match (settings.enabled, settings.is_lazy()) {
            (false, _) => Phase::Off,
            _ if !settings.unusable.is_empty() => Phase::Failed,
            (true, true) => Phase::Idle,
            (true, false) => Phase::Connecting,
        };
        let now = Now {
            phase,
            error: settings.unusable.clone(),
            wants_login: false,
            since: Instant::now(),
            tools: Arc::new(tools),
            link: None,
            server: String::new(),
            protocol: String::new(),
            connected,
            tried: 0,
        };
        Self {
            settings,
            now: watch::Sender::new(now),
            wanted: Notify::new(),
            used: Mutex::new(Instant::now()),
            cancel,
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.now.borrow().clone()
    }

    /// Its tools, for as long as they are on offer.
    pub(crate) fn tools(&self) -> Arc<Tools> {
        Arc::clone(&self.now.borrow().tools)
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        self.now.send_modify(|now| {
            let before = now.phase;
            change(now);
            if now.phase != before {
                now.since = Instant::now();
            }
        });
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn use_now(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Wants it to be connected.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// What was wanted of a connection that is over was had.
    fn forget_wishes(&self) {
        let _ = self.wanted.notified().now_or_never();
    }

    /// Its link; a program is started for it. Waits for as long as that may take.
    pub(crate) async fn link(&self, pace: &Pace) -> Result<Arc<Link>, String> {
        self.use_now();
        let mut now = self.now.subscribe();
        let before = now.borrow().tried;
        self.want();
        let found = now.wait_for(|now| match now.phase {
            Phase::Connected => now.link.is_some(),
            Phase::Hanging | Phase::Off => true,
            Phase::Failed => !self.settings.is_lazy() || now.tried != before,
            Phase::Idle => false,
            Phase::Connecting => !self.settings.is_lazy(),
        });
        let name = &self.settings.name;
        let found = timeout(pace.start + pace.list, found).await;
        let found = match &found {
            Ok(Ok(now)) => now,
            Ok(Err(_)) | Err(_) => return Err(format!("{name} did not start in time")),
        };
        match (found.phase, &found.link) {
            (Phase::Connected, Some(link)) => Ok(Arc::clone(link)),
            (Phase::Hanging, _) => Err(format!(
                "{name} hangs: it does not answer pings; calls go to it again when it does"
            )),
            (Phase::Off, _) => Err(format!("{name} is switched off")),
            _ if found.error.is_empty() => Err(format!("{name} is not connected")),
            _ => Err(format!("{name} is not connected: {}", found.error)),
        }
    }

    /// Waits until it was tried once, for programs whose tools nobody knows.
    pub(crate) async fn first_look(&self) {
        let mut now = self.now.subscribe();
        if now.borrow().tried > 0 || !now.borrow().tools.known.is_empty() {
            return;
        }
        self.want();
        // The sender is ours.
        let _ = now.wait_for(|now| now.tried > 0).await;
    }
}

/// Tells what happened to a server.
pub(crate) type Tell = dyn Fn(&Server, &str) + Send + Sync;

/// What the task of a server works with.
pub(crate) struct Work {
    pub(crate) server: Arc<Server>,
    pub(crate) means: Arc<Means>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) pace: Pace,
    /// Hears what is worth telling.
    pub(crate) tell: Arc<Tell>,
}

/// Says so if a server wants a login that only a person can give.
fn refused(link: &Link) -> Option<NotOpened> {
    let tokens = link.tokens.as_ref()?;
    tokens.is_refused().then(|| NotOpened {
        why: tokens.wanted(),
        wants_login: true,
    })
}

/// Why a connection is given up.
enum Over {
    Cancelled,
    Idle,
    Died(NotOpened),
}

impl Work {
    /// Lives the server's life, until it is cancelled.
    pub(crate) async fn run(self) {
        let server = &self.server;
        if !server.settings.enabled || !server.settings.unusable.is_empty() {
            return server.cancel.cancelled().await;
        }
        let (first, longest) = self.pace.pause;
        let mut pause = first;
        let mut ready_at = Instant::now();
        loop {
            if !self.is_wanted(ready_at).await {
                return;
            }
            let opened = tokio::select! {
                () = server.cancel.cancelled() => return,
                opened = self.open() => opened,
            };
            let connection = match opened {
                Ok(connection) => connection,
                Err(not) => {
                    self.failed(&not);
                    ready_at = Instant::now() + pause;
                    pause = (pause * 2).min(longest);
                    continue;
                }
            };
            let begun = Instant::now();
            match self.serve(connection).await {
                Over::Cancelled => return,
                Over::Idle => {
                    ready_at = Instant::now();
                    server.change(|now| {
                        now.phase = Phase::Idle;
                        now.link = None;
                    });
                }
                Over::Died(not) => {
                    // One that lived for a while is worth an immediate try.
                    if begun.elapsed() > longest {
                        pause = first;
                    }
                    ready_at = Instant::now() + pause;
                    pause = (pause * 2).min(longest);
                    if !self.died(&not) {
                        return server.cancel.cancelled().await;
                    }
                }
            }
        }
    }

    /// Waits until it shall be connected; `false` when it is cancelled.
    async fn is_wanted(&self, ready_at: Instant) -> bool {
        let server = &self.server;
        let wait = async {
            sleep_until(ready_at).await;
            if server.settings.is_lazy() {
                server.wanted.notified().await;
            }
        };
        tokio::select! {
            () = server.cancel.cancelled() => false,
            () = wait => true,
        }
    }

    /// Connects, and learns the tools.
    async fn open(&self) -> Result<Connection, NotOpened> {
        let (server, settings) = (&self.server, &self.server.settings);
        server.change(|now| now.phase = Phase::Connecting);
        let within = match settings.reach {
            Reach::Program { .. } => self.pace.start,
            Reach::Url { .. } | Reach::Port(_) => self.pace.connect,
        };
        let opened = timeout(within, Connection::open(&self.means, settings)).await;
        let late = || format!("no handshake within {} s", within.as_secs());
        let connection = opened.map_err(|_| late())??;
        match self.learn(&connection.link).await {
            Ok(tools) => {
                self.connected(&connection, tools);
                Ok(connection)
            }
            Err(why) => {
                // Some servers shake hands with anybody.
                let refused = refused(&connection.link);
                connection.close().await;
                Err(refused.unwrap_or_else(|| why.into()))
            }
        }
    }

    async fn learn(&self, link: &Link) -> Result<Tools, String> {
        let listed = timeout(self.pace.list, list::fetch(&link.peer)).await;
        let late = || format!("no list of tools within {} s", self.pace.list.as_secs());
        let listed = listed.map_err(|_| late())??;
        let settings = &self.server.settings;
        if settings.is_lazy() {
            let (seen, name, print) = (
                Arc::clone(&self.seen),
                settings.name.clone(),
                settings.print(),
            );
            let all = listed.clone();
            let kept = tokio::task::spawn_blocking(move || {
                if seen.note_tools(&name, &print, all) {
                    seen.save();
                }
            });
            // It is known again at the next start, or not.
            let _ = kept.await;
        }
        let tools = Tools::new(settings, listed);
        for left_out in &tools.left_out {
            tracing::warn!(server = %settings.name, tool = %left_out, "a tool is left out");
        }
        Ok(tools)
    }

    fn connected(&self, connection: &Connection, tools: Tools) {
        let server = &self.server;
        let count = tools.known.len();
        let mut is_news = false;
        server.change(|now| {
            is_news =
                !server.settings.is_lazy() || !now.tools.same(&tools) || !now.error.is_empty();
            now.phase = Phase::Connected;
            now.error.clear();
            now.wants_login = false;
            now.link = Some(Arc::clone(&connection.link));
            now.server.clone_from(&connection.link.server);
            now.protocol.clone_from(&connection.link.protocol);
            now.connected += 1;
            now.tried += 1;
            now.tools = Arc::new(tools);
        });
        tracing::info!(server = %server.settings.name, tools = count, "connected to an MCP server");
        if is_news {
            (self.tell)(server, &format!("is connected, with {count} tools"));
        }
    }

    /// It could not be connected.
    fn failed(&self, not: &NotOpened) {
        let (server, why) = (&self.server, not.why.as_str());
        let mut is_news = false;
        server.change(|now| {
            is_news = now.error != why;
            now.phase = Phase::Failed;
            why.clone_into(&mut now.error);
            now.wants_login = not.wants_login;
            now.link = None;
            now.tried += 1;
            if !server.settings.is_lazy() {
                now.tools = Arc::default();
            }
        });
        if is_news {
            tracing::warn!(server = %server.settings.name, %why, "an MCP server cannot be connected");
            (self.tell)(server, &format!("cannot be connected: {why}"));
        }
    }

    /// It was connected and is no more; whether it is tried again.
    fn died(&self, not: &NotOpened) -> bool {
        let (server, why) = (&self.server, not.why.as_str());
        let again = server.settings.auto_restart;
        server.change(|now| {
            now.phase = match (again, server.settings.is_lazy()) {
                (true, true) => Phase::Idle,
                (true, false) | (false, _) => Phase::Failed,
            };
            why.clone_into(&mut now.error);
            now.wants_login = not.wants_login;
            now.link = None;
            if !again || !server.settings.is_lazy() {
                now.tools = Arc::default();
            }
        });
        tracing::warn!(server = %server.settings.name, %why, "an MCP server has gone");
        (self.tell)(server, &format!("has gone: {why}"));
        again
    }

    /// Looks after a connection until it is over.
    async fn serve(&self, mut connection: Connection) -> Over {
        // Whoever wanted it has waited for as long as its start took, and calls now.
        self.server.use_now();
        let over = self.watch(&mut connection).await;
        // Whoever calls from this moment on waits for what comes next; what was
        // wanted before was had.
        self.server.forget_wishes();
        self.server.change(|now| {
            now.link = None;
            now.phase = Phase::Connecting;
        });
        connection.close().await;
        over
    }

    async fn watch(&self, connection: &mut Connection) -> Over {
        let server = &self.server;
        let (changed, doubt) = (
            Arc::clone(&connection.changed),
            Arc::clone(&connection.doubt),
        );
        let link = Arc::clone(&connection.link);
        let mut next_ping = Instant::now() + self.pace.ping;
        let mut next_list = Instant::now();
        loop {
            // Announced a thousand times, it is looked at once, a little later; pings
            // go on meanwhile.
            let announced = async {
                sleep_until(next_list).await;
                changed.notified().await;
            };
            tokio::select! {
                biased;
                () = server.cancel.cancelled() => return Over::Cancelled,
                why = connection.ended() => return Over::Died(why.into()),
                () = self.at_rest(&link) => return Over::Idle,
                () = announced => {
                    self.changed(&link).await;
                    next_list = Instant::now() + self.pace.changes;
                }
                () = doubt.notified() => {
                    if let Some(not) = self.gone(&link).await {
                        return Over::Died(not);
                    }
                }
                () = sleep_until(next_ping) => {
                    let answers = self.ping(&link).await;
                    if !answers && let Some(not) = self.gone(&link).await {
                        return Over::Died(not);
                    }
                    self.answers(answers);
                    let every = if answers { self.pace.ping } else { self.pace.hanging };
                    next_ping = Instant::now() + every;
                }
            }
        }
    }

    /// Resolves when nobody has called a program for long.
    async fn at_rest(&self, link: &Link) {
        if !self.server.settings.is_lazy() {
            return std::future::pending().await;
        }
        let idle = self.server.settings.idle;
        loop {
            sleep_until(self.server.used() + idle).await;
            if link.calls.count() == 0 && self.server.used().elapsed() >= idle {
                return;
            }
            if link.calls.count() > 0 {
                self.server.use_now();
            }
        }
    }

    /// Whether nobody listens at a component's port any more, or a server wants
    /// another login.
    async fn gone(&self, link: &Link) -> Option<NotOpened> {
        if let Some(refused) = refused(link) {
            return Some(refused);
        }
        let Reach::Port(port) = &self.server.settings.reach else {
            return None;
        };
        let looked = timeout(self.pace.answer, loopback::connect(port.port)).await;
        match looked {
            Ok(Err(why)) => Some(why.to_string().into()),
            Ok(Ok(_)) | Err(_) => None,
        }
    }

    async fn ping(&self, link: &Link) -> bool {
        let request = ClientRequest::PingRequest(PingRequest::default());
        let asked = timeout(self.pace.answer, link.peer.send_request(request)).await;
        match asked {
            // One that refuses pings is alive.
            Ok(Ok(_) | Err(rmcp::ServiceError::McpError(_))) => true,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    fn answers(&self, answers: bool) {
        let server = &self.server;
        let want = if answers {
            Phase::Connected
        } else {
            Phase::Hanging
        };
        let mut is_news = false;
        server.change(|now| {
            is_news = now.phase != want;
            now.phase = want;
            if is_news && answers {
                now.error.clear();
            } else if is_news {
                now.error = "it does not answer pings".into();
            }
        });
        if is_news && answers {
            tracing::info!(server = %server.settings.name, "an MCP server answers again");
            (self.tell)(server, "answers again");
        } else if is_news {
            tracing::warn!(server = %server.settings.name, "an MCP server hangs");
            (self.tell)(server, "hangs: it does not answer pings");
        }
    }

    /// The list of tools changed.
    async fn changed(&self, link: &Link) {
        match self.learn(link).await {
            Ok(tools) => {
                let count = tools.known.len();
                let mut is_news = false;
                self.server.change(|now| {
                    is_news = !now.tools.same(&tools);
                    now.tools = Arc::new(tools);
                });
                if is_news {
                    (self.tell)(
                        &self.server,
                        &format!("changed its tools; there are {count}"),
                    );
                }
            }
            // A ping finds out whether it hangs; the old list stays till then.
            Err(why) => {
                tracing::warn!(server = %self.server.settings.name, %why, "the changed list of tools could not be read");
                sleep(self.pace.pause.0).await;
            }
        }
    }
}
