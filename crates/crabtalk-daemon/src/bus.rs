//! The node's event bus: subscriptions and published events (BUS-1).
//!
//! Invariants: an event that fires runs is recorded before it is acknowledged, and
//! removed when the runs have ended; publishing waits for the disk, never for a run; the
//! file is read at the start and at a reload, and a client's change is refused if the
//! file was edited since.

mod work;

pub(crate) use work::work;

use crate::compose::Report;
use crate::error::Error;
use crate::settings::Settings;
use crate::tables::{self, TableFile, wait};
use arc_swap::ArcSwapOption;
use crabtalk_config::Home;
use crabtalk_domain::records::{self, Event, Events};
use crabtalk_domain::{BoxFuture, Origin, RunEnded, RunEnds};
use crabtalk_files::tables::{TablesEdit, TablesError};
use crabtalk_triggers::bus::{
    MAX_SUBSCRIPTIONS, Pending, PublishError, SUBSCRIPTIONS, Subscription, check_payload,
    check_source, is_of_daemon, read_subscriptions, table,
};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The recorded maker of subscriptions from the local socket.
const LOCAL_MAKER: &str = "user";

/// Subscriptions and waiting events. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bus(Arc<Inner>);

struct Inner {
    file: PathBuf,
    records: Arc<dyn Events>,
    /// The least number for an event: above those of all former lives.
    first: u64,
    settings: Arc<Settings>,
    /// Locked by threads that may wait for the disk.
    state: Mutex<State>,
    /// The subscriptions in force, readable without a lock; `None` before the file
    /// was read.
    known: ArcSwapOption<Vec<Subscription>>,
    counts: Mutex<HashMap<u64, Count>>,
    /// Notified when an event is published.
    wake: Notify,
}

#[derive(Default)]
struct State {
    /// Waiting events; `None` before the records were read.
    pending: Option<Pending>,
    /// The text of the file in force.
    taken: Option<String>,
    findings: Vec<String>,
    /// The error of the present file, if it is not in force.
    broken: Option<String>,
    /// Numbers of events that are being fired.
    firing: HashSet<u64>,
}

/// Counts of a subscription's events since the daemon started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Runs that started.
    pub(crate) fired: u64,
    /// Runs that failed, or could not start.
    pub(crate) failed: u64,
    /// Events that were dropped: too many waited, or the chain was too long.
    pub(crate) dropped: u64,
    /// The result of the last run: `ok`, or an error.
    pub(crate) last: String,
}

fn unrecorded(error: &records::Error) -> Error {
    Error::Failed(error.to_string())
}

impl Bus {
    /// Reads nothing before the first request or [`work`].
    pub(crate) fn new(home: &Home, records: Arc<dyn Events>, settings: Arc<Settings>) -> Self {
        Self(Arc::new(Inner {
            file: home.subscriptions_file(),
            records,
            first: Timestamp::now().as_millisecond().cast_unsigned(),
            settings,
            state: Mutex::default(),
            known: ArcSwapOption::empty(),
            counts: Mutex::default(),
            wake: Notify::new(),
        }))
    }

    /// Reads the file again and reports its errors.
    pub(crate) async fn reload(&self, report: &mut Report) {
        let reread = self.0.with(|inner, state| {
            state.read(inner);
            Ok((state.broken.clone(), state.findings.clone()))
        });
        let kept = "subscriptions stay unchanged";
        tables::report(reread.await, kept, report);
    }

    /// Adds a subscription and returns it, or returns an equal one that exists.
    pub(crate) async fn subscribe(
        &self,
        source: String,
        agent: String,
        once: bool,
        prompt: String,
    ) -> Result<Subscription, Error> {
        self.0
            .with(move |inner, state| {
                let wanted = Subscription::new(u64::MAX, &source, &agent, once, LOCAL_MAKER);
                let wanted = wanted.map_err(|e| Error::Invalid(e.to_string()))?;
                let wanted = Subscription { prompt, ..wanted };
                let known = inner.known();
                let same = |one: &&Subscription| {
                    (&one.source, &one.agent, one.once, &one.prompt)
                        == (&wanted.source, &wanted.agent, once, &wanted.prompt)
                };
                if let Some(same) = known.iter().find(same) {
                    return Ok(same.clone());
                }
                if known.len() >= MAX_SUBSCRIPTIONS {
                    return Err(Error::TooMany(format!(
                        "there are {MAX_SUBSCRIPTIONS} subscriptions, the limit: remove one"
                    )));
                }
                let mut file = state.edit(inner)?;
                let highest = known.iter().map(|one| one.id).max().unwrap_or_default();
                let id = inner.records.next_subscription(highest.saturating_add(1));
                let id = wait(id).map_err(|error| unrecorded(&error))?;
                let subscription = Subscription { id, ..wanted };
                file.add(table(&subscription))?;
                state.save(inner, file)?;
                Ok(subscription)
            })
            .await
    }

    /// Removes a subscription. Its runs in flight continue.
    pub(crate) async fn unsubscribe(&self, id: u64) -> Result<(), Error> {
        self.0
            .with(move |inner, state| {
                let mut file = state.edit(inner)?;
                if !file.remove(id) {
                    let message = format!("subscription {id} does not exist; list them");
                    return Err(Error::NotFound(message));
                }
                state.save(inner, file)
            })
            .await
    }

    /// All subscriptions with their counts.
    pub(crate) async fn list(&self) -> Result<Vec<(Subscription, Count)>, Error> {
        let known = self.0.with(|inner, _| Ok(inner.known())).await?;
        let counts = self.0.counts();
        let listed = known.iter().map(|one| {
            let count = counts.get(&one.id).cloned().unwrap_or_default();
            (one.clone(), count)
        });
        Ok(listed.collect())
    }

    /// Errors in the file.
    pub(crate) async fn problems(&self) -> Result<Vec<String>, Error> {
        let problems = self.0.with(|_, state| {
            let all = state.broken.iter().chain(&state.findings);
            Ok(all.cloned().collect())
        });
        problems.await
    }

    /// Publishes a client's event. Returns the number of subscriptions that match.
    pub(crate) async fn publish(&self, source: String, payload: String) -> Result<u32, Error> {
        check_source(&source, false).map_err(|e| Error::Invalid(e.to_string()))?;
        if is_of_daemon(&source) {
            return Err(Error::Forbidden(format!(
                "the source {source:?} is reserved for the daemon's events `agent:NAME:done`; \
                 choose another"
            )));
        }
        check_payload(&payload).map_err(|e| Error::Invalid(e.to_string()))?;
        self.take(Event {
            id: 0,
            source,
            payload,
            depth: 1,
            fires: Vec::new(),
            about: String::new(),
        })
        .await
    }

    /// Records an event and returns the number of runs that it fires.
    async fn take(&self, event: Event) -> Result<u32, Error> {
        if self.0.known_to_fire(&event.source) == Some(false) {
            return Ok(0);
        }
        let taken = self
            .0
            .with(move |inner, state| {
                let known = inner.known();
                let fires = known.iter().filter(|one| one.matches(&event.source));
                let fires: Vec<u64> = fires.map(|one| one.id).collect();
                let pending = state.pending(inner)?;
                let again = !event.about.is_empty() && pending.has(&event.about);
                let matched = u32::try_from(fires.len()).unwrap_or(u32::MAX);
                if fires.is_empty() || again {
                    return Ok(matched);
                }
                let event = Event { fires, ..event };
                if let Err(error) = inner.publish(pending, &event) {
                    inner.drop_for(&event.fires);
                    return Err(error.into());
                }
                Ok(matched)
            })
            .await;
        self.0.wake.notify_one();
        taken
    }
}

/// Publishes the end of each run as the event `agent:NAME:done`.
impl RunEnds for Bus {
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A resumed run has not ended, and a delegate's run is part of the run
            // above it.
            let depth = match (&ended.origin, ended.carried_on_as) {
                (Some(Origin::Client { .. } | Origin::Cron { .. }), None) => 1,
                (Some(Origin::Event { depth, .. }), None) => depth.saturating_add(1),
                (Some(Origin::Delegate { .. }) | None, _) | (_, Some(_)) => return,
            };
            let source = format!("agent:{}:done", ended.speaker);
            if self.0.known_to_fire(&source) == Some(false) {
                return;
            }
            let limit = self.0.settings.config().limits.chain_depth;
            if depth > limit {
                tracing::warn!(
                    source,
                    depth,
                    "the chain of events exceeds [limits] chain_depth; this event fires nothing"
                );
                let known = self.0.known();
                let fires = known.iter().filter(|one| one.matches(&source));
                self.0
                    .drop_for(&fires.map(|one| one.id).collect::<Vec<_>>());
                return;
            }
            let event = Event {
                id: 0,
                payload: payload(ended),
                depth,
                fires: Vec::new(),
                about: format!(
                    "{}/{}#{}",
                    ended.key.agent, ended.key.sender, ended.outcome.run
                ),
                source,
            };
            if let Err(error) = self.take(event).await {
                tracing::error!(
                    %error,
                    "the end of a run could not be published"
                );
            }
        })
    }
}

/// The payload of the event for the end of a run.
fn payload(ended: &RunEnded) -> String {
    let outcome = &ended.outcome;
    let word = match outcome.code {
        _ if outcome.interrupted => "interrupted",
        0 => "ok",
        499 => "killed",
        _ => "failed",
    };
    json!({
        "agent": ended.speaker,
        "conversation": { "agent": ended.key.agent.as_str(), "sender": ended.key.sender.as_str() },
        "run": outcome.run,
        "outcome": word,
        "code": outcome.code,
        "error": outcome.error,
        "answer": ended.answer,
        "tokens": outcome.usage.map(|usage| usage.total_tokens()),
        "duration_ms": outcome.duration.map(|took| took.as_millis() as u64),
    })
    .to_string()
}

impl TableFile for Inner {
    type State = State;

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so that a panic leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, state: &mut State) -> Result<(), Error> {
        state.open(self)
    }
}

impl Inner {
    /// Records an event and adds it to the waiting ones.
    fn publish(&self, pending: &mut Pending, event: &Event) -> Result<(), PublishError> {
        pending.check(event)?;
        let id = wait(self.records.publish(event.clone(), self.first))?;
        pending.insert(Event {
            id,
            ..event.clone()
        });
        Ok(())
    }

    fn known(&self) -> Arc<Vec<Subscription>> {
        self.known.load_full().unwrap_or_default()
    }

    /// Whether a subscription matches a source; `None` before the file was read.
    fn known_to_fire(&self, source: &str) -> Option<bool> {
        let known = self.known.load_full()?;
        Some(known.iter().any(|one| one.matches(source)))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u64, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, id: u64, change: impl FnOnce(&mut Count)) {
        change(self.counts().entry(id).or_default());
    }

    fn drop_for(&self, subscriptions: &[u64]) {
        for id in subscriptions {
            self.count(*id, |count| count.dropped += 1);
        }
    }
}

impl State {
    /// Reads the file if it has not been read.
    fn open(&mut self, inner: &Inner) -> Result<(), Error> {
        if inner.known.load().is_some() || self.broken.is_some() {
            return Ok(());
        }
        self.read(inner);
        for said in self.broken.iter().chain(&self.findings) {
            tracing::warn!("{said}");
        }
        Ok(())
    }

    /// The waiting events, read on first use.
    fn pending(&mut self, inner: &Inner) -> Result<&mut Pending, Error> {
        let pending = match self.pending.take() {
            Some(pending) => pending,
            None => wait(inner.records.waiting())
                .map(Pending::new)
                .map_err(|error| {
                    Error::Failed(format!("no event fires without its records: {error}"))
                })?,
        };
        Ok(self.pending.insert(pending))
    }

    /// Puts the present file into force. A file that cannot be read changes nothing.
    fn read(&mut self, inner: &Inner) {
        match read_subscriptions(&inner.file) {
            Ok(read) => {
                let path = inner.file.display();
                let found = read.findings.iter();
                self.findings = found
                    .map(|finding| format!("{path}:{}: {}", finding.line, finding.why))
                    .collect();
                self.taken = read.text;
                self.broken = None;
                inner.known.store(Some(Arc::new(read.subscriptions)));
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    fn edit(&self, inner: &Inner) -> Result<TablesEdit, TablesError> {
        SUBSCRIPTIONS.edit(&inner.file, self.taken.as_deref())
    }

    fn save(&mut self, inner: &Inner, file: TablesEdit) -> Result<(), Error> {
        file.save()?;
        self.read(inner);
        Ok(())
    }
}
