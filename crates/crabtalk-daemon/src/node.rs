//! A node: what is configured, and the runtime that runs on it.

use crate::accepted::{Accepted, Question};
use crate::agents::AgentFiles;
use crate::approvals::ApprovalFile;
use crate::compose::{BUILT_IN, Composed, InForce, Report, compose, sandbox, sync_policy};
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
use crabtalk_domain::{ConversationKey, Sandbox, SystemClock};
use crabtalk_memory::{ArchiveIndex, Memory};
use crabtalk_model::detect;
use crabtalk_runtime::{Matter, Parts, Runtime};
use crabtalk_skills::{Folder, Library, Source, TrustFile};
use crabtalk_store::FileStore;
use crabtalk_store::fs::OsFiles;
use crabtalk_tools::{Children, GuardianCommand, OsTools, OsToolsConfig, Walls, child_environment};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time for reading the whole configuration: a slow disk takes a second or two.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// Findings about skills that a start or a reload tells; `crabtalk skills`
/// tells all.
const MAX_SKILL_WARNINGS: usize = 20;

/// Everything that sessions share.
pub(crate) struct Node {
    home: Home,
    runtime: Runtime,
    models: Arc<Models>,
    ledger: Arc<DayLedger>,
    approvals: Arc<ApprovalFile>,
    agents: AgentFiles,
    accepted: Accepted,
    children: Children,
    tools: Arc<OsTools>,
    memory: Arc<ArcSwap<Memory>>,
    skills: Arc<Skills>,
    settings: Arc<Settings>,
    /// Held over a change of the configuration; holds what is in force.
    in_force: tokio::sync::Mutex<InForce>,
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
        let root = home.root().to_owned();
        // Before anything is read of what it watches over.
        let accepted = patiently(&home, move || Accepted::open(&root)).await;
        let accepted = accepted.map_err(anyhow::Error::msg)?;
        let reading = home.clone();
        let composed = move || compose(&reading, &InForce::default());
        let Composed {
            config,
            catalog,
            models,
            source,
            mut report,
        } = patiently(&home, composed)
            .await
            .flatten()
            .map_err(anyhow::Error::msg)?;
        let options = detection(&config);
        let models = Models::new(models, options).map_err(anyhow::Error::msg)?;
        let settings = Settings::new(config);
        let config = settings.config();
        let skills = skills(&home, &settings);
        let approvals = ApprovalFile::open(
            home.approvals_file(),
            Arc::clone(&skills),
            accepted.clone(),
            &mut report,
        );
        let approvals = Arc::new(approvals);
        tell_of_skills(&skills, &mut report).await;
        report.log();
        let children = Children::adopt().unwrap_or_else(|error| {
            tracing::warn!(%error, "this system has no reaper of orphans");
            Children::default()
        });
        let store: Arc<dyn Storage> = Arc::new(store(&home, &config));
        let tools = Arc::new(os_tools(
            &home, &children, &skills, &settings, &accepted, open_files,
        )?);
        let archives = ArchiveIndex::new(home.state_dir().join("recall"), Arc::clone(&store));
        let memory = memory(&home, &settings, &store, archives);
        let memory = Arc::new(ArcSwap::from_pointee(memory));
        let context = Context {
            memory: Arc::clone(&memory),
            skills: Arc::clone(&skills),
            accepted: accepted.clone(),
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
                    Arc::new(SkillTool(Arc::clone(&skills), accepted.clone())),
                    Arc::new(MemoryTools {
                        memory: Arc::clone(&memory),
                        accepted: accepted.clone(),
                    }),
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
            accepted,
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
            in_force: tokio::sync::Mutex::new(source),
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
    pub(crate) async fn reload(&self) -> Result<Report, String> {
        self.accepted.settle().await;
        self.take(&mut *self.in_force.lock().await).await
    }

    /// Changes `config.toml` and takes it, or leaves everything as it is.
    pub(crate) async fn edit(
        &self,
        change: impl FnOnce(&mut ConfigFile, &Config) -> Result<(), EditError> + Send + 'static,
    ) -> Result<(), EditError> {
        let mut source = self.in_force.lock().await;
        let (home, in_force) = (self.home.clone(), source.text.clone());
        let edited =
            tokio::task::spawn_blocking(move || edit::edit(&home, in_force.as_deref(), change));
        self.accepted
            .change("config/config.toml", edited)
            .await
            .map_err(|e| EditError::NotTaken(e.to_string()))??;
        let taken = self.take(&mut source).await;
        taken.map(drop).map_err(EditError::NotTaken)
    }

    async fn take(&self, in_force: &mut InForce) -> Result<Report, String> {
        let (home, before) = (self.home.clone(), in_force.clone());
        let composed = patiently(&self.home, move || compose(&home, &before)).await;
        let Composed {
            config,
            catalog,
            models,
            source,
            mut report,
        } = composed.flatten()?;
        self.models.replace(models)?;
        self.approvals.reload(&mut report).await;
        *in_force = source;
        self.runtime.set_catalog(catalog);
        self.tools.set_sandbox(sandbox(&config));
        self.settings.replace(config);
        let archives = self.memory().archives().clone();
        let memory = memory(&self.home, &self.settings, self.runtime.storage(), archives);
        self.memory.store(Arc::new(memory));
        self.skills
            .look_in(folders(&self.home, &self.settings.config()));
        tell_of_skills(&self.skills, &mut report).await;
        report.log();
        tracing::info!("configuration reloaded");
        Ok(report)
    }

    /// What counts, and what waits for an owner's word.
    pub(crate) fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// Asks owners about what commands changed of the configuration, for as
    /// long as the daemon serves.
    pub(crate) async fn ask_owners(&self) {
        let mut asked = FuturesUnordered::new();
        // Kept over the turns: half of it must not be dropped.
        let mut next = Box::pin(self.accepted.next());
        loop {
            tokio::select! {
                question = &mut next => {
                    asked.push(self.ask_owner(question));
                    next = Box::pin(self.accepted.next());
                }
                Some(()) = asked.next(), if !asked.is_empty() => {}
            }
        }
    }

    async fn ask_owner(&self, question: Question) {
        let named = ConversationKey::new(&question.agent, &question.sender);
        // Whose it was cannot be told any more: the owner's own agent stands
        // for it.
        let Ok(key) = named.or_else(|_| ConversationKey::new(BUILT_IN, "user")) else {
            return;
        };
        let matter = Matter {
            question: format!(
                "A command of {} changed the configuration. Shall that count?",
                key.agent
            ),
            tool: "config".into(),
            detail: question.detail,
            reason: "what a command changes counts only when an owner allows it".into(),
        };
        let done = match self.runtime.ask_owner(&key, matter).await {
            None => return,
            Some(true) => self.accepted.accept(&question.id).await,
            Some(false) => self.accepted.refuse(&question.id).await,
        };
        if let Err(error) = done {
            tracing::error!(id = %question.id, %error, "a change of the configuration was not taken");
        }
        if let Err(error) = self.reload().await {
            tracing::warn!(%error, "the reload failed; the old configuration stays");
        }
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

/// Reads the configuration where that may wait for a disk, and not for ever:
/// one that does not answer, as a network's may, is told instead.
async fn patiently<T: Send + 'static>(
    home: &Home,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let reading = tokio::task::spawn_blocking(read);
    match tokio::time::timeout(READ_WITHIN, reading).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err(format!(
            "the configuration in {} could not be read within {} s: a file system that it lies on, \
             or that a link in it leads to, does not answer",
            home.config_dir().display(),
            READ_WITHIN.as_secs()
        )),
    }
}

/// Skills that are passed over, refused or doubled are told where the rest of
/// the configuration is.
async fn tell_of_skills(skills: &Arc<Skills>, report: &mut Report) {
    let skills = Arc::clone(skills);
    let listed = tokio::task::spawn_blocking(move || skills.library().list_all(None)).await;
    let warnings = listed.map(|listed| listed.warnings).unwrap_or_default();
    let warnings = warnings.iter().take(MAX_SKILL_WARNINGS);
    report.warnings.extend(warnings.map(ToString::to_string));
}

/// The folders of skills: installed ones, those that the owner names in that
/// order, imported ones.
fn folders(home: &Home, config: &Config) -> Vec<Folder> {
    let mut folders = vec![Folder {
        path: home.skills_dir(),
        source: Source::Home,
    }];
    folders.extend(config.skills.paths.iter().map(|path| Folder {
        path: home.expand_tilde(path),
        source: Source::External,
    }));
    if config.skills.import
        && let Some(user_home) = home.user_home()
    {
        folders.push(Folder {
            path: user_home.join(".claude/skills"),
            source: Source::External,
        });
    }
    folders
}

fn skills(home: &Home, settings: &Arc<Settings>) -> Arc<Skills> {
    let folders = folders(home, &settings.config());
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
    accepted: &Accepted,
    open_files: Option<u64>,
) -> anyhow::Result<OsTools> {
    let guardian = GuardianCommand::new(std::env::current_exe()?);
    let outputs = home.state_dir().join("outputs");
    let environment = child_environment(std::env::vars_os());
    let mut config = OsToolsConfig::new(guardian, home.root(), outputs, environment);
    config.children = children.clone();
    config.watch = Arc::new(accepted.clone());
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
