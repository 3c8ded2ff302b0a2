//! Builds a node from the configuration.

use super::Node;
use super::reload::folders;
use crate::agents::AgentFiles;
use crate::approvals::ApprovalFile;
use crate::audit::Audit;
use crate::bus::Bus;
use crate::compose::{Composed, sandbox};
use crate::context::Context;
use crate::cron::{Cron, ScheduleTool};
use crate::delegates::DelegateFile;
use crate::disk::LocalDisk;
use crate::ledger::DayLedger;
use crate::mcp::Mcps;
use crate::memory::{MemoryTools, memory};
use crate::models::{Asked, Models};
use crate::notify::Notifier;
use crate::remote::Remote;
use crate::services::Services;
use crate::settings::Settings;
use crate::skills::{SkillTool, Skills};
use crate::start::Loaded;
use crate::surroundings::Surroundings;
use arc_swap::ArcSwap;
use crabtalk_config::skills::{Library, TrustFile};
use crabtalk_config::{Config, Home};
use crabtalk_domain::SystemClock;
use crabtalk_domain::storage::Storage;
use crabtalk_domain::tool::{Invocation, ToolProvider};
use crabtalk_guardian::{Children, Guardian, GuardianCommand, child_environment};
use crabtalk_memory::ArchiveIndex;
use crabtalk_model::detect;
use crabtalk_runtime::{Parts, Runtime};
use crabtalk_store::fs::OsFiles;
use crabtalk_store::{FileStore, Indexes, Records};
use crabtalk_tools::{FileWork, OsTools, OsToolsConfig};
use crabtalk_transport::Crowd;
use std::sync::Arc;
use std::time::Instant;

impl Node {
    /// Builds a node without reading files beyond those `loaded`. `open_files` is the limit
    /// of open files for commands.
    pub(crate) fn new(
        home: Home,
        open_files: Option<u64>,
        loaded: Loaded,
        records: &Records,
        audit: Audit,
    ) -> anyhow::Result<Self> {
        let Loaded {
            composed,
            approvals,
        } = loaded;
        let Composed {
            config,
            catalog,
            models,
            source,
            mut report,
        } = composed;
        let models = Models::new(models, detection(&config)).map_err(anyhow::Error::msg)?;
        let crowd = Crowd::new(config.limits.connections as usize);
        let settings = Settings::new(config);
        let files = FileWork::default();
        let ground = Ground::new(home, settings, open_files, &files);
        let file = ground.home.approvals_file();
        let grants = Arc::clone(&ground.skills);
        let approvals = Arc::new(ApprovalFile::new(file, approvals, grants, &mut report));
        report.log();
        let store: Arc<dyn Storage> = Arc::new(ground.store());
        let tools = Arc::new(ground.os_tools(records)?);
        let ledger = ground.ledger(&models, records);
        let books = Arc::new(records.clone());
        let bus = Bus::new(&ground.home, books, Arc::clone(&ground.settings));
        let context = Arc::new(ground.context(&store, records, &tools)?);
        let runtime = Runtime::new(
            Parts {
                model: Arc::new(Asked(Arc::clone(&models))),
                delegates: Arc::new(DelegateFile::new(
                    ground.home.state_dir().join("delegates"),
                    Arc::clone(&store),
                )),
                storage: store,
                tools: tools_on_offer(&context, Arc::clone(&tools) as _),
                hook: Arc::clone(&context) as _,
                ledger: Arc::clone(&ledger) as _,
                ends: vec![Arc::clone(&ledger) as _, Arc::new(bus.clone())],
                clock: Arc::new(SystemClock),
                approvals: Arc::clone(&approvals) as _,
                disk: Arc::new(LocalDisk {
                    files,
                    tools: Some(Arc::clone(&tools)),
                    skills: Some(Arc::clone(&ground.skills)),
                    user_home: ground.home.user_home().map(Into::into),
                }),
            },
            catalog,
        );
        Ok(Self {
            audit,
            records: records.clone(),
            agents: AgentFiles::new(ground.home.agents_dir()),
            runtime,
            models,
            ledger,
            approvals,
            tools,
            mcps: Arc::clone(&context.mcps),
            memory: Arc::clone(&context.memory),
            in_force: tokio::sync::Mutex::new(source),
            started: Instant::now(),
            crowd,
            services: Services::new(Arc::new(SystemClock)),
            cron: context.cron.clone(),
            notifier: context.notifier.clone(),
            bus,
            remote: Remote::new(&ground.home, &ground.settings.config()),
            home: ground.home,
            children: ground.children,
            skills: ground.skills,
            settings: ground.settings,
        })
    }
}

/// Values that several parts of a node use.
struct Ground {
    home: Home,
    indexes: Indexes,
    settings: Arc<Settings>,
    skills: Arc<Skills>,
    children: Children,
    /// The limit of open files for commands.
    open_files: Option<u64>,
}

impl Ground {
    fn new(home: Home, settings: Arc<Settings>, open_files: Option<u64>, files: &FileWork) -> Self {
        Self {
            skills: skills(&home, &settings, files),
            children: adopted(),
            indexes: Indexes::in_state(&home.state_dir()),
            home,
            settings,
            open_files,
        }
    }

    fn guardian(&self) -> anyhow::Result<Guardian> {
        let command = GuardianCommand::own()?;
        Ok(Guardian::new(command, self.children.clone()))
    }

    /// The store of conversations and tool outputs.
    fn store(&self) -> FileStore {
        let policy = self.settings.config().storage.sync;
        let (sessions, trash) = (self.home.sessions_dir(), self.home.trash_dir());
        let outputs = self.home.state_dir().join("outputs");
        let changes = self.home.state_dir().join("changes");
        FileStore::open(sessions, trash, policy, Arc::new(OsFiles), &self.indexes)
            .with_belongings("outputs", move |key| {
                crabtalk_tools::outputs_of(&outputs, key)
            })
            .with_belongings("changes", move |key| {
                crabtalk_tools::outputs_of(&changes, key)
            })
    }

    fn os_tools(&self, records: &Records) -> anyhow::Result<OsTools> {
        let guardian = GuardianCommand::own()?;
        let outputs = self.home.state_dir().join("outputs");
        let environment = child_environment(std::env::vars_os());
        let changes = Arc::new(records.clone());
        let home = self.home.root();
        let mut config = OsToolsConfig::new(guardian, home, outputs, environment, changes);
        config.children = self.children.clone();
        config.open_files = self.open_files;
        config.files = self.skills.files.clone();
        config.sandbox = sandbox(&self.settings.config());
        let skills = Arc::clone(&self.skills);
        config.readable = Arc::new(move |call: &Invocation| skills.readable(&call.agent));
        let (settings, identity) = (Arc::clone(&self.settings), self.home.identity_file());
        config.writable = Arc::new(move |_: &Invocation| {
            let editable = settings.config().memory.soul_editable;
            editable.then(|| identity.clone()).into_iter().collect()
        });
        Ok(OsTools::new(config))
    }

    fn ledger(&self, models: &Arc<Models>, records: &Records) -> Arc<DayLedger> {
        let models = Arc::clone(models);
        Arc::new(DayLedger::new(
            Arc::new(records.clone()),
            Arc::clone(&self.settings),
            Arc::new(SystemClock),
            crabtalk_files::local_zone,
            move |model, usage| models.cost(model, usage),
        ))
    }

    fn mcps(&self, tools: &Arc<OsTools>) -> anyhow::Result<Arc<Mcps>> {
        let environment = child_environment(std::env::vars_os());
        Ok(Mcps::new(
            &self.home,
            self.guardian()?,
            environment,
            self.open_files,
            Arc::clone(tools),
        ))
    }

    /// The hook that adds context to runs.
    fn context(
        &self,
        store: &Arc<dyn Storage>,
        records: &Records,
        tools: &Arc<OsTools>,
    ) -> anyhow::Result<Context> {
        let settings = || Arc::clone(&self.settings);
        let skills = || Arc::clone(&self.skills);
        let archives = ArchiveIndex::new(self.indexes.passages(), Arc::clone(store));
        let memory = memory(&self.home, &self.settings, store, archives);
        Ok(Context {
            memory: Arc::new(ArcSwap::from_pointee(memory)),
            skills: skills(),
            surroundings: Arc::new(Surroundings::new(
                skills(),
                self.home.user_home().map(Into::into),
            )),
            cron: Cron::new(&self.home, Arc::new(records.clone()), settings()),
            notifier: Notifier::new(settings(), self.guardian()?, self.open_files),
            mcps: self.mcps(tools)?,
            settings: settings(),
        })
    }
}

/// The daemon's tools, except those that hooks register.
fn tools_on_offer(with: &Context, system: Arc<dyn ToolProvider>) -> Vec<Arc<dyn ToolProvider>> {
    let settings = || Arc::clone(&with.settings);
    let memory = MemoryTools {
        memory: Arc::clone(&with.memory),
        servers: with.mcps.servers.clone(),
        settings: settings(),
    };
    vec![
        system,
        Arc::new(SkillTool(Arc::clone(&with.skills))),
        Arc::new(memory),
        Arc::new(ScheduleTool::new(with.cron.clone(), settings())),
        Arc::new(with.mcps.servers.clone()),
    ]
}

/// All processes below this one, including those whose guardian was killed.
fn adopted() -> Children {
    Children::adopt().unwrap_or_else(|error| {
        tracing::warn!(%error, "this system has no reaper of orphans");
        Children::default()
    })
}

fn skills(home: &Home, settings: &Arc<Settings>, files: &FileWork) -> Arc<Skills> {
    let folders = folders(home, &settings.config());
    let trust = TrustFile::new(home.trust_file());
    let library = Library::new(folders);
    Skills::new(Arc::clone(settings), library, trust, files.clone())
}

/// Where to look for models if no provider is configured (MODEL-6).
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
