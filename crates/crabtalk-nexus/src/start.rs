//! Composes NEXUS: configuration, log, agents and the socket.

use crate::backend::Backend;
use crate::clock::Clock;
use crate::config::{self, Member, Team};
use crate::control::Control;
use crate::daemon::{Daemon, Others};
use crate::files::Files;
use crate::journal::{self, Journal};
use crate::name::Name;
use crate::supervisor::{Backends, Supervisor};
use crate::terminal::{Form, Kind, Kinds, Sandbox, Settings, Spec, Terminal, Terminals};
use crate::world::World;
use crabtalk_client::{Client, Endpoint, Starter};
use crabtalk_guardian::GuardianCommand;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Capacity of the queue of commands; each has a connection, and connections are bounded.
const COMMANDS: usize = 32;

/// The paths that NEXUS uses.
#[derive(Debug, Clone)]
pub struct Places {
    pub home: PathBuf,
    /// The folder that replaces `~`.
    pub user_home: PathBuf,
    /// The program that confines and marks agents in terminals.
    pub guardian: GuardianCommand,
}

impl Places {
    /// The configuration of the team.
    pub fn config(&self) -> PathBuf {
        self.home.join("config/nexus.toml")
    }

    /// The folder of the log and the socket.
    pub fn state(&self) -> PathBuf {
        self.home.join("state/nexus")
    }

    pub fn team(&self) -> Result<Team, config::Error> {
        Team::read(&self.config(), &self.user_home)
    }
}

/// The reason why NEXUS does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    /// The team's root is missing.
    #[error("the folder {} does not exist; `crabtalk nexus init` creates it", .0.display())]
    Root(PathBuf),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error("cannot listen in {path}: {source}")]
    Control {
        path: PathBuf,
        source: std::io::Error,
    },
}

/// Restores the world from a log.
pub fn restored(team: Team, folder: &Path) -> Result<(World, Journal), journal::Error> {
    let mut world = World::new(team);
    let journal = Journal::open(folder, &mut world)?;
    Ok((world, journal))
}

/// Runs NEXUS until `stop` resolves, and calls `ready` once commands are accepted.
pub async fn run(
    places: &Places,
    clock: Clock,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let team = places.team()?;
    if !team.root.is_dir() {
        return Err(Error::Root(team.root));
    }
    let (world, journal) = restored(team.clone(), &places.state())?;
    tokio::pin!(stop);
    // The terminals are watched while the backends are open. A hanging tmux must not prevent
    // the end.
    let (backends, terminals) = tokio::select! {
        () = &mut stop => return Ok(()),
        found = backends(places, &team) => found,
    };
    let reread = places.clone();
    let supervisor =
        Supervisor::new(world, journal, backends, clock).rereading(Box::new(move || reread.team()));
    let result = serve(places, supervisor, ready, stop).await;
    if let Some(terminals) = terminals {
        // If the server is gone, there is nothing to close.
        let _ = terminals.close().await;
    }
    result
}

/// Runs a supervisor with its socket.
async fn serve(
    places: &Places,
    supervisor: Supervisor,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let control = Control::open(&places.state()).map_err(|source| Error::Control {
        path: places.state(),
        source,
    })?;
    let (tell, commands) = mpsc::channel(COMMANDS);
    let changes = supervisor.changes();
    ready();
    tokio::select! {
        result = supervisor.run(commands, stop) => Ok(result?),
        () = control.serve(&tell, &changes) => Ok(()),
    }
}

/// Starts the daemon by the `crabtalk` next to this program, or the one on PATH.
pub fn starter(places: &Places) -> Starter {
    let beside = std::env::current_exe().ok();
    let beside = beside.and_then(|exe| Some(exe.parent()?.join("crabtalk")));
    let program = beside.filter(|path| path.is_file());
    Starter::new(
        program.unwrap_or_else(|| PathBuf::from("crabtalk")),
        &places.home,
    )
}

/// The backend of each agent, and the terminals in which some of them run.
pub async fn backends(places: &Places, team: &Team) -> (Backends, Option<Terminals>) {
    let terminals = terminals(places, team).await;
    let files = Files::new(team);
    let name = format!("nexus/{}", crabtalk_client::VERSION);
    let client = Client::new(Endpoint::of_home(&places.home), name);
    let agent_of = |name: &Name, member: &Member| {
        let agent = member.agent.clone();
        agent.unwrap_or_else(|| name.folder())
    };
    let members = team.agents.iter();
    let members = members.filter(|(_, member)| member.is_of_daemon());
    let conversations = members.map(|(name, member)| agent_of(name, member));
    let starter = team.start_daemon.unwrap_or(true).then(|| starter(places));
    let others = Arc::new(Others::watch(client.clone(), conversations, starter));
    let of_daemon = |name: &Name, member: &Member| {
        let agent = agent_of(name, member);
        let (client, others) = (client.clone(), Arc::clone(&others));
        Daemon::new(client, name.clone(), agent, files.clone(), others)
    };
    let of = |(name, member): (&Name, &Member)| {
        let backend: Result<Arc<dyn Backend>, String> = match &member.kind {
            None => Ok(Arc::new(of_daemon(name, member))),
            Some(kind) => in_terminal(places, team, name, member, kind, &terminals)
                .map(|agent| Arc::new(agent) as Arc<dyn Backend>),
        };
        (name.clone(), backend)
    };
    let backends = team.agents.iter().map(of).collect();
    (backends, terminals.ok().map(|(terminals, _)| terminals))
}

/// An agent in a terminal.
fn in_terminal(
    places: &Places,
    team: &Team,
    name: &Name,
    member: &Member,
    kind: &str,
    terminals: &Result<(Terminals, Kinds), String>,
) -> Result<Terminal, String> {
    let (terminals, kinds) = terminals.as_ref().map_err(Clone::clone)?;
    let known = kinds.get(kind).ok_or_else(|| {
        let names: Vec<&str> = kinds.names().collect();
        format!("no kind {kind:?}; there are {}", names.join(", "))
    })?;
    Ok(terminals.agent(Spec {
        name: name.folder(),
        kind: known.clone(),
        folder: team.root.clone(),
        env: member.env.clone(),
        sandbox: sandbox(places, member),
        marker: marker(places, known),
    }))
}

/// Marks programs that need no daemon connection, so that its socket refuses them.
fn marker(places: &Places, kind: &Kind) -> Option<GuardianCommand> {
    let needs_daemon = kind
        .transcript
        .as_ref()
        .is_some_and(|place| place.form == Form::Crabtalk);
    (!needs_daemon).then(|| places.guardian.clone())
}

/// The sandbox of an agent's program, if configured.
fn sandbox(places: &Places, member: &Member) -> Option<Sandbox> {
    member.sandbox.then(|| Sandbox {
        guardian: places.guardian.clone(),
        crabtalk_home: places.home.clone(),
        hosts: member.hosts.clone(),
        writable: member.writable.clone(),
        readable: member.readable.clone(),
        environment: crabtalk_guardian::child_environment(std::env::vars_os()),
    })
}

/// Opens the terminals; agents of the daemon run without them if this fails.
async fn terminals(places: &Places, team: &Team) -> Result<(Terminals, Kinds), String> {
    if team.agents.values().all(Member::is_of_daemon) {
        return Err("no agent of the team runs in a terminal".into());
    }
    let kinds = team.kinds.iter();
    let kinds = kinds.map(|(name, kind)| (name.clone(), toml::Value::Table(kind.clone())));
    let kinds = Kinds::new(&kinds.collect()).map_err(|error| error.to_string())?;
    let mut settings = Settings::new(&places.user_home, places.state().join("terminals"));
    settings.crabtalk.clone_from(&places.home);
    settings.socket.clone_from(&team.tmux.socket);
    if let Some(session) = &team.tmux.session {
        settings.session.clone_from(session);
    }
    let terminals = Terminals::open(settings).await;
    let terminals = terminals.map_err(|error| error.to_string())?;
    Ok((terminals, kinds))
}
