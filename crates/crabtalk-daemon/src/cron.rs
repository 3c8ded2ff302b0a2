//! Cron entries of a node: what the file says, what the books say, and what is
//! due (CRON-1).
//!
//! Invariants: a run begins only after the books have its line; the file is
//! truth at the start and at a reload, and a change by protocol is made to what
//! was read or not at all; one thread at a time works on either.

mod tool;
mod work;

pub(crate) use tool::ScheduleTool;
pub(crate) use work::work;

use crate::accepted::Accepted;
use crate::compose::Report;
use crate::settings::Settings;
use crabtalk_config::Home;
use crabtalk_cron::{
    Account, Books, CronEntry, CronFile, Draft, Ended, Engine, FileError, Finding, Fire, Fired,
    Line, Outcome, Row, Surroundings, Tick, Usage,
};
use crabtalk_domain::{ConversationKey, Principal};
use crabtalk_files::local_zone;
use crabtalk_proto::Status;
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// Where it is, below the home.
const FILE: &str = "config/crons.toml";

/// Who makes an entry, as its runs see what that one sees. Only the owner may say
/// for whom; a token that speaks as somebody is a token all the same, and no
/// configuration names it as an owner by accident.
pub(crate) fn maker(principal: Option<&Principal>, sender: &str) -> String {
    match principal {
        Some(token @ Principal::Token(_)) => token.to_string(),
        // One that speaks for an owner says for whom, as the owner does.
        Some(Principal::Owner | Principal::Admin(_)) | None => sender.to_owned(),
    }
}

/// Entries, books and what is due. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cron(Arc<Inner>);

struct Inner {
    file: PathBuf,
    books: PathBuf,
    accepted: Accepted,
    settings: Arc<Settings>,
    /// Behind every lock stands a thread that may wait for a disk.
    state: Mutex<State>,
    /// Conversations in which runs of entries go, and whose.
    running: Mutex<HashMap<ConversationKey, Arc<CronEntry>>>,
    /// Something is due that no timer knows of.
    wake: Notify,
    began: Instant,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The text of the file that is in force.
    taken: Option<String>,
    findings: Vec<Finding>,
    /// Why the file as it is now is not in force.
    broken: Option<String>,
    /// Runs that somebody wants now.
    wanted: Vec<Fire>,
    /// Runs that the last daemon did not see the end of.
    cut: Vec<Fired>,
}

struct Open {
    engine: Engine,
    books: Books,
}

/// An entry as lists show it.
pub(crate) struct Listed {
    pub(crate) entry: Arc<CronEntry>,
    pub(crate) account: Account,
    pub(crate) next: Option<Timestamp>,
    pub(crate) running: bool,
}

/// What a client is told of a file that was not read or written.
pub(crate) fn refused(error: &FileError) -> Status {
    let message = error.to_string();
    match error {
        FileError::Conflict(_) => Status::conflict(message),
        FileError::Broken { .. } | FileError::Unreadable { .. } => Status::bad_request(message),
        FileError::Write { .. } => Status::internal(message),
    }
}

fn none(id: u64) -> Status {
    Status::not_found(format!("there is no cron entry {id}; list them"))
}

impl Cron {
    /// Nothing is read before somebody asks, or [`work`] begins.
    pub(crate) fn new(home: &Home, accepted: Accepted, settings: Arc<Settings>) -> Self {
        Self(Arc::new(Inner {
            file: home.crons_file(),
            books: home.state_dir().join("cron"),
            accepted,
            settings,
            state: Mutex::default(),
            running: Mutex::default(),
            wake: Notify::new(),
            began: Instant::now(),
        }))
    }

    /// Works on the state, where that may wait for a disk.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut State) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut state = inner.state();
            state.open(&inner)?;
            work(&inner, &mut state)
        });
        done.await
            .unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }

    /// As [`Cron::with`], for what writes the file.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut State) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        self.0.accepted.settle().await;
        let done = self.0.accepted.change(FILE, self.with(work)).await;
        self.0.wake.notify_one();
        done
    }

    /// Reads the file again; what is wrong is said in the report.
    pub(crate) async fn reload(&self, report: &mut Report) {
        let said = self
            .with(|inner, state| {
                state.read(inner, Timestamp::now());
                Ok((state.broken.clone(), state.found(inner)))
            })
            .await;
        match said {
            Ok((broken, found)) => {
                if let Some(broken) = broken {
                    report.errors.push(broken);
                    report
                        .kept
                        .push("cron entries are as they were before".into());
                }
                report.warnings.extend(found);
            }
            Err(error) => report.errors.push(error.message),
        }
        self.0.wake.notify_one();
    }

    /// Adds an entry and answers it.
    pub(crate) async fn add(&self, draft: Draft) -> Result<Listed, Status> {
        self.change(move |inner, state| {
            let now = Timestamp::now();
            let config = inner.settings.config();
            let open = state.open(inner)?;
            let (mut all, mut of_agent) = (0, 0);
            for entry in open.engine.entries() {
                all += 1;
                let same = entry.key.agent.as_str() == draft.agent;
                of_agent += u32::from(entry.draft.by_agent && same);
            }
            if all >= config.limits.crons {
                let limit = config.limits.crons;
                return Err(Status::too_many(format!(
                    "there are {limit} cron entries, the limit ([limits] crons)"
                )));
            }
            if draft.by_agent && of_agent >= config.cron.per_agent {
                return Err(Status::too_many(format!(
                    "{} has made {of_agent} entries, the limit ([cron] per_agent): remove one",
                    draft.agent
                )));
            }
            let id = open.engine.next_id();
            let draft = Draft { id, ..draft };
            let entry = draft
                .check_new(&config.default_agent, &local_zone(), now)
                .map_err(|error| Status::bad_request(error.to_string()))?;
            let mut file = state.edit(inner)?;
            file.add(&entry).map_err(|error| refused(&error))?;
            state.save(inner, file, now)?;
            state.listed(id)
        })
        .await
    }

    /// Removes an entry. A run of it goes on.
    pub(crate) async fn remove(&self, id: u64) -> Result<(), Status> {
        self.change(move |inner, state| {
            let mut file = state.edit(inner)?;
            if !file.remove(id) {
                return Err(none(id));
            }
            state.save(inner, file, Timestamp::now())
        })
        .await
    }

    /// Pauses an entry, or lets it go on.
    pub(crate) async fn pause(&self, id: u64, paused: bool) -> Result<Listed, Status> {
        self.change(move |inner, state| {
            let mut file = state.edit(inner)?;
            if !file.pause(id, paused) {
                return Err(none(id));
            }
            state.save(inner, file, Timestamp::now())?;
            // One that failures paused on a disk that took no change of the file.
            let now = Timestamp::now();
            let open = state.open(inner)?;
            let differs = open
                .engine
                .entry(id)
                .is_some_and(|(_, a, _)| a.paused != paused);
            if differs {
                let line = open.engine.pause(id, paused, now);
                open.write(line.into_iter().collect());
            }
            state.listed(id)
        })
        .await
    }

    /// All entries, and what of the file is none.
    pub(crate) async fn list(&self) -> Result<(Vec<Listed>, Vec<Finding>), Status> {
        self.with(|_, state| {
            let open = state.opened();
            let ids: Vec<u64> = open.engine.entries().map(|entry| entry.id).collect();
            let listed = ids.into_iter().map(|id| state.listed(id));
            Ok((listed.collect::<Result<_, _>>()?, state.findings.clone()))
        })
        .await
    }

    /// What became of due times, the latest first.
    pub(crate) async fn rows(&self, id: Option<u64>, limit: usize) -> Result<Vec<Row>, Status> {
        self.with(move |inner, state| {
            let rows = Books::rows(&inner.books, id, limit)
                .map_err(|error| Status::internal(format!("the books of cron: {error}")))?;
            match id {
                // The runs of a removed entry stay.
                Some(id) if rows.is_empty() && state.opened_mut().engine.entry(id).is_none() => {
                    Err(none(id))
                }
                _ => Ok(rows),
            }
        })
        .await
    }

    /// Starts a run now.
    pub(crate) async fn run_now(&self, id: u64) -> Result<Fire, Status> {
        let fire = self
            .with(move |_, state| {
                let open = state.opened_mut();
                if open.engine.entry(id).is_none() {
                    return Err(none(id));
                }
                let Some((lines, fire)) = open.engine.run_now(id, Timestamp::now()) else {
                    return Err(Status::conflict(format!("a run of entry {id} goes on")));
                };
                if let Err(error) = open.books.append(&lines) {
                    let why = format!("the books of cron cannot be written: {error}");
                    lines.into_iter().for_each(|line| open.books.keep(line));
                    open.end(unstarted(&fire, 500, why.clone()));
                    return Err(Status::internal(why));
                }
                state.wanted.push(fire.clone());
                Ok(fire)
            })
            .await?;
        self.0.wake.notify_one();
        Ok(fire)
    }

    /// The entry behind a conversation's run.
    pub(crate) fn entry_of(&self, key: &ConversationKey) -> Option<Arc<CronEntry>> {
        self.0.running().get(key).cloned()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // What a panic left is as it was before the last line, or after it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ConversationKey, Arc<CronEntry>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine_settings(&self) -> crabtalk_cron::Settings {
        let config = self.settings.config();
        crabtalk_cron::Settings {
            at_once: config.cron.at_once as usize,
            pause_after: config.cron.pause_after,
        }
    }
}

impl State {
    /// The books and the file, read if nobody has yet.
    fn open(&mut self, inner: &Inner) -> Result<&mut Open, Status> {
        if self.open.is_none() {
            let now = Timestamp::now();
            let (books, loaded) = Books::open(&inner.books, now).map_err(|error| {
                Status::internal(format!(
                    "the books of cron in {} cannot be read, and without them nothing fires: {error}",
                    inner.books.display()
                ))
            })?;
            if loaded.broken > 0 {
                tracing::warn!(
                    lines = loaded.broken,
                    "lines of the books of cron are broken"
                );
            }
            for run in &loaded.interrupted {
                tracing::warn!(cron = run.id, "a run of a cron entry was interrupted");
                let account = loaded.accounts.get(&run.id);
                self.cut
                    .extend(account.and_then(|account| account.last.clone()));
            }
            let engine = Engine::new(loaded, inner.engine_settings());
            self.open = Some(Open { engine, books });
            self.read(inner, now);
            for said in self.broken.iter().cloned().chain(self.found(inner)) {
                tracing::warn!("{said}");
            }
        }
        Ok(self.opened_mut())
    }

    fn opened(&self) -> &Open {
        self.open.as_ref().expect("opened before any work")
    }

    fn opened_mut(&mut self) -> &mut Open {
        self.open.as_mut().expect("opened before any work")
    }

    /// Takes what the file says now; if it says nothing that can be read,
    /// everything stays.
    fn read(&mut self, inner: &Inner, now: Timestamp) {
        let config = inner.settings.config();
        let local = local_zone();
        let around = Surroundings {
            default_agent: &config.default_agent,
            local: &local,
            now,
            limit: config.limits.crons as usize,
        };
        match CronFile::read(&inner.file, around) {
            Ok(read) => {
                self.taken = read.text;
                self.findings = read.findings;
                self.broken = None;
                let open = self.opened_mut();
                open.engine.set(inner.engine_settings());
                let lines = open.engine.load(read.entries, now);
                open.write(lines);
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    /// What is wrong with entries, in words.
    fn found(&self, inner: &Inner) -> Vec<String> {
        /// More than that nobody reads at a start.
        const MAX_FOUND: usize = 20;
        let found = self.findings.iter().take(MAX_FOUND);
        found
            .map(|finding| format!("{}:{}: {}", inner.file.display(), finding.line, finding.why))
            .collect()
    }

    fn edit(&self, inner: &Inner) -> Result<CronFile, Status> {
        CronFile::open(&inner.file, self.taken.as_deref()).map_err(|error| refused(&error))
    }

    fn save(&mut self, inner: &Inner, file: CronFile, now: Timestamp) -> Result<(), Status> {
        file.save().map_err(|error| refused(&error))?;
        self.read(inner, now);
        Ok(())
    }

    fn listed(&self, id: u64) -> Result<Listed, Status> {
        let engine = &self.opened().engine;
        let (entry, account, next) = engine.entry(id).ok_or_else(|| none(id))?;
        Ok(Listed {
            entry: Arc::clone(entry),
            account: account.clone(),
            next,
            running: engine.is_running(id),
        })
    }

    /// Decides what is due, and writes it down. What is answered may start.
    fn tick(&mut self, inner: &Inner) -> Result<Tick, Status> {
        let open = self.open(inner)?;
        let mut tick = open.engine.tick(Timestamp::now(), inner.began.elapsed());
        let written = open.books.append(&tick.lines);
        if let Err(error) = written {
            tracing::error!(%error, "the books of cron cannot be written: nothing fires");
            for line in tick.lines.drain(..) {
                open.books.keep(line);
            }
            for fire in tick.fires.drain(..) {
                let why = format!("the books of cron could not be written: {error}");
                open.end(unstarted(&fire, 500, why));
            }
        }
        if open.books.is_full()
            && let Err(error) = open.books.turn(&open.engine.summary())
        {
            tracing::warn!(%error, "the books of cron go on in a file that is full");
        }
        tick.fires.append(&mut self.wanted);
        Ok(tick)
    }
}

impl Open {
    fn write(&mut self, lines: Vec<Line>) {
        if let Err(error) = self.books.append(&lines) {
            tracing::error!(%error, "the books of cron cannot be written");
            lines.into_iter().for_each(|line| self.books.keep(line));
        }
    }

    /// Notes the end of a run; whether its entry is paused because of it.
    fn end(&mut self, ended: Ended) -> bool {
        let (lines, paused) = self.engine.ended(ended);
        self.write(lines);
        paused
    }
}

/// The id under which a run is asked for. No other run has it, whatever becomes
/// of the books.
fn request_id(seq: u64, at: Timestamp) -> String {
    format!("cron:{seq}:{}", at.as_millisecond())
}

/// The end of a run that never began.
fn unstarted(fire: &Fire, code: u32, error: String) -> Ended {
    Ended {
        id: fire.entry.id,
        seq: fire.seq,
        at: Timestamp::now(),
        outcome: Outcome::Failed,
        code,
        error,
        ms: 0,
        usage: Usage::default(),
        run: None,
        refused: Vec::new(),
        unstarted: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::TokenName;

    #[test]
    fn a_token_makes_entries_for_itself_alone() {
        let token = Principal::Token(TokenName::new("phone").unwrap());
        assert_eq!(maker(Some(&token), "user"), "token/phone");
        assert_eq!(maker(Some(&Principal::Owner), "tg:1"), "tg:1");
        // Of a run that the daemon itself began.
        assert_eq!(maker(None, "tg:1"), "tg:1");
    }
}
