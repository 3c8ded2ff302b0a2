use super::*;
use crate::cron::account::Why;
use crabtalk_domain::BoxFuture;
use crabtalk_domain::records::CronBooksContent;
use futures_util::FutureExt;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};

/// Books in memory.
#[derive(Default)]
pub(crate) struct MemoryBooks(Mutex<State>);

#[derive(Default)]
struct State {
    content: CronBooksContent,
    /// The run of each row, if it is one.
    rows: Vec<(u64, Option<u64>, CronRow)>,
    is_full: bool,
}

impl MemoryBooks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn open(self: &Arc<Self>, now: Timestamp) -> (Books, Loaded) {
        done(Books::open(Arc::clone(self) as _, now)).unwrap()
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        done(Books::rows(self, None, usize::MAX)).unwrap()
    }
}

/// What an operation on them answers at once.
pub(crate) fn done<T>(operation: impl Future<Output = T>) -> T {
    operation.now_or_never().expect("memory answers at once")
}

impl CronBooks for MemoryBooks {
    fn load(&self) -> BoxFuture<'static, Result<CronBooksContent, Error>> {
        Box::pin(ready(Ok(self.state().content.clone())))
    }

    fn write(&self, change: CronBooksChange) -> BoxFuture<'static, Result<(), Error>> {
        let mut state = self.state();
        if state.is_full {
            let (store, reason) = ("memory".into(), "it is full".into());
            return Box::pin(ready(Err(Error::Unwritable { store, reason })));
        }
        for (id, account) in change.accounts {
            let content = &mut state.content;
            content.last_entry = content.last_entry.max(id);
            content.accounts.retain(|(known, _)| *known != id);
            content
                .accounts
                .extend(account.map(|account| (id, account)));
        }
        for fact in change.facts {
            match fact {
                CronFact::Begun { entry, run, text } => {
                    state.content.last_run = state.content.last_run.max(run);
                    state.rows.retain(|row| row.1 != Some(run));
                    state
                        .rows
                        .push((entry, Some(run), CronRow::Run(text, None)));
                }
                CronFact::Ended { run, text } => {
                    let row = state.rows.iter_mut().find(|row| row.1 == Some(run));
                    if let Some((_, _, CronRow::Run(_, ended))) = row {
                        *ended = Some(text);
                    }
                }
                CronFact::Skipped { entry, text } => {
                    state.rows.push((entry, None, CronRow::Skipped(text)));
                }
            }
        }
        Box::pin(ready(Ok(())))
    }

    fn latest(
        &self,
        entry: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<CronRow>, Error>> {
        let state = self.state();
        let rows = state.rows.iter().rev();
        let rows = rows.filter(|row| entry.is_none_or(|entry| entry == row.0));
        Box::pin(ready(Ok(rows
            .take(limit)
            .map(|row| row.2.clone())
            .collect())))
    }
}

fn now() -> Timestamp {
    "2026-11-22T10:00:00Z".parse().unwrap()
}

fn fired(id: u64, seq: u64) -> Line {
    Line::Fired(Fired {
        id,
        seq,
        due: Some(now()),
        at: now(),
        late: false,
        once: false,
        agent: "crab".into(),
        sender: "cron".into(),
        words: "look".into(),
    })
}

fn ended(id: u64, seq: u64, outcome: Outcome) -> Line {
    Line::Ended(Ended {
        id,
        seq,
        at: now(),
        outcome,
        code: 0,
        error: String::new(),
        ms: 12,
        usage: Usage {
            tokens: 5,
            money: Some(0.5),
        },
        run: Some(3),
        refused: vec!["bash: rm".into()],
        unstarted: false,
    })
}

/// Takes lines as the engine does, and writes them.
fn write(books: &mut Books, account: &mut Account, lines: &[Line]) -> Result<(), Error> {
    lines.iter().for_each(|line| account.take(line));
    done(books.append(lines, |_| Some(&*account)))
}

#[test]
fn runs_without_an_end_are_interrupted() {
    let memory = Arc::new(MemoryBooks::default());
    let (mut books, loaded) = memory.open(now());
    assert_eq!(loaded, Loaded::default());
    let mut account = Account::default();
    let lines = [fired(1, 1), ended(1, 1, Outcome::Ok)];
    write(&mut books, &mut account, &lines).unwrap();
    write(&mut books, &mut account, &[fired(1, 2)]).unwrap();
    let (_, loaded) = memory.open(now());
    assert_eq!(loaded.interrupted.len(), 1);
    let account = &loaded.accounts[&1];
    assert_eq!(
        (account.fired, account.failures, account.open),
        (2, 1, None)
    );
    assert_eq!(account.usage.tokens, 5);
    assert_eq!((loaded.last_id, loaded.last_seq), (1, 2));
    let rows = memory.rows();
    let outcomes = rows.iter().map(|row| match row {
        Row::Run(fired, ended) => (fired.seq, ended.as_ref().unwrap().outcome),
        Row::Skipped(skipped) => panic!("{skipped:?}"),
    });
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes, [(2, Outcome::Interrupted), (1, Outcome::Ok)]);
    // Said once.
    let (_, loaded) = memory.open(now());
    assert!(loaded.interrupted.is_empty());
}

#[test]
fn broken_accounts_do_not_affect_others() {
    let memory = Arc::new(MemoryBooks::default());
    let (mut books, _) = memory.open(now());
    let mut account = Account::default();
    let lines = [fired(1, 1), ended(1, 1, Outcome::Ok)];
    write(&mut books, &mut account, &lines).unwrap();
    memory.state().content.accounts.push((2, "[[[".into()));
    let (_, loaded) = memory.open(now());
    assert_eq!((loaded.broken, loaded.accounts[&1].fired), (1, 1));
}

#[test]
fn ends_are_kept_while_the_disk_is_full() {
    let memory = Arc::new(MemoryBooks::default());
    let (mut books, _) = memory.open(now());
    let mut account = Account::default();
    write(&mut books, &mut account, &[fired(1, 1)]).unwrap();
    memory.state().is_full = true;
    let end = ended(1, 1, Outcome::Ok);
    write(&mut books, &mut account, std::slice::from_ref(&end)).unwrap_err();
    books.keep(end);
    // There is room again.
    memory.state().is_full = false;
    let skipped = Line::Skipped(Skipped {
        id: 1,
        due: now(),
        last: now(),
        count: 1,
        why: Why::Quiet,
        at: now(),
    });
    write(&mut books, &mut account, &[skipped]).unwrap();
    assert!(books.unwritten.is_empty());
    let (_, loaded) = memory.open(now());
    let account = &loaded.accounts[&1];
    assert_eq!(account.ended.as_ref().unwrap().outcome, Outcome::Ok);
    assert_eq!(account.skipped, 1);
}

#[test]
fn books_in_memory_fulfil_the_contract() {
    let memory = MemoryBooks::default();
    done(crabtalk_testkit::contract::records::crons(|| &memory));
}
