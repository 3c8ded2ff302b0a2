//! The MCP servers and components of a node: the configured ones, those with a port file
//! in `run/`, and the services that the daemon provides to them (COMP-1 to COMP-3).
//!
//! Invariant: a component is discovered, never started; a configured program runs under
//! a guardian.

mod discovery;
mod gateways;
pub(crate) mod memory;

pub(crate) use discovery::work;
pub(crate) use gateways::{Gateway, Gateways, Present, SOURCE as GATEWAY};

use crabtalk_config::{Config, Home, Mcp, McpGrant, McpTransport, McpTrust};
use crabtalk_domain::{BoxFuture, ComponentNews, ConversationKey};
use crabtalk_guardian::Guardian;
use crabtalk_mcp::{
    Http, HttpError, HttpRequest, HttpResponse, Outputs, Pace, Parts, Programs, ServerStatus,
    Servers, Source, Transport, Trust,
};
use crabtalk_model::{Web, WebError};
use crabtalk_tools::OsTools;
use futures_util::StreamExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, mpsc, watch};

/// Maximum number of queued news. The next list shows the state if some are dropped.
const MAX_NEWS: usize = 256;

/// Time limit of a request for the configured servers.
const KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// The file of known tools and approved descriptions.
const REMEMBERED: &str = "mcp.json";

/// The folder of logins.
pub(crate) const LOGINS: &str = "oauth";

fn news(status: ServerStatus, said: String) -> ComponentNews {
    ComponentNews {
        name: status.name,
        source: status.source.to_owned(),
        state: status.phase.as_str().to_owned(),
        error: status.error,
        tools: status.tools,
        said,
    }
}

/// The servers of a node.
pub(crate) struct Mcps {
    pub(crate) servers: Servers,
    pub(crate) gateways: Arc<Gateways>,
    news: Mutex<mpsc::Receiver<ComponentNews>>,
    /// Notified to read the port files now.
    look: Notify,
    /// Whether the configuration has been applied.
    taken: watch::Sender<bool>,
}

impl Mcps {
    pub(crate) fn new(
        home: &Home,
        guardian: Guardian,
        environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
        open_files: Option<u64>,
        tools: Arc<OsTools>,
    ) -> Arc<Self> {
        let (hears, told) = mpsc::channel(MAX_NEWS);
        let gateways = Gateways::new(hears.clone());
        let cwd = home
            .user_home()
            .map_or_else(|| home.root().to_owned(), Into::into);
        let servers = Servers::new(Parts {
            programs: Programs {
                guardian,
                environment,
                cwd,
                open_files,
            },
            http: Arc::new(Addresses(Arc::default())),
            outputs: Arc::new(Shelf(tools)),
            seen: home.state_dir().join(REMEMBERED),
            logins: home.state_dir().join(LOGINS),
            news: Arc::new(move |status, said| drop(hears.try_send(news(status, said)))),
            pace: pace(),
        });
        Arc::new(Self {
            servers,
            gateways,
            news: Mutex::new(told),
            look: Notify::new(),
            taken: watch::Sender::default(),
        })
    }

    pub(crate) async fn configure(&self, config: &Config) {
        let servers = config.mcp.iter().map(settings).collect();
        self.servers.configure(servers).await;
        self.taken.send_replace(true);
        self.look.notify_one();
    }

    /// Waits until the configured servers are known, after the daemon's start.
    pub(crate) async fn known(&self) {
        let mut taken = self.taken.subscribe();
        // The timeout covers a failed service.
        let _ = tokio::time::timeout(KNOWN_WITHIN, taken.wait_for(|taken| *taken)).await;
    }

    /// Starts programs in an agent's scope whose tools are unknown, and waits for them.
    pub(crate) async fn first_look(&self, scope: &crabtalk_domain::Scope) {
        self.known().await;
        let in_reach = |name: &str| crabtalk_gate::scope::allows_mcp(scope, name);
        self.servers.first_look(in_reach).await;
    }

    /// Publishes news to watchers. Never resolves.
    async fn tell(&self, runtime: &crabtalk_runtime::Runtime) {
        let mut news = self.news.lock().await;
        while let Some(next) = news.recv().await {
            runtime.tell_of_component(next);
        }
    }
}

/// The intervals of server supervision, which tests shorten.
fn pace() -> Pace {
    let mut pace = Pace::default();
    let other = |name: &str| {
        let ms = std::env::var(name).ok()?.parse().ok()?;
        Some(Duration::from_millis(ms))
    };
    if let Some(beat) = other("CRABTALK_MCP_PING_MS") {
        (pace.ping, pace.answer, pace.hanging) = (beat, beat, beat);
    }
    if let Some(start) = other("CRABTALK_MCP_START_MS") {
        pace.start = start;
    }
    pace
}

/// The settings of a configured server.
pub(crate) fn settings(mcp: &Mcp) -> crabtalk_mcp::Settings {
    let exposed = |secrets: &std::collections::BTreeMap<String, crabtalk_config::Secret>| {
        let pairs = secrets.iter();
        pairs
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect()
    };
    let transport = match &mcp.transport {
        McpTransport::Stdio { command, args, env } => Transport::Program {
            command: command.value().to_owned(),
            args: args.iter().map(|arg| arg.value().to_owned()).collect(),
            env: exposed(env),
        },
        McpTransport::Http { url, headers } => Transport::Url {
            url: url.value().to_owned(),
            headers: exposed(headers),
        },
    };
    let mut settings = crabtalk_mcp::Settings::new(&mcp.name, Source::Config, transport);
    settings.enabled = mcp.enabled;
    settings.auto_restart = mcp.auto_restart;
    settings.timeout = Duration::from_secs(mcp.timeout_secs);
    settings.idle = Duration::from_secs(mcp.idle_secs);
    settings.trust = match mcp.trust {
        McpTrust::None => Trust::None,
        McpTrust::Annotations => Trust::Annotations,
    };
    let secret = mcp.oauth.secret(&mcp.name).unwrap_or_else(|error| {
        settings.unusable = error.with_causes();
        None
    });
    settings.oauth = crabtalk_mcp::OAuthClient {
        id: mcp.oauth.client_id.clone(),
        secret: crabtalk_mcp::Secret(
            secret.map_or_else(String::new, |secret| secret.expose().to_owned()),
        ),
        scopes: mcp.oauth.scopes.clone(),
        is_alone: mcp.oauth.grant == McpGrant::ClientCredentials,
    };
    if let Some(missing) = &mcp.missing {
        settings.unusable = missing.to_error().with_causes();
    }
    settings
}

/// Stores the part of an answer that exceeds the model's limit.
struct Shelf(Arc<OsTools>);

impl Outputs for Shelf {
    fn keep<'a>(
        &'a self,
        key: &'a ConversationKey,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<PathBuf, String>> {
        Box::pin(self.0.keep_output(key, "mcp-", bytes))
    }
}

/// HTTP requests to servers, through the client of the models.
struct Addresses(Arc<Web>);

impl Http for Addresses {
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        let web = Arc::clone(&self.0);
        Box::pin(async move {
            let answer = web.call(request).await.map_err(|error| match error {
                WebError::Unreachable(why) => HttpError::Refused(why),
                WebError::Broken(why) => HttpError::Broken(why),
            })?;
            let (parts, body) = answer.into_parts();
            Ok(HttpResponse {
                status: parts.status,
                headers: parts.headers,
                body: Box::pin(body.map(|bytes| bytes.map_err(HttpError::Broken))),
            })
        })
    }
}

/// The servers in an agent's scope, as lines for its context (0075).
pub(crate) fn in_reach(servers: &Servers, scope: &crabtalk_domain::Scope) -> Option<String> {
    use crabtalk_gate::scope::allows_mcp;
    let listed = servers.list().into_iter().filter(|status| {
        let is_useful = status.tools > 0 || status.wants_login;
        !status.shadowed && is_useful && allows_mcp(scope, &status.name)
    });
    let lines: Vec<String> = listed
        .map(|status| {
            let name = crabtalk_domain::tags::line(&status.name);
            if status.phase == crabtalk_mcp::Phase::Hanging {
                return format!("{name}: does not answer at the moment");
            }
            if status.wants_login {
                return format!(
                    "{name}: cannot be used before its owner logs in to it, with the command `crabtalk mcps login {name}`"
                );
            }
            format!("{name}: {} tools, called {name}__..", status.tools)
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
