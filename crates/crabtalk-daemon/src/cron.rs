//! The cron entries of a node: their file, books and due times (CRON-1).
//!
//! Invariants: a run begins after the books have recorded it; the file is read at the
//! start and at a reload, and a client's change is refused if the file was edited since;
//! one thread at a time works on both.

mod state;
mod tool;
mod work;

pub(crate) use state::Listed;
pub(crate) use tool::ScheduleTool;
pub(crate) use work::work;

use crate::compose::Report;
use crate::error::Error;
use crate::settings::Settings;
use crate::tables::{self, TableFile, wait};
use crabtalk_config::Home;
use crabtalk_domain::records::CronBooks;
use crabtalk_domain::{ConversationKey, Principal};
use crabtalk_files::local_zone;
use crabtalk_triggers::cron::{
    self, Books, CronEntry, Draft, Ended, Finding, Fire, Outcome, Row, Usage,
};
use jiff::Timestamp;
use state::{State, none};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The maker of an entry, whose memory its runs see. Only an owner may name another
/// maker; an entry of a token belongs to the token, never to an owner.
pub(crate) fn maker(principal: Option<&Principal>, sender: &str) -> String {
    match principal {
        Some(token @ Principal::Token(_)) => token.to_string(),
        // An admin token that speaks as an owner is treated like the owner.
        Some(Principal::Owner | Principal::Admin(_)) | None => sender.to_owned(),
    }
}

/// Entries, books and due times. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cron(Arc<Inner>);

struct Inner {
    file: PathBuf,
    books: Arc<dyn CronBooks>,
    settings: Arc<Settings>,
    /// Locked by threads that may wait for the disk.
    state: Mutex<State>,
    /// Conversations with a run of an entry.
    running: Mutex<HashMap<ConversationKey, Arc<CronEntry>>>,
    /// Notified when due times may have changed.
    wake: Notify,
    began: Instant,
}

impl Cron {
    /// Reads nothing before the first request or [`work`].
    pub(crate) fn new(home: &Home, books: Arc<dyn CronBooks>, settings: Arc<Settings>) -> Self {
        Self(Arc::new(Inner {
            file: home.crons_file(),
            books,
            settings,
            state: Mutex::default(),
            running: Mutex::default(),
            wake: Notify::new(),
            began: Instant::now(),
        }))
    }

    /// Like [`TableFile::with`], then computes the next due time.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut State) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let done = self.0.with(work).await;
        self.0.wake.notify_one();
        done
    }

    /// Reads the file again and reports its errors.
    pub(crate) async fn reload(&self, report: &mut Report) {
        let reread = self.0.with(|inner, state| {
            state.read(inner, Timestamp::now());
            Ok((state.broken.clone(), state.found(inner)))
        });
        tables::report(reread.await, "cron entries stay unchanged", report);
        self.0.wake.notify_one();
    }

    /// Adds an entry and returns it.
    pub(crate) async fn add(&self, draft: Draft) -> Result<Listed, Error> {
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
                return Err(Error::TooMany(format!(
                    "there are {limit} cron entries, the limit ([limits] crons)"
                )));
            }
            if draft.by_agent && of_agent >= config.cron.per_agent {
                return Err(Error::TooMany(format!(
                    "{} has made {of_agent} entries, the limit ([cron] per_agent): remove one",
                    draft.agent
                )));
            }
            let id = open.engine.next_id();
            let draft = Draft { id, ..draft };
            let entry = draft
                .check_new(&config.default_agent, &local_zone(), now)
                .map_err(|error| Error::Invalid(error.to_string()))?;
            let mut file = state.edit(inner)?;
            file.add(cron::table(&entry.draft))?;
            state.save(inner, file, now)?;
            state.listed(id)
        })
        .await
    }

    /// Changes an entry.
    pub(crate) async fn edit(
        &self,
        id: u64,
        change: impl FnOnce(&mut Draft) + Send + 'static,
    ) -> Result<Listed, Error> {
        self.change(move |inner, state| {
            let now = Timestamp::now();
            let config = inner.settings.config();
            let known = state.open(inner)?.engine.entry(id);
            let mut draft = known.ok_or_else(|| none(id))?.0.draft.clone();
            change(&mut draft);
            let entry = draft
                .check_new(&config.default_agent, &local_zone(), now)
                .map_err(|error| Error::Invalid(error.to_string()))?;
            let mut file = state.edit(inner)?;
            if !cron::replace(&mut file, &entry) {
                return Err(none(id));
            }
            state.save(inner, file, now)?;
            state.listed(id)
        })
        .await
    }

    /// Removes an entry. Its run in flight continues.
    pub(crate) async fn remove(&self, id: u64) -> Result<(), Error> {
        self.change(move |inner, state| {
            let mut file = state.edit(inner)?;
            if !file.remove(id) {
                return Err(none(id));
            }
            state.save(inner, file, Timestamp::now())
        })
        .await
    }

    /// Pauses or resumes an entry.
    pub(crate) async fn pause(&self, id: u64, paused: bool) -> Result<Listed, Error> {
        self.change(move |inner, state| {
            let mut file = state.edit(inner)?;
            if !cron::pause(&mut file, id, paused) {
                return Err(none(id));
            }
            state.save(inner, file, Timestamp::now())?;
            // If the disk was full, the file lacks a pause that failures caused.
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

    /// All entries, the invalid ones in the file, and the error of a file that is not in force.
    pub(crate) async fn list(&self) -> Result<(Vec<Listed>, Vec<Finding>, Option<String>), Error> {
        self.0
            .with(|_, state| {
                let open = state.opened();
                let ids: Vec<u64> = open.engine.entries().map(|entry| entry.id).collect();
                let listed = ids.into_iter().map(|id| state.listed(id));
                let listed = listed.collect::<Result<_, _>>()?;
                Ok((listed, state.findings.clone(), state.broken.clone()))
            })
            .await
    }

    /// Runs and skipped due times, latest first.
    pub(crate) async fn rows(&self, id: Option<u64>, limit: usize) -> Result<Vec<Row>, Error> {
        self.0
            .with(move |inner, state| {
                let rows = wait(Books::rows(&*inner.books, id, limit)).map_err(|error| {
                    Error::Failed(format!("cannot read the books of cron: {error}"))
                })?;
                match id {
                    // The books keep the rows of a removed entry.
                    Some(id)
                        if rows.is_empty() && state.opened_mut().engine.entry(id).is_none() =>
                    {
                        Err(none(id))
                    }
                    _ => Ok(rows),
                }
            })
            .await
    }

    pub(crate) async fn run_now(&self, id: u64) -> Result<Fire, Error> {
        let fire = self
            .0
            .with(move |_, state| {
                let open = state.opened_mut();
                if open.engine.entry(id).is_none() {
                    return Err(none(id));
                }
                let Some((lines, fire)) = open.engine.run_now(id, Timestamp::now()) else {
                    return Err(Error::Conflict(format!("entry {id} is running already")));
                };
                if let Err(error) = open.append(&lines) {
                    let why = format!("the books of cron cannot be written: {error}");
                    lines.into_iter().for_each(|line| open.books.keep(line));
                    open.end(unstarted(&fire, 500, why.clone()));
                    return Err(Error::Failed(why));
                }
                state.wanted.push(fire.clone());
                Ok(fire)
            })
            .await?;
        self.0.wake.notify_one();
        Ok(fire)
    }

    /// The entry that started a conversation's run.
    pub(crate) fn entry_of(&self, key: &ConversationKey) -> Option<Arc<CronEntry>> {
        self.0.running().get(key).cloned()
    }
}

impl TableFile for Inner {
    type State = State;

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so that a panic leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, state: &mut State) -> Result<(), Error> {
        state.open(self).map(drop)
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, HashMap<ConversationKey, Arc<CronEntry>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine_settings(&self) -> crabtalk_triggers::cron::Settings {
        let config = self.settings.config();
        crabtalk_triggers::cron::Settings {
            at_once: config.cron.at_once as usize,
            pause_after: config.cron.pause_after,
        }
    }
}

/// The id of a run's request, unique even if the books are lost.
fn request_id(seq: u64, at: Timestamp) -> String {
    format!("cron:{seq}:{}", at.as_millisecond())
}

/// The end of a run now, without its figures.
fn end_of(id: u64, seq: u64, outcome: Outcome, code: u32, error: String) -> Ended {
    Ended {
        id,
        seq,
        at: Timestamp::now(),
        outcome,
        code,
        error,
        ms: 0,
        usage: Usage::default(),
        run: None,
        refused: Vec::new(),
        unstarted: false,
    }
}

/// The end of a run that could not begin.
fn unstarted(fire: &Fire, code: u32, error: String) -> Ended {
    Ended {
        unstarted: true,
        ..end_of(fire.entry.id, fire.seq, Outcome::Failed, code, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::TokenName;

    #[test]
    fn token_is_the_maker_of_its_entries() {
        let token = Principal::Token(TokenName::new("phone").unwrap());
        assert_eq!(maker(Some(&token), "user"), "token/phone");
        assert_eq!(maker(Some(&Principal::Owner), "tg:1"), "tg:1");
        // A run that the daemon started.
        assert_eq!(maker(None, "tg:1"), "tg:1");
    }
}
