//! A set of servers in a folder of its own.

use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider};
use crabtalk_domain::{AgentConfig, AgentName, BoxFuture, ConversationKey, Origin, Principal};
use crabtalk_guardian::{Children, Guardian, GuardianCommand};
use crabtalk_mcp::{
    Http, HttpError, HttpRequest, HttpResponse, Outputs, Pace, Parts, Phase, Programs,
    ServerStatus, Servers, Settings, Source, Transport,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The server that does what tests want; the end-to-end tests use it, too.
pub(crate) const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crabtalk/tests/it/rig/mcp_server.py"
);

/// Far beyond what anything here takes; it judges nothing.
const LIMIT: Duration = Duration::from_secs(120);

/// An HTTP client without a network.
pub(crate) struct Offline;

impl Http for Offline {
    fn send(&self, _: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        unreachable!("these servers are on the loopback")
    }
}

struct Nowhere;

impl Outputs for Nowhere {
    fn keep<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: Vec<u8>,
    ) -> BoxFuture<'a, Result<PathBuf, String>> {
        Box::pin(std::future::ready(Err("nothing is kept here".into())))
    }
}

pub(crate) struct World {
    pub(crate) servers: Servers,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new(http: impl Http + 'static, pace: Pace) -> Self {
        Self::of(tempfile::tempdir().unwrap(), http, pace)
    }

    fn of(folder: tempfile::TempDir, http: impl Http + 'static, pace: Pace) -> Self {
        let path = folder.path().to_owned();
        let guardian = GuardianCommand::new(env!("CARGO_BIN_EXE_test-mcp-guardian"));
        let servers = Servers::new(Parts {
            programs: Programs {
                guardian: Guardian::new(guardian, Children::default()),
                environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
                cwd: path.clone(),
                open_files: None,
            },
            http: Arc::new(http),
            outputs: Arc::new(Nowhere),
            seen: path.join("mcp.json"),
            logins: path.join("oauth"),
            news: Arc::new(|_, _| {}),
            pace,
        });
        Self { servers, folder }
    }

    /// Another set of servers in the same folder, as after a restart.
    pub(crate) async fn restart(self) -> Self {
        self.servers.shut_down().await;
        Self::of(self.folder, Offline, Pace::default())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for a state of the servers.
    pub(crate) async fn until<T>(&self, look: impl Fn(&[ServerStatus]) -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(seen) = look(&self.servers.list()) {
                    return seen;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let seen = tokio::time::timeout(LIMIT, looking).await;
        seen.unwrap_or_else(|_| panic!("it stays at {:?}", self.servers.list()))
    }

    /// Waits for the phase of a server.
    pub(crate) async fn phase(&self, name: &str, phase: Phase) -> ServerStatus {
        self.until(|all| {
            let mut all = all.iter();
            let found = all.find(|one| one.name == name && one.phase == phase);
            found.cloned()
        })
        .await
    }

    /// Calls a tool as an owner's run does after the gate.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        let key = ConversationKey::new("crab", "user").unwrap();
        let call = Invocation {
            key: key.clone(),
            origin: Origin::Client {
                principal: Principal::Owner,
            },
            run: 1,
            root: (key, 1),
            agent: Arc::new(AgentConfig::new(AgentName::new("crab").unwrap(), "")),
            call_id: "1".into(),
            arguments,
            name: name.into(),
            cwd: PathBuf::from("/"),
        };
        let called = self.servers.call_for(&call, &Subject::Other, None, &());
        tokio::time::timeout(LIMIT, called)
            .await
            .expect("an answer")
    }

    /// What `NAME__echo` answers, which must not be an error.
    pub(crate) async fn echo(&self, name: &str) {
        let output = self
            .call(&format!("{name}__echo"), json!({"text": "a"}))
            .await;
        assert_eq!((output.content.as_str(), output.is_error), ("a", false));
    }

    /// The numbers of the processes that were started with [`World::program`].
    pub(crate) fn starts(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.folder().join("starts")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The test server as the program `files`, with more variables.
    pub(crate) fn program(&self, env: &[(&str, &str)]) -> Settings {
        let starts = self.folder().join("starts").display().to_string();
        let own = [("START", starts.as_str())];
        let env = own.iter().chain(env);
        program(
            "files",
            "python3",
            &[SERVER, "stdio"],
            env.copied().collect(),
        )
    }
}

/// A program of the configuration.
pub(crate) fn program(
    name: &str,
    command: &str,
    args: &[&str],
    env: BTreeMap<&str, &str>,
) -> Settings {
    let own = |text: &str| text.to_owned();
    let transport = Transport::Program {
        command: command.into(),
        args: args.iter().map(|arg| own(arg)).collect(),
        env: env
            .iter()
            .map(|(name, value)| (own(name), own(value)))
            .collect(),
    };
    Settings::new(name, Source::Config, transport)
}
