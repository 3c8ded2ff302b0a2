//! The set of servers, and the task of each.
//!
//! Invariants: a configured server takes precedence over a component of the same name,
//! ignoring case; a server whose settings did not change keeps its task; every task has
//! ended when [`Servers::shut_down`] returns.

use crate::declarations::Declarations;
use crate::http::Http;
use crate::link::Means;
use crate::list::Tools;
use crate::names::{check_server_name, small_first};
use crate::oauth::{Logins, Pending};
use crate::output::Outputs;
use crate::owner::{self, Behind};
use crate::program::Programs;
use crate::server::{Now, Pace, Phase, Server, ServerStatus, ServerTask};
use crate::settings::{Settings, Source, Transport};
use crabtalk_component::PortFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum number of servers. Each has a task and may have a process.
const MAX_SERVERS: usize = 256;

/// Timeout for the end of all servers.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(3);

/// Maximum wait of a run for programs that were never started.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// A port file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPort {
    /// The component's name.
    pub name: String,
    /// Its contents, or why it is invalid.
    pub says: Result<PortFile, String>,
}

/// The resources of servers.
pub struct Parts {
    /// Starts programs.
    pub programs: Programs,
    /// HTTP for addresses other than components.
    pub http: Arc<dyn Http>,
    /// Stores content that is not passed to models whole.
    pub outputs: Arc<dyn Outputs>,
    /// The file with tools and descriptions.
    pub seen: PathBuf,
    /// The folder of logins.
    pub logins: PathBuf,
    /// Receives events about servers.
    pub news: Arc<dyn Fn(ServerStatus, String) + Send + Sync>,
    /// Timeouts and intervals.
    pub pace: Pace,
}

/// The servers of a daemon. Cheap to clone.
#[derive(Clone)]
pub struct Servers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) means: Arc<Means>,
    pub(crate) outputs: Arc<dyn Outputs>,
    pub(crate) seen: Arc<Declarations>,
    news: Arc<dyn Fn(ServerStatus, String) + Send + Sync>,
    pub(crate) pace: Pace,
    stop: CancellationToken,
    state: Mutex<State>,
    /// Logins in progress, by the server's name.
    logins: Mutex<BTreeMap<String, Arc<Pending>>>,
}

#[derive(Default)]
struct State {
    configured: Vec<Settings>,
    found: Vec<FoundPort>,
    /// Servers by name.
    servers: BTreeMap<String, Arc<Server>>,
    /// Port files that are ignored, and why.
    passed_over: BTreeMap<String, (Option<PortFile>, String)>,
}

impl Servers {
    /// An empty set.
    pub fn new(parts: Parts) -> Self {
        let tasks = TaskTracker::new();
        let means = Means {
            programs: parts.programs,
            http: parts.http,
            tasks,
            logins: Arc::new(Logins::new(parts.logins)),
            tokens: Mutex::default(),
        };
        Self(Arc::new(Inner {
            means: Arc::new(means),
            outputs: parts.outputs,
            seen: Arc::new(Declarations::new(parts.seen)),
            news: parts.news,
            pace: parts.pace,
            stop: CancellationToken::new(),
            state: Mutex::default(),
            logins: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the configured servers.
    pub async fn configure(&self, servers: Vec<Settings>) {
        self.load_seen(!servers.is_empty()).await;
        self.state().configured = servers;
        self.settle();
    }

    /// Sets the port files that exist.
    pub async fn discover(&self, found: Vec<FoundPort>) {
        self.load_seen(!found.is_empty()).await;
        if self.state().found == found {
            return;
        }
        self.state().found = found;
        self.settle();
    }

    /// Loads the file of tools and descriptions if there is a server.
    async fn load_seen(&self, any: bool) {
        if any {
            let seen = Arc::clone(&self.0.seen);
            let _ = tokio::task::spawn_blocking(move || seen.load()).await;
        }
    }

    /// Starts new servers and ends removed ones.
    fn settle(&self) {
        let (mut gone, mut said) = (Vec::new(), Vec::new());
        {
            let mut state = self.state();
            let (wanted, passed_over) = wanted(&state.configured, &state.found);
            for (name, (_, why)) in &passed_over {
                if state
                    .passed_over
                    .get(name)
                    .is_none_or(|(_, before)| before != why)
                {
                    said.push((name.clone(), why.clone()));
                }
            }
            state.passed_over = passed_over;
            let kept = |name: &String, server: &Server| {
                wanted
                    .get(name)
                    .is_some_and(|settings| *settings == server.settings)
            };
            let mut before = BTreeMap::new();
            for (name, server) in std::mem::take(&mut state.servers) {
                if kept(&name, &server) {
                    state.servers.insert(name, server);
                } else {
                    server.cancel.cancel();
                    before.insert(name, server);
                }
            }
            for (name, settings) in wanted {
                if state.servers.contains_key(&name) {
                    continue;
                }
                let connected = before.remove(&name).map_or(0, |old| old.now().connected);
                let server = self.start(settings, connected);
                state.servers.insert(name, server);
            }
            gone.extend(before.into_values());
        }
        for (name, why) in said {
            tracing::warn!(%name, %why, "ignored a port file");
        }
        for server in gone {
            tracing::info!(server = %server.settings.name, "MCP server removed");
            let mut status = status(&server, &server.now());
            (status.phase, status.tools) = (Phase::Off, 0);
            (self.0.news)(status, format!("{} was removed", server.settings.name));
        }
    }

    fn start(&self, settings: Settings, connected: u32) -> Arc<Server> {
        let listed = match settings.is_lazy() {
            true => self.0.seen.tools(&settings.name, &settings.print()),
            false => None,
        };
        let tools = listed.map(|tools| Tools::new(&settings, tools.into()));
        let cancel = self.0.stop.child_token();
        let server = Server::new(settings, tools.unwrap_or_default(), connected, cancel);
        let server = Arc::new(server);
        let news = Arc::clone(&self.0.news);
        let work = ServerTask {
            server: Arc::clone(&server),
            means: Arc::clone(&self.0.means),
            seen: Arc::clone(&self.0.seen),
            pace: self.0.pace,
            tell: Arc::new(move |server: &Server, said: &str| {
                let said = format!("{} {said}", server.settings.name);
                news(status(server, &server.now()), said);
            }),
        };
        self.0.means.tasks.spawn(work.run());
        server
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Server>> {
        self.state().servers.get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Server>> {
        self.state().servers.values().cloned().collect()
    }

    /// The state of every server by name, including ignored port files.
    pub fn list(&self) -> Vec<ServerStatus> {
        let state = self.state();
        let mut all: Vec<ServerStatus> = state
            .servers
            .values()
            .map(|server| status(server, &server.now()))
            .collect();
        let configured = |name: &str| {
            let mut known = state.configured.iter();
            known.any(|known| known.name.eq_ignore_ascii_case(name))
        };
        all.extend(state.passed_over.iter().map(|(name, (port, why))| {
            let shadowed = configured(name);
            ServerStatus {
                name: name.clone(),
                source: Source::PortFile.as_str(),
                transport: "http",
                port: port.as_ref().map_or(0, |port| port.port),
                instance: port
                    .as_ref()
                    .and_then(|p| p.instance.clone())
                    .unwrap_or_default(),
                phase: Phase::Failed,
                error: if shadowed { String::new() } else { why.clone() },
                wants_login: false,
                tools: 0,
                shadowed,
                server: String::new(),
                protocol: String::new(),
                since: Duration::ZERO,
                calls: 0,
                connected: 0,
            }
        }));
        small_first(all, |status| &status.name)
    }

    /// Makes a server check at once whether it is gone.
    pub fn doubt(&self, name: &str) {
        if let Some(server) = self.get(name) {
            server.doubt.notify_one();
        }
    }

    /// The programs that listen on loopback ports, if the system names them. Blocks.
    pub fn behind(ports: &BTreeSet<u16>) -> BTreeMap<u16, Behind> {
        owner::behind(ports)
    }

    /// Starts programs whose tools are unknown and waits for them, so that the first run
    /// can use them.
    pub async fn first_look(&self, is_in_reach: impl Fn(&str) -> bool) {
        let lazy = self.all().into_iter().filter(|server| {
            let settings = &server.settings;
            settings.is_lazy()
                && settings.enabled
                && settings.unusable.is_empty()
                && is_in_reach(&settings.name)
        });
        let looks: Vec<_> = lazy.collect();
        let all = futures_util::future::join_all(looks.iter().map(|server| server.first_look()));
        // Tools of slower programs are offered in a later step.
        let _ = tokio::time::timeout(FIRST_LOOK, all).await;
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Pending>>> {
        self.0.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a login to a server; returns the address that a person opens. The server finally
    /// redirects the browser to `redirect` with parameters for [`Servers::finish_login`].
    ///
    /// # Errors
    /// The reason why the login cannot begin.
    pub async fn begin_login(&self, settings: &Settings, redirect: &str) -> Result<String, String> {
        let tokens = self.0.means.tokens(settings).ok_or_else(|| {
            match settings.transport {
                Transport::Url { .. } => {
                    "it needs no login, because its configuration has headers with credentials"
                }
                Transport::Program { .. } | Transport::Port(_) => {
                    "only servers with a url support a login"
                }
            }
            .to_owned()
        })?;
        let begun = Pending::begin(tokens, &settings.oauth, redirect).await?;
        let address = begun.address.clone();
        let mut pending = self.pending();
        pending.retain(|_, login| !login.is_over());
        pending.insert(settings.name.clone(), Arc::new(begun));
        Ok(address)
    }

    /// Ends a login with the address to which the browser was redirected, and
    /// connects the server.
    ///
    /// # Errors
    /// The reason why the address is not accepted; the login can be finished with another one.
    pub async fn finish_login(&self, name: &str, redirected: &str) -> Result<(), String> {
        let login = self
            .pending()
            .get(name)
            .filter(|login| !login.is_over())
            .cloned();
        let login = login.ok_or("no login is in progress: begin one with `crabtalk mcps login`")?;
        login.finish(redirected).await?;
        self.pending().remove(name);
        self.0.means.forget_tokens(name);
        self.restart(name);
        Ok(())
    }

    /// Deletes a login; returns whether there was one. The server is not informed.
    ///
    /// # Errors
    /// The file cannot be deleted.
    pub async fn log_out(&self, name: &str) -> Result<bool, String> {
        self.pending().remove(name);
        let means = &self.0.means;
        if let Some(tokens) = means.forget_tokens(name) {
            tokens.close().await;
        }
        let forgotten = means.logins.forget(name).await;
        // A request during the logout may have cached the old tokens.
        means.forget_tokens(name);
        if forgotten != Ok(false) {
            self.restart(name);
        }
        forgotten
    }

    /// Restarts the task of a server.
    fn restart(&self, name: &str) {
        let mut state = self.state();
        let Some(old) = state.servers.remove(name) else {
            return;
        };
        old.cancel.cancel();
        let server = self.start(old.settings.clone(), old.now().connected);
        state.servers.insert(name.to_owned(), server);
    }

    /// Ends every connection and program.
    pub async fn shut_down(&self) {
        self.0.stop.cancel();
        self.0.means.tasks.close();
        let ended = tokio::time::timeout(SHUT_DOWN_WITHIN, self.0.means.tasks.wait()).await;
        if ended.is_err() {
            tracing::warn!("some MCP servers did not stop in time");
        }
        self.0.means.programs.guardian.shut_down().await;
    }
}

/// The settings of servers by name, and ignored port files with the reason.
#[expect(
    clippy::type_complexity,
    reason = "it is taken apart where it is called"
)]
fn wanted(
    configured: &[Settings],
    found: &[FoundPort],
) -> (
    BTreeMap<String, Settings>,
    BTreeMap<String, (Option<PortFile>, String)>,
) {
    let (mut wanted, mut passed_over) = (BTreeMap::new(), BTreeMap::new());
    for settings in configured {
        let mut settings = settings.clone();
        if let Err(why) = check_server_name(&settings.name) {
            settings.unusable = why;
        }
        wanted.insert(settings.name.clone(), settings);
    }
    for FoundPort { name, says } in small_first(found, |found| &found.name) {
        let clash = |known: &&String| known.eq_ignore_ascii_case(name);
        let known: Option<String> = wanted.keys().find(clash).cloned();
        let port = says.as_ref().ok().cloned();
        let why = match (says, check_server_name(name), known) {
            (_, Err(why), _) => why,
            (Err(why), Ok(()), None) => why.clone(),
            (_, Ok(()), Some(known)) if known == *name => {
                format!("{known} exists and takes precedence")
            }
            (_, Ok(()), Some(known)) => {
                format!("its name differs from {known} only in case; rename it")
            }
            _ if wanted.len() >= MAX_SERVERS => format!("there are {MAX_SERVERS} servers already"),
            (Ok(port), Ok(()), None) => {
                let settings = Settings::new(name, Source::PortFile, Transport::Port(port.clone()));
                wanted.insert(name.clone(), settings);
                continue;
            }
        };
        passed_over.insert(name.clone(), (port, why));
    }
    (wanted, passed_over)
}

fn status(server: &Server, now: &Now) -> ServerStatus {
    let settings = &server.settings;
    let (port, instance) = match &settings.transport {
        Transport::Port(file) => (file.port, file.instance.clone().unwrap_or_default()),
        Transport::Program { .. } | Transport::Url { .. } => (0, String::new()),
    };
    ServerStatus {
        name: settings.name.clone(),
        source: settings.source.as_str(),
        transport: settings.transport.name(),
        port,
        instance,
        phase: now.phase,
        error: now.error.clone(),
        wants_login: now.wants_login,
        tools: now.tools.known.len(),
        shadowed: false,
        server: now.server.clone(),
        protocol: now.protocol.clone(),
        since: Instant::now().saturating_duration_since(now.since),
        calls: now.link.as_ref().map_or(0, |link| link.calls.count()),
        connected: now.connected,
    }
}

#[cfg(test)]
mod tests;
