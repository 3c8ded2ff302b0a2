//! The state of cron entries in memory: file, books and due times.
//!
//! Invariant: a due time is recorded in the books before its run begins.

use super::{Inner, unstarted};
use crate::error::Error;
use crate::tables::wait;
use crabtalk_domain::records;
use crabtalk_files::local_zone;
use crabtalk_files::tables::{TablesEdit, TablesError};
use crabtalk_triggers::cron::{
    Account, Books, CRONS, CronEntry, Ended, Engine, Finding, Fire, Fired, Line, Surroundings,
    Tick, read_crons,
};
use jiff::Timestamp;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct State {
    pub(super) open: Option<Open>,
    /// The text of the file in force.
    pub(super) taken: Option<String>,
    pub(super) findings: Vec<Finding>,
    /// The error of the present file, if it is not in force.
    pub(super) broken: Option<String>,
    /// Runs that a client requested.
    pub(super) wanted: Vec<Fire>,
    /// Runs of an earlier daemon without an end in the books.
    pub(super) cut: Vec<Fired>,
}

pub(super) struct Open {
    pub(super) engine: Engine,
    pub(super) books: Books,
}

/// An entry as lists show it.
pub(crate) struct Listed {
    pub(crate) entry: Arc<CronEntry>,
    pub(crate) account: Account,
    pub(crate) next: Option<Timestamp>,
    pub(crate) running: bool,
}

pub(super) fn none(id: u64) -> Error {
    Error::NotFound(format!("cron entry {id} does not exist; list them"))
}

impl State {
    /// Reads the books and the file if they have not been read.
    pub(super) fn open(&mut self, inner: &Inner) -> Result<&mut Open, Error> {
        if self.open.is_none() {
            let now = Timestamp::now();
            let books = wait(Books::open(Arc::clone(&inner.books), now));
            let (books, loaded) = books.map_err(|error| {
                Error::Failed(format!("no cron entry fires without its books: {error}"))
            })?;
            if loaded.broken > 0 {
                let entries = loaded.broken;
                tracing::warn!(entries, "accounts of cron entries cannot be read");
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

    pub(super) fn opened(&self) -> &Open {
        self.open.as_ref().expect("opened before any work")
    }

    /// Single-use entries that were used and have no run in flight.
    pub(super) fn spent(&self) -> Vec<u64> {
        let mut spent = self.opened().engine.spent();
        spent.retain(|id| self.cut.iter().all(|cut| cut.id != *id));
        spent
    }

    pub(super) fn opened_mut(&mut self) -> &mut Open {
        self.open.as_mut().expect("opened before any work")
    }

    /// Puts the present file into force. A file that cannot be read changes nothing.
    pub(super) fn read(&mut self, inner: &Inner, now: Timestamp) {
        let config = inner.settings.config();
        let local = local_zone();
        let around = Surroundings {
            default_agent: &config.default_agent,
            local: &local,
            now,
            limit: config.limits.crons as usize,
        };
        match read_crons(&inner.file, around) {
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

    /// Errors of single entries in the file.
    pub(super) fn found(&self, inner: &Inner) -> Vec<String> {
        /// Maximum number of errors in the log of a start.
        const MAX_FOUND: usize = 20;
        let found = self.findings.iter().take(MAX_FOUND);
        found
            .map(|finding| format!("{}:{}: {}", inner.file.display(), finding.line, finding.why))
            .collect()
    }

    pub(super) fn edit(&self, inner: &Inner) -> Result<TablesEdit, TablesError> {
        CRONS.edit(&inner.file, self.taken.as_deref())
    }

    pub(super) fn save(
        &mut self,
        inner: &Inner,
        file: TablesEdit,
        now: Timestamp,
    ) -> Result<(), Error> {
        file.save()?;
        self.read(inner, now);
        Ok(())
    }

    pub(super) fn listed(&self, id: u64) -> Result<Listed, Error> {
        let engine = &self.opened().engine;
        let (entry, account, next) = engine.entry(id).ok_or_else(|| none(id))?;
        Ok(Listed {
            entry: Arc::clone(entry),
            account: account.clone(),
            next,
            running: engine.is_running(id),
        })
    }

    /// Records the due times in the books and returns the runs to start.
    pub(super) fn tick(&mut self, inner: &Inner) -> Result<Tick, Error> {
        let open = self.open(inner)?;
        let mut tick = open.engine.tick(Timestamp::now(), inner.began.elapsed());
        let written = open.append(&tick.lines);
        if let Err(error) = written {
            tracing::error!(%error, "no cron entry fires, because the books cannot be written");
            for line in tick.lines.drain(..) {
                open.books.keep(line);
            }
            for fire in tick.fires.drain(..) {
                let why = format!("the books of cron could not be written: {error}");
                open.end(unstarted(&fire, 500, why));
            }
        }
        tick.fires.append(&mut self.wanted);
        Ok(tick)
    }
}

impl Open {
    /// Writes lines, all or none.
    pub(super) fn append(&mut self, lines: &[Line]) -> Result<(), records::Error> {
        let engine = &self.engine;
        wait(self.books.append(lines, |id| engine.account(id)))
    }

    pub(super) fn write(&mut self, lines: Vec<Line>) {
        if let Err(error) = self.append(&lines) {
            tracing::error!(%error, "the books of cron cannot be written");
            lines.into_iter().for_each(|line| self.books.keep(line));
        }
    }

    /// Records the end of a run. Returns whether its entry was paused because of it.
    pub(super) fn end(&mut self, ended: Ended) -> bool {
        let (lines, paused) = self.engine.ended(ended);
        self.write(lines);
        paused
    }
}
