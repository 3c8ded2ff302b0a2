//! A node: what is configured, and the runtime that runs on it.

use crate::agents::AgentFiles;
use crate::approvals::ApprovalFile;
use crate::compose::{Composed, compose, sandbox, sync_policy};
use crate::context::Context;
use crate::delegates::DelegateFile;
use crate::disk::LocalDisk;
use crate::edit::{self, EditError};
use crate::ledger::DayLedger;
use crate::memory::{MemoryTools, memory};
use crate::models::{Asked, Models};
use crate::session::PartialAnswers;
use crate::settings::Settings;
use crate::skills::{SkillTool, Skills};
use crate::surroundings::Surroundings;
use crate::sweep;
use arc_swap::ArcSwap;
use crabtalk_config::{Config, ConfigFile, Home};
use crabtalk_domain::storage::Storage;
use crabtalk_domain::tool::{Invocation, ToolProvider};
use crabtalk_domain::{Sandbox, SystemClock};
use crabtalk_memory::{ArchiveIndex, Memory};
use crabtalk_model::detect;
use crabtalk_runtime::{Parts, Runtime};
use crabtalk_skills::{Folder, Library, Source, TrustFile};
use crabtalk_store::FileStore;
use crabtalk_store::fs::OsFiles;
use crabtalk_tools::{Children, GuardianCommand, OsTools, OsToolsConfig, Walls, child_environment};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Everything that sessions share.
pub(crate) struct Node {
    home: Home,
    runtime: Runtime,
    models: Arc<Models>,
    ledger: Arc<DayLedger>,
    approvals: Arc<ApprovalFile>,
    agents: AgentFiles,
    children: Children,
    tools: Arc<OsTools>,
    memory: Arc<ArcSwap<Memory>>,
    skills: Arc<Skills>,
    settings: Arc<Settings>,
    /// Held over a change of the configuration; holds the text of
    /// `config.toml` that is in force.
    text: tokio::sync::Mutex<Option<String>>,
    started: Instant,
    partial_answers: PartialAnswers,
    open_connections: Arc<AtomicUsize>,
}

/// A connection that is counted.
pub(crate) struct OpenConnection(Arc<AtomicUsize>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Node {
    /// `open_files` is the limit of open files that commands get.
    pub(crate) async fn start(home: Home, open_files: Option<u64>) -> anyhow::Result<Self> {
        let Composed {
            config,
            catalog,
            models,
            text,
        } = compose(&home).map_err(anyhow::Error::msg)?;
        let options = detection(&config);
        let models = Models::new(models, options).map_err(anyhow::Error::msg)?;
        let settings = Settings::new(config);
        let config = settings.config();
        let skills = skills(&home, &settings);
        let approvals = ApprovalFile::open(home.approvals_file(), Arc::clone(&skills));
        let approvals = Arc::new(approvals.map_err(anyhow::Error::msg)?);
        let children = Children::adopt().unwrap_or_else(|error| {
            tracing::warn!(%error, "this system has no reaper of orphans");
            Children::default()
        });
        let store: Arc<dyn Storage> = Arc::new(store(&home, &config));
        let tools = Arc::new(os_tools(&home, &children, &skills, &settings, open_files)?);
        let archives = ArchiveIndex::new(home.state_dir().join("recall"), Arc::clone(&store));
        let memory = memory(&home, &settings, &store, archives);
        let memory = Arc::new(ArcSwap::from_pointee(memory));
        let context = Context {
            memory: Arc::clone(&memory),
            skills: Arc::clone(&skills),
            surroundings: Surroundings::new(Arc::clone(&skills), home.user_home().map(Into::into)),
        };
        let numbers = home.state_dir().join("delegates");
        let delegates = DelegateFile::new(numbers, Arc::clone(&store));
        let ledger = ledger(&home, &settings, &models);
        let runtime = Runtime::new(
            Parts {
                model: Arc::new(Asked(Arc::clone(&models))),
                storage: store,
                tools: vec![
                    Arc::clone(&tools) as Arc<dyn ToolProvider>,
                    Arc::new(SkillTool(Arc::clone(&skills))),
                    Arc::new(MemoryTools(Arc::clone(&memory))),
                ],
                hook: Arc::new(context),
                ledger: Arc::clone(&ledger) as _,
                clock: Arc::new(SystemClock),
                approvals: Arc::clone(&approvals) as _,
                disk: Arc::new(LocalDisk),
                delegates: Arc::new(delegates),
            },
            catalog,
        );
        Ok(Self {
            agents: AgentFiles::new(home.agents_dir()),
            home,
            runtime,
            models,
            ledger,
            approvals,
            children,
            tools,
            memory,
            skills,
            settings,
            text: tokio::sync::Mutex::new(text),
            started: Instant::now(),
            partial_answers: PartialAnswers::default(),
            open_connections: Arc::default(),
        })
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn ledger(&self) -> &Arc<DayLedger> {
        &self.ledger
    }

    pub(crate) fn partial_answers(&self) -> &PartialAnswers {
        &self.partial_answers
    }

    pub(crate) fn models(&self) -> &Models {
        &self.models
    }

    pub(crate) fn memory(&self) -> Arc<Memory> {
        self.memory.load_full()
    }

    pub(crate) fn skills(&self) -> &Arc<Skills> {
        &self.skills
    }

    pub(crate) fn approvals(&self) -> &ApprovalFile {
        &self.approvals
    }

    pub(crate) fn agents(&self) -> &AgentFiles {
        &self.agents
    }

    pub(crate) fn children(&self) -> &Children {
        &self.children
    }

    /// The configuration that is in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.settings.config()
    }

    /// Connections at a time (WIRE-9).
    pub(crate) fn connections(&self) -> usize {
        self.config().limits.connections as usize
    }

    /// Counts a connection for as long as the guard lives.
    pub(crate) fn count_connection(&self) -> OpenConnection {
        self.open_connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.open_connections))
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.open_connections.load(Ordering::Relaxed)
    }

    pub(crate) fn uptime_secs(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Takes what the files say now, or leaves everything as it is (OPS-4).
    pub(crate) async fn reload(&self) -> Result<(), String> {
        self.take(&mut *self.text.lock().await).await
    }

    /// Changes `config.toml` and takes it, or leaves everything as it is.
    pub(crate) async fn edit(
        &self,
        change: impl FnOnce(&mut ConfigFile, &Config) -> Result<(), EditError> + Send + 'static,
    ) -> Result<(), EditError> {
        let mut text = self.text.lock().await;
        let (home, in_force) = (self.home.clone(), text.clone());
        let edited =
            tokio::task::spawn_blocking(move || edit::edit(&home, in_force.as_deref(), change));
        edited
            .await
            .map_err(|e| EditError::NotTaken(e.to_string()))??;
        self.take(&mut text).await.map_err(EditError::NotTaken)
    }

    async fn take(&self, in_force: &mut Option<String>) -> Result<(), String> {
        let home = self.home.clone();
        let composed = tokio::task::spawn_blocking(move || compose(&home)).await;
        let Composed {
            config,
            catalog,
            models,
            text,
        } = composed.map_err(|e| e.to_string())??;
        self.approvals.reload()?;
        self.models.replace(models)?;
        *in_force = text;
        self.runtime.set_catalog(catalog);
        self.tools.set_sandbox(sandbox(&config));
        self.settings.replace(config);
        let archives = self.memory().archives().clone();
        let memory = memory(&self.home, &self.settings, self.runtime.storage(), archives);
        self.memory.store(Arc::new(memory));
        tracing::info!("configuration reloaded");
        Ok(())
    }

    /// Carries on the runs that a crash cut off, if that is wanted (STORE-7).
    /// For after the daemon is ready: it looks into every conversation's log.
    pub(crate) async fn resume_runs(&self) {
        if !self.runtime.catalog().resume {
            return;
        }
        let listed = self.runtime.storage().list(None, None).await;
        let listed = listed.unwrap_or_else(|error| {
            tracing::warn!(%error, "interrupted runs wait until their conversations are used");
            Vec::new()
        });
        for summary in listed {
            if summary.superseded || !summary.has_open_run {
                continue;
            }
            if let Err(error) = self.runtime.resume(&summary.key) {
                tracing::warn!(conversation = %summary.key, %error, "cannot carry on a run");
            }
        }
    }

    /// What the sandbox has on this machine, if any agent uses it. Finding out
    /// takes a moment, once.
    pub(crate) async fn walls(&self) -> Option<Arc<Walls>> {
        let catalog = self.runtime.catalog();
        let used = catalog.agents.values().any(|a| a.sandbox != Sandbox::Off);
        drop(catalog);
        if used {
            Some(self.tools.walls().await)
        } else {
            None
        }
    }

    /// What stays open to the commands of an agent although it is sandboxed.
    pub(crate) async fn open_walls(&self, agent: &str) -> Option<String> {
        let catalog = self.runtime.catalog();
        let name = if agent.is_empty() {
            catalog.default_agent.as_str()
        } else {
            agent
        };
        let sandbox = catalog.agent(name).ok()?.sandbox;
        drop(catalog);
        match sandbox {
            Sandbox::Off => None,
            Sandbox::On => self.tools.walls().await.open(),
            Sandbox::Strict => {
                let open = self.tools.walls().await.open()?;
                Some(format!(
                    "commands are refused, because the sandbox is strict and {open}"
                ))
            }
        }
    }

    /// Sweeps the trash and old outputs, now and every day. Never resolves.
    pub(crate) async fn sweep(&self) {
        loop {
            let (home, days) = (self.home.clone(), self.config().storage.trash_days);
            let today = jiff::Zoned::now().date();
            let sweep = move || sweep::sweep(&home, today, days.into());
            if let Err(error) = tokio::task::spawn_blocking(sweep).await {
                tracing::warn!(%error, "the trash was not swept");
            }
            tokio::time::sleep(sweep::BETWEEN).await;
        }
    }

    /// Ends every run and closes every log.
    pub(crate) async fn shutdown(&self) {
        self.runtime.shutdown().await;
        self.memory().archives().finish().await;
        self.tools.shut_down().await;
        self.children.sweep().await;
    }
}

/// The folders of skills, installed ones before imported ones.
fn skills(home: &Home, settings: &Arc<Settings>) -> Arc<Skills> {
    let mut folders = vec![Folder {
        path: home.skills_dir(),
        source: Source::Home,
    }];
    if settings.config().skills.import
        && let Some(user_home) = home.user_home()
    {
        folders.push(Folder {
            path: user_home.join(".claude/skills"),
            source: Source::External,
        });
    }
    let trust = TrustFile::new(home.trust_file());
    Skills::new(Arc::clone(settings), Library::new(folders), trust)
}

/// Conversations as files, and with each the outputs of its tools.
fn store(home: &Home, config: &Config) -> FileStore {
    let policy = sync_policy(config.storage.sync);
    let (sessions, trash) = (home.sessions_dir(), home.trash_dir());
    let outputs = home.state_dir().join("outputs");
    FileStore::open(sessions, trash, policy, Arc::new(OsFiles))
        .with_belongings(move |key| crabtalk_tools::outputs_of(&outputs, key))
}

fn os_tools(
    home: &Home,
    children: &Children,
    skills: &Arc<Skills>,
    settings: &Arc<Settings>,
    open_files: Option<u64>,
) -> anyhow::Result<OsTools> {
    let guardian = GuardianCommand::new(std::env::current_exe()?);
    let outputs = home.state_dir().join("outputs");
    let environment = child_environment(std::env::vars_os());
    let mut config = OsToolsConfig::new(guardian, home.root(), outputs, environment);
    config.children = children.clone();
    config.open_files = open_files;
    config.sandbox = sandbox(&settings.config());
    let skills = Arc::clone(skills);
    config.readable = Arc::new(move |call: &Invocation| skills.readable(&call.agent));
    let (settings, identity) = (Arc::clone(settings), home.identity_file());
    config.writable = Arc::new(move |_: &Invocation| {
        let editable = settings.config().memory.soul_editable;
        editable.then(|| identity.clone()).into_iter().collect()
    });
    Ok(OsTools::new(config))
}

fn ledger(home: &Home, settings: &Arc<Settings>, models: &Arc<Models>) -> Arc<DayLedger> {
    let models = Arc::clone(models);
    Arc::new(DayLedger::new(
        home.state_dir().join("ledger"),
        Arc::clone(settings),
        Arc::new(SystemClock),
        jiff::tz::TimeZone::system,
        move |model, usage| models.cost(model, usage),
    ))
}

/// MODEL-6: what may be looked at when no provider is configured.
fn detection(config: &Config) -> detect::Options {
    let forbidden = std::env::var_os("CRABTALK_DETECT").is_some_and(|value| value == "0");
    detect::Options {
        env: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        probe: config.runs.detect && !forbidden,
        ..detect::Options::default()
    }
}
