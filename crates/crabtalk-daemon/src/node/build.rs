//! Puts a node together from what is configured.

use super::Node;
use super::reload::folders;
use crate::accepted::Accepted;
use crate::agents::AgentFiles;
use crate::approvals::ApprovalFile;
use crate::audit::Audit;
use crate::bus::Bus;
use crate::compose::{Composed, sandbox, sync_policy};
use crate::context::Context;
use crate::cron::{Cron, ScheduleTool};
use crate::delegates::DelegateFile;
use crate::disk::LocalDisk;
use crate::first_look::Found;
use crate::ledger::DayLedger;
use crate::mcp::Mcps;
use crate::memory::{MemoryTools, memory};
use crate::models::{Asked, Models};
use crate::notify::Notifier;
use crate::remote::Remote;
use crate::services::Services;
use crate::session::PartialAnswers;
use crate::settings::Settings;
use crate::skills::{SkillTool, Skills};
use crate::surroundings::Surroundings;
use arc_swap::ArcSwap;
use crabtalk_config::{Config, Home};
use crabtalk_domain::SystemClock;
use crabtalk_domain::storage::Storage;
use crabtalk_domain::tool::{Invocation, ToolProvider};
use crabtalk_guardian::{Children, Guardian, GuardianCommand, child_environment};
use crabtalk_memory::ArchiveIndex;
use crabtalk_model::detect;
use crabtalk_runtime::{Parts, Runtime};
use crabtalk_skills::{Library, TrustFile};
use crabtalk_store::FileStore;
use crabtalk_store::fs::OsFiles;
use crabtalk_tools::{FileWork, OsTools, OsToolsConfig};
use crabtalk_transport::{Crowd, Limits};
use std::sync::Arc;
use std::time::Instant;

impl Node {
    /// `open_files` is the limit of open files that commands get. Nothing more is
    /// read of files than what was `found`.
    pub(crate) fn new(home: Home, open_files: Option<u64>, found: Found) -> anyhow::Result<Self> {
        let Found {
            accepted,
            composed,
            approvals,
        } = found;
        let Composed {
            config,
            catalog,
            models,
            source,
            mut report,
        } = composed;
        let options = detection(&config);
        let models = Models::new(models, options).map_err(anyhow::Error::msg)?;
        let crowd = crowd(&config);
        let settings = Settings::new(config);
        let config = settings.config();
        let files = FileWork::default();
        let skills = skills(&home, &settings, &files);
        let file = home.approvals_file();
        let (grants, accept) = (Arc::clone(&skills), accepted.clone());
        let approvals = ApprovalFile::new(file, approvals, grants, accept, &mut report);
        let approvals = Arc::new(approvals);
        report.log();
        let children = adopted();
        let store: Arc<dyn Storage> = Arc::new(store(&home, &config));
        let tools = Arc::new(os_tools(
            &home, &children, &skills, &settings, &accepted, open_files,
        )?);
        let archives = ArchiveIndex::new(home.state_dir().join("recall"), Arc::clone(&store));
        let memory = memory(&home, &settings, &store, archives);
        let memory = Arc::new(ArcSwap::from_pointee(memory));
        let delegates = DelegateFile::new(home.state_dir().join("delegates"), Arc::clone(&store));
        let ledger = ledger(&home, &settings, &models);
        let cron = Cron::new(&home, accepted.clone(), Arc::clone(&settings));
        let notifier = Notifier::new(Arc::clone(&settings), guardian(&children)?, open_files);
        let mcps = mcps(&home, &children, &tools, open_files)?;
        let context = Context {
            memory: Arc::clone(&memory),
            skills: Arc::clone(&skills),
            accepted: accepted.clone(),
            surroundings: Surroundings::new(Arc::clone(&skills), home.user_home().map(Into::into)),
            cron: cron.clone(),
            notifier: notifier.clone(),
            mcps: Arc::clone(&mcps),
            settings: Arc::clone(&settings),
        };
        let remote = Remote::new(&home, &config);
        let bus = Bus::new(&home, accepted.clone(), Arc::clone(&settings));
        let offered = tools_on_offer(&context, Arc::clone(&tools) as _);
        let runtime = Runtime::new(
            Parts {
                model: Arc::new(Asked(Arc::clone(&models))),
                storage: store,
                tools: offered,
                hook: Arc::new(context),
                ledger: Arc::clone(&ledger) as _,
                ends: vec![Arc::clone(&ledger) as _, Arc::new(bus.clone())],
                clock: Arc::new(SystemClock),
                approvals: Arc::clone(&approvals) as _,
                disk: Arc::new(LocalDisk(files)),
                delegates: Arc::new(delegates),
            },
            catalog,
        );
        Ok(Self {
            audit: Audit::new(&home.state_dir()),
            agents: AgentFiles::new(home.agents_dir()),
            accepted,
            home,
            runtime,
            models,
            ledger,
            approvals,
            children,
            tools,
            mcps,
            memory,
            skills,
            settings,
            in_force: tokio::sync::Mutex::new(source),
            started: Instant::now(),
            partial_answers: PartialAnswers::default(),
            crowd,
            services: Services::new(Arc::new(SystemClock)),
            cron,
            notifier,
            bus,
            remote,
        })
    }
}

fn mcps(
    home: &Home,
    children: &Children,
    tools: &Arc<OsTools>,
    open_files: Option<u64>,
) -> anyhow::Result<Arc<Mcps>> {
    let environment = child_environment(std::env::vars_os());
    let guardian = guardian(children)?;
    Ok(Mcps::new(
        home,
        guardian,
        environment,
        open_files,
        Arc::clone(tools),
    ))
}

/// Every tool that the daemon itself offers; what hooks add comes on top.
fn tools_on_offer(with: &Context, system: Arc<dyn ToolProvider>) -> Vec<Arc<dyn ToolProvider>> {
    let settings = || Arc::clone(&with.settings);
    let memory = MemoryTools {
        memory: Arc::clone(&with.memory),
        accepted: with.accepted.clone(),
        servers: with.mcps.servers.clone(),
        settings: settings(),
    };
    vec![
        system,
        Arc::new(SkillTool(Arc::clone(&with.skills), with.accepted.clone())),
        Arc::new(memory),
        Arc::new(ScheduleTool::new(with.cron.clone(), settings())),
        Arc::new(with.mcps.servers.clone()),
    ]
}

/// Whoever may connect, and how many at once.
fn crowd(config: &Config) -> Crowd {
    Crowd::new(Limits {
        connections: config.limits.connections as usize,
        ..Limits::default()
    })
}

/// Every process below this one, also those whose guardian was killed.
fn adopted() -> Children {
    Children::adopt().unwrap_or_else(|error| {
        tracing::warn!(%error, "this system has no reaper of orphans");
        Children::default()
    })
}

fn guardian(children: &Children) -> anyhow::Result<Guardian> {
    let command = GuardianCommand::new(std::env::current_exe()?);
    Ok(Guardian::new(command, children.clone()))
}

fn skills(home: &Home, settings: &Arc<Settings>, files: &FileWork) -> Arc<Skills> {
    let folders = folders(home, &settings.config());
    let trust = TrustFile::new(home.trust_file());
    let library = Library::new(folders);
    Skills::new(Arc::clone(settings), library, trust, files.clone())
}

/// Conversations as files, and with each the outputs of its tools.
fn store(home: &Home, config: &Config) -> FileStore {
    let policy = sync_policy(config.storage.sync);
    let (sessions, trash) = (home.sessions_dir(), home.trash_dir());
    let outputs = home.state_dir().join("outputs");
    let changes = home.state_dir().join("changes");
    FileStore::open(sessions, trash, policy, Arc::new(OsFiles))
        .with_belongings("outputs", move |key| {
            crabtalk_tools::outputs_of(&outputs, key)
        })
        .with_belongings("changes", move |key| {
            crabtalk_tools::outputs_of(&changes, key)
        })
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
    config.files = skills.files().clone();
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
        crabtalk_files::local_zone,
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
