//! One loop: what happens goes into the world, is written down, then done.
//!
//! Invariants: nothing is done that is not on disk; an agent has one call at a
//! time, but for those that may come in between; git runs for one at a time; no
//! task is spawned but for work on files, which is waited for.

use crate::clock::Clock;
use crate::files::Files;
use crate::journal::{self, Journal};
use crate::name::Name;
use crate::world::{Answer, Command, Deed, Done, Entry, Input, Order, World};
use crabtalk_backend::{Backend, Event, Failure, What};
use futures_util::stream::{FuturesUnordered, SelectAll, StreamExt};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A command, and where its answer goes.
pub type Asked = (Command, oneshot::Sender<Answer>);

/// Who hears each entry as it is written, such as a person who looks on.
pub type Listener = Box<dyn FnMut(&Entry, &World) + Send>;

/// Until the table of states is written again: who reads it reads it by hand.
const TABLE_MS: u64 = 2000;

type Called = Pin<Box<dyn Future<Output = Came> + Send>>;
type Events = Pin<Box<dyn futures_core::Stream<Item = (Name, Event)> + Send>>;

/// What came out of the loop's futures.
enum Came {
    Done(Name, u64, Done, Lane),
    Looked(oneshot::Sender<Answer>, Answer),
    Table,
}

/// What waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// Calls to one agent.
    Of(Name),
    /// Git.
    Git,
    /// What waits for nobody.
    Free,
}

/// The supervisor, ready to run.
pub struct Supervisor {
    world: World,
    journal: Journal,
    backends: BTreeMap<Name, Arc<dyn Backend>>,
    files: Arc<Files>,
    clock: Clock,
    listener: Listener,
    events: SelectAll<Events>,
    calls: FuturesUnordered<Called>,
    waiting: BTreeMap<Lane, VecDeque<Order>>,
    table_at: Option<u64>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Supervisor")
    }
}

impl Supervisor {
    /// A supervisor of these agents.
    pub fn new(
        world: World,
        journal: Journal,
        backends: BTreeMap<Name, Arc<dyn Backend>>,
        clock: Clock,
    ) -> Self {
        let files = Arc::new(Files::new(world.team()));
        let mut events = SelectAll::new();
        for (name, backend) in &backends {
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
            listener: Box::new(|_, _| {}),
            events,
            calls: FuturesUnordered::new(),
            waiting: BTreeMap::new(),
            table_at: None,
        }
    }

    /// Lets somebody hear each entry.
    #[must_use]
    pub fn heard_by(mut self, listener: Listener) -> Self {
        self.listener = listener;
        self
    }

    /// Runs until `stop` is there or the log fails. Agents go on.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Asked>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), journal::Error> {
        tokio::pin!(stop);
        self.step(Input::Began)?;
        let mut asks = true;
        loop {
            let due = self.world.next_due();
            let due = due.into_iter().chain(self.table_at).min();
            tokio::select! {
                () = &mut stop => return Ok(()),
                Some((name, event)) = self.events.next(), if !self.events.is_empty() => {
                    self.event(name, event)?;
                }
                Some(result) = self.calls.next(), if !self.calls.is_empty() => {
                    self.came(result)?;
                }
                asked = commands.recv(), if asks => match asked {
                    Some(asked) => self.asked(asked)?,
                    None => asks = false,
                },
                () = self.clock.until(due) => self.time()?,
            }
        }
    }

    fn step(&mut self, input: Input) -> Result<Option<Answer>, journal::Error> {
        let out = self.world.handle(self.clock.now(), input);
        self.journal.append(&out.entries, &out.patch)?;
        if self.journal.wants_snapshot() {
            let (n, whole) = self.world.whole();
            self.journal.snapshot(n, whole)?;
        }
        for entry in &out.entries {
            (self.listener)(entry, &self.world);
            if entry.to.is_some() {
                let at = self.clock.now().saturating_add(TABLE_MS);
                self.table_at.get_or_insert(at);
            }
        }
        for order in out.orders {
            self.order(order);
        }
        Ok(out.answer)
    }

    fn event(&mut self, name: Name, event: Event) -> Result<(), journal::Error> {
        if matches!(event.what, What::TurnEnded(_)) {
            let bytes = self.files.measure(&name);
            self.step(Input::Done(name.clone(), 0, Done::Measured(bytes)))?;
        }
        self.step(Input::Event(name, event)).map(drop)
    }

    fn time(&mut self) -> Result<(), journal::Error> {
        let now = self.clock.now();
        if self.table_at.is_some_and(|at| at <= now) {
            self.table_at = None;
            let (files, agents) = (Arc::clone(&self.files), self.world.agents().clone());
            let write = tokio::task::spawn_blocking(move || files.write_table(&agents, now));
            self.calls.push(Box::pin(async move {
                // It is for people, and is written again soon.
                let _ = write.await;
                Came::Table
            }));
        }
        self.step(Input::Tick).map(drop)
    }

    fn asked(&mut self, (command, reply): Asked) -> Result<(), journal::Error> {
        if let Command::Look { agent } = &command
            && let Some(backend) = self.backends.get(agent).cloned()
        {
            self.calls.push(Box::pin(async move {
                let answer = match backend.look().await {
                    Ok(look) => Answer::Look {
                        text: look.text,
                        attach: look.attach,
                    },
                    Err(failure) => Answer::Refused {
                        why: failure.to_string(),
                    },
                };
                Came::Looked(reply, answer)
            }));
            return Ok(());
        }
        if let Some(answer) = self.step(Input::Said(command))? {
            // Who asked may have gone.
            let _ = reply.send(answer);
        }
        Ok(())
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
                self.step(Input::Done(name, cause, done)).map(drop)
            }
            Came::Looked(reply, answer) => {
                let _ = reply.send(answer);
                Ok(())
            }
            Came::Table => Ok(()),
        }
    }

    /// Begins an order, or lets it wait for its turn.
    fn order(&mut self, order: Order) {
        let lane = match &order.deed {
            Deed::Verify(_) | Deed::Checkpoint(_) => Lane::Git,
            Deed::Probe | Deed::Cancel | Deed::Stop => Lane::Free,
            Deed::Measure => return,
            Deed::Launch(_)
            | Deed::Mark(_)
            | Deed::Submit(..)
            | Deed::Allow(_)
            | Deed::Deny(..)
            | Deed::Nudge(_)
            | Deed::Compress(_) => Lane::Of(order.agent.clone()),
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
            } else if let Some(backend) = backend {
                carry_out(backend.as_ref(), deed).await
            } else {
                let why = Failure::Missing("nobody drives this agent".into());
                Done::Launched(Err(why))
            };
            Came::Done(agent, cause, done, lane)
        }));
    }
}

async fn carry_out(backend: &dyn Backend, deed: Deed) -> Done {
    match deed {
        Deed::Launch(launch) => Done::Launched(backend.launch(launch).await),
        Deed::Mark(letter) => Done::Marked(letter, backend.mark().await),
        Deed::Submit(letter, message) => Done::Submitted(letter, backend.submit(message).await),
        Deed::Allow(prompt) => {
            let result = backend.allow(&prompt).await;
            Done::Pressed(prompt.id, result)
        }
        Deed::Deny(prompt, reason) => {
            let result = backend.deny(&prompt, &reason).await;
            Done::Pressed(prompt.id, result)
        }
        Deed::Probe => Done::Probed(backend.probe().await.map(Box::new)),
        Deed::Nudge(draft) => Done::Nudged(backend.nudge(&draft).await),
        Deed::Compress(how) => Done::Compressed(backend.compress(how).await),
        Deed::Cancel => Done::Cancelled(backend.cancel().await),
        Deed::Stop => Done::Stopped(backend.stop().await),
        Deed::Verify(_) | Deed::Checkpoint(_) | Deed::Measure => Done::Measured(0),
    }
}
