//! The main loop of NEXUS: passes inputs to the world, logs the results, and then
//! executes the orders.
//!
//! ```text
//! admin   notifies ADMIN of new requests
//! ```
//!
//! Invariants: nothing is done before it is on disk, and a log that cannot be written
//! ends NEXUS; an agent has one call at a time, except for calls that may overlap;
//! one git command runs at a time; tasks are spawned only for file work, and are awaited;
//! the loop sleeps until an event or a due time.

pub mod admin;

use crate::backend::{Backend, Event, Failure};
use crate::clock::Clock;
use crate::files::Files;
use crate::journal::{self, Journal};
use crate::name::Name;
use crate::world::{Answer, Command, Deed, Done, Input, Order, Output, World};
use admin::Admin;
use futures_util::stream::{FuturesUnordered, SelectAll, StreamExt};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// The backend of each agent, or the reason why there is none.
pub type Backends = BTreeMap<Name, Result<Arc<dyn Backend>, String>>;

/// A command, and the channel for its answer.
pub type Asked = (Command, oneshot::Sender<Answer>);

/// A callback after each log entry, for tests.
pub type Listener = Box<dyn FnMut() + Send>;

/// Reads the team's configuration again.
pub type Reread = Box<dyn Fn() -> Result<crate::config::Team, crate::config::Error> + Send>;

/// Number of entries that a board gets first: some screens.
const BOARD_ENTRIES: u32 = 200;

/// Maximum characters of a reason on a board: a row of a wide terminal. The log has the whole text.
const BOARD_CHARS: usize = 240;

/// The receiver of a command's answer.
type Reply = Option<oneshot::Sender<Answer>>;

type Called = Pin<Box<dyn Future<Output = Came> + Send>>;
type Events = Pin<Box<dyn futures_core::Stream<Item = (Name, Event)> + Send>>;

/// The result of one of the loop's futures.
enum Came {
    Done(Name, u64, Done, Lane),
    Looked(oneshot::Sender<Answer>, Answer),
    Nothing,
}

/// A queue of orders that are executed one at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// Calls to one agent.
    Of(Name),
    Git,
    /// Orders that may overlap with others.
    Free,
}

/// The supervisor of a team.
pub struct Supervisor {
    world: World,
    journal: Journal,
    backends: Backends,
    files: Arc<Files>,
    clock: Clock,
    listener: Listener,
    reread: Option<Reread>,
    admin: Admin,
    events: SelectAll<Events>,
    calls: FuturesUnordered<Called>,
    waiting: BTreeMap<Lane, VecDeque<Order>>,
    /// The number of log entries.
    changed: watch::Sender<u64>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Supervisor")
    }
}

impl Supervisor {
    /// Creates a supervisor of these agents.
    pub fn new(world: World, journal: Journal, backends: Backends, clock: Clock) -> Self {
        let files = Arc::new(Files::new(world.team()));
        let mut events = SelectAll::new();
        for (name, backend) in &backends {
            let Ok(backend) = backend else { continue };
            let name = name.clone();
            let of = backend.events().map(move |event| (name.clone(), event));
            events.push(Box::pin(of) as Events);
        }
        Self {
            world,
            journal,
            backends,
            files,
            clock,
            listener: Box::new(|| {}),
            reread: None,
            admin: Admin::default(),
            events,
            calls: FuturesUnordered::new(),
            waiting: BTreeMap::new(),
            changed: watch::Sender::new(0),
        }
    }

    /// Sets the listener of entries.
    #[must_use]
    pub fn heard_by(mut self, listener: Listener) -> Self {
        self.listener = listener;
        self
    }

    /// Sets how `reload` reads the configuration.
    #[must_use]
    pub fn rereading(mut self, reread: Reread) -> Self {
        self.reread = Some(reread);
        self
    }

    /// Watches the number of log entries.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Runs until `stop` resolves or the log fails. Agents continue.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Asked>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), journal::Error> {
        tokio::pin!(stop);
        self.step(Input::Began, None)?;
        let mut asks = true;
        loop {
            let due = self.world.next_due();
            tokio::select! {
                () = &mut stop => return Ok(()),
                Some((name, event)) = self.events.next(), if !self.events.is_empty() => {
                    self.step(Input::Event(name, event), None)?;
                }
                Some(result) = self.calls.next(), if !self.calls.is_empty() => {
                    self.came(result)?;
                }
                asked = commands.recv(), if asks => match asked {
                    Some(asked) => self.asked(asked)?,
                    None => asks = false,
                },
                () = self.clock.until(due) => self.step(Input::Tick, None)?,
            }
        }
    }

    /// Handles an input: logs its results, begins the orders, and answers the
    /// command.
    fn step(&mut self, input: Input, reply: Reply) -> Result<(), journal::Error> {
        let out = self.world.handle(self.clock.now(), input);
        self.journal.append(&out.entries, &out.patch)?;
        self.carry_on(out, reply);
        Ok(())
    }

    /// Executes orders that are logged.
    fn carry_on(&mut self, out: Output, reply: Reply) {
        for _ in &out.entries {
            (self.listener)();
        }
        if !out.patch.is_empty() || !out.entries.is_empty() {
            self.changed.send_modify(|count| *count += 1);
        }
        self.notify();
        for order in out.orders {
            self.order(order);
        }
        if let (Some(reply), Some(answer)) = (reply, out.answer) {
            // The connection may be closed.
            let _ = reply.send(answer);
        }
    }

    /// Notifies ADMIN of new requests.
    fn notify(&mut self) {
        let news = self.admin.news(&mut self.world, self.clock.now());
        let command = self.world.team().notify.command.clone();
        let (Some((agent, text)), Some(command)) = (news, command) else {
            return;
        };
        self.calls.push(Box::pin(async move {
            admin::tell(&command, &agent, &text).await;
            Came::Nothing
        }));
    }

    fn asked(&mut self, (command, reply): Asked) -> Result<(), journal::Error> {
        if let Command::Look { agent } = &command
            && let Some(backend) = self.backends.get(agent).cloned()
        {
            self.calls.push(Box::pin(
                async move { Came::Looked(reply, look(backend).await) },
            ));
            return Ok(());
        }
        if let Command::Board { after } = command {
            let answer = self.board(after);
            let _ = reply.send(answer);
            return Ok(());
        }
        if let (Command::Reload, Some(reread)) = (&command, &self.reread) {
            return match reread() {
                Ok(team) => self.step(Input::Reloaded(Box::new(team)), Some(reply)),
                Err(error) => {
                    let why = error.to_string();
                    let _ = reply.send(Answer::Refused { why });
                    Ok(())
                }
            };
        }
        self.step(Input::Said(command), Some(reply))
    }

    fn board(&mut self, after: u64) -> Answer {
        let (agents, inbox, tasks) = self.world.board(self.clock.now());
        // If the log cannot be read, NEXUS ends with the next entry.
        let mut entries = self
            .journal
            .latest(after, BOARD_ENTRIES)
            .unwrap_or_default();
        for entry in &mut entries {
            entry.evidence = None;
            for text in std::iter::once(&mut entry.why).chain(&mut entry.did) {
                let line = text.lines().next().unwrap_or_default();
                *text = line.chars().take(BOARD_CHARS).collect();
            }
        }
        Answer::Board {
            agents,
            inbox,
            tasks,
            seen: entries.last().map_or(after, |last| last.n),
            entries,
        }
    }

    fn came(&mut self, result: Came) -> Result<(), journal::Error> {
        match result {
            Came::Done(name, cause, done, lane) => {
                if let Some(waiting) = self.waiting.get_mut(&lane) {
                    match waiting.pop_front() {
                        Some(next) => self.call(next, lane),
                        None => drop(self.waiting.remove(&lane)),
                    }
                }
                self.step(Input::Done(name, cause, done), None)
            }
            Came::Looked(reply, answer) => {
                let _ = reply.send(answer);
                Ok(())
            }
            Came::Nothing => Ok(()),
        }
    }

    /// Begins an order, or queues it in its lane.
    fn order(&mut self, order: Order) {
        let lane = match &order.deed {
            Deed::Verify(_) | Deed::Checkpoint(_) => Lane::Git,
            Deed::Probe | Deed::Cancel | Deed::Stop => Lane::Free,
            Deed::Launch(_)
            | Deed::Mark(_)
            | Deed::Submit(..)
            | Deed::Reply(..)
            | Deed::Compress => Lane::Of(order.agent.clone()),
        };
        if lane == Lane::Free {
            self.call(order, lane);
        } else if let Some(waiting) = self.waiting.get_mut(&lane) {
            waiting.push_back(order);
        } else {
            self.waiting.insert(lane.clone(), VecDeque::new());
            self.call(order, lane);
        }
    }

    fn call(&mut self, order: Order, lane: Lane) {
        let Order { agent, cause, deed } = order;
        let backend = self.backends.get(&agent).cloned();
        let files = Arc::clone(&self.files);
        let clock = self.clock.clone();
        self.calls.push(Box::pin(async move {
            let done = if let Deed::Verify(noticed) = deed {
                let (name, at) = (agent.clone(), clock.real(noticed));
                let verify = tokio::task::spawn_blocking(move || files.verify(&name, at));
                Done::Verified(verify.await.unwrap_or_else(|e| Err(e.to_string())))
            } else if let Deed::Checkpoint(message) = deed {
                let name = agent.clone();
                let commit = move || files.checkpoint(&name, &message);
                let commit = tokio::task::spawn_blocking(commit);
                Done::Committed(commit.await.unwrap_or_else(|e| Err(e.to_string())))
            } else {
                match backend {
                    Some(Ok(backend)) => carry_out(backend.as_ref(), deed).await,
                    // The agent has no backend, so nothing runs.
                    Some(Err(_)) | None if deed == Deed::Stop => Done::Stopped(Ok(())),
                    Some(Err(why)) => Done::Launched(Err(Failure::Missing(why))),
                    None => Done::Launched(Err(Failure::Missing("it left the team".into()))),
                }
            };
            Came::Done(agent, cause, done, lane)
        }));
    }
}

async fn look(backend: Result<Arc<dyn Backend>, String>) -> Answer {
    let look = match backend {
        Ok(backend) => backend.look().await.map_err(|failure| failure.to_string()),
        Err(why) => Err(why),
    };
    match look {
        Ok(look) => Answer::Look {
            text: look.text,
            attach: look.attach,
        },
        Err(why) => Answer::Refused { why },
    }
}

async fn carry_out(backend: &dyn Backend, deed: Deed) -> Done {
    match deed {
        Deed::Launch(launch) => Done::Launched(backend.launch(launch).await),
        Deed::Mark(letter) => Done::Marked(letter, backend.mark().await),
        Deed::Submit(letter, message) => Done::Submitted(letter, backend.submit(message).await),
        Deed::Reply(prompt, reply) => {
            let answered = backend.reply(&prompt, &reply).await;
            Done::Pressed(prompt.id, answered)
        }
        Deed::Probe => Done::Probed(backend.probe().await.map(Box::new)),
        Deed::Compress => Done::Compressed(backend.compress().await),
        Deed::Cancel => Done::Cancelled(backend.cancel().await),
        Deed::Stop => Done::Stopped(backend.stop().await),
        Deed::Verify(_) | Deed::Checkpoint(_) => Done::Stopped(Ok(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Team;
    use crate::journal::{entries, fill_disk};

    #[tokio::test(start_paused = true)]
    async fn full_disk_ends_nexus_before_anything_unlogged_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let team: Team = toml::from_str("root = \"/nowhere\"\n[agent.A]\n").unwrap();
        let mut world = World::new(team);
        let journal = Journal::open(folder.path(), &mut world).unwrap();
        fill_disk(&journal);
        let absent = BTreeMap::from([(Name::new("a").unwrap(), Err("not here".into()))]);
        let supervisor = Supervisor::new(world, journal, absent, Clock::system());
        let (commands, asked) = mpsc::channel(8);
        let (reply, answer) = oneshot::channel();
        let text = format!("@A [X]: {}", "long ".repeat(10_000));
        commands
            .try_send((Command::AddTask { text }, reply))
            .unwrap();
        let ended = supervisor.run(asked, std::future::pending()).await;
        assert!(matches!(ended, Err(journal::Error::Database { .. })));
        assert!(answer.await.is_err(), "it is not confirmed");
        let mut log = String::new();
        entries(folder.path(), |entry| {
            log.push_str(&entry.why);
            true
        })
        .unwrap();
        assert!(!log.contains("[X]"), "{log}");
    }
}
