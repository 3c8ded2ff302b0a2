//! Decides each due time, and when to check again.
//!
//! A state machine without a clock: the caller passes the wall clock and elapsed
//! time, writes the returned lines, then starts the runs.
//!
//! Invariants: each due time is decided once, in order, with a line; at most one run of an
//! entry and one of a conversation at a time; at most [`Settings::at_once`] in all, others
//! wait in the order of their due times.

mod slot;

use crate::cron::account::{Account, Ended, Fired, Line, Outcome};
use crate::cron::books::Loaded;
use crate::cron::entry;
use crabtalk_domain::ConversationKey;
use jiff::{SignedDuration, Timestamp};
use slot::Slot;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// How late a due time may be decided without counting as missed, so that a restart or a
/// busy machine skips no run.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Longest sleep while entries are scheduled. Timers stop while the machine sleeps and
/// ignore a changed clock; two checks a minute notice both within the grace.
const MAX_NAP: Duration = Duration::from_secs(30);

/// Difference between the clocks that counts as a jump.
const JUMP: SignedDuration = SignedDuration::from_secs(2);

/// Maximum characters of the prompt in the books.
const MAX_WORDS: usize = 200;

/// The engine's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Maximum concurrent runs.
    pub at_once: usize,
    /// Consecutive failures that pause an entry; 0 means never.
    pub pause_after: u32,
}

/// A run to start after its line is written.
#[derive(Debug, Clone)]
pub struct Fire {
    /// The run's number in the books.
    pub seq: u64,
    /// The due time; `None` for a run on demand.
    pub due: Option<Timestamp>,
    /// When it began.
    pub at: Timestamp,
    /// The entry.
    pub entry: Arc<entry::CronEntry>,
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Tick {
    /// Lines to write first, in order.
    pub lines: Vec<Line>,
    /// Runs to start afterwards.
    pub fires: Vec<Fire>,
    /// Time until the next check; `None` if nothing is scheduled.
    pub wake: Option<Duration>,
    /// The difference by which the wall clock jumped.
    pub jump: Option<SignedDuration>,
}

/// All entries and their state.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    slots: BTreeMap<u64, Slot>,
    due: BTreeSet<(Timestamp, u64)>,
    waiting: BTreeSet<(Timestamp, u64)>,
    /// Conversations with runs, and the number of runs: one, plus runs on demand.
    busy: HashMap<ConversationKey, usize>,
    running: usize,
    /// The last readings of both clocks.
    seen: Option<(Timestamp, Duration)>,
    last_id: u64,
    last_seq: u64,
}

impl Engine {
    /// Creates an engine from the books, without entries.
    pub fn new(known: Loaded, settings: Settings) -> Self {
        let slots = known.accounts.into_iter();
        Self {
            settings,
            slots: slots
                .map(|(id, account)| (id, Slot::known(account)))
                .collect(),
            due: BTreeSet::new(),
            waiting: BTreeSet::new(),
            busy: HashMap::new(),
            running: 0,
            seen: None,
            last_id: known.last_id,
            last_seq: known.last_seq,
        }
    }

    /// Replaces the settings.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The next number for an entry.
    pub fn next_id(&self) -> u64 {
        self.last_id + 1
    }

    /// Replaces the entries; returns the lines to write. Runs in progress continue.
    pub fn load(&mut self, entries: Vec<entry::CronEntry>, now: Timestamp) -> Vec<Line> {
        let mut lines = Vec::new();
        let kept: HashSet<u64> = entries.iter().map(|entry| entry.id).collect();
        let gone = self.slots.keys().filter(|id| !kept.contains(id)).copied();
        for id in gone.collect::<Vec<_>>() {
            self.unschedule(id);
            let slot = self.slots.get_mut(&id).expect("its key was read above");
            slot.entry = None;
            if slot.running.is_none() {
                self.slots.remove(&id);
                lines.push(Line::Removed { id });
            }
        }
        for entry in entries {
            self.unschedule(entry.id);
            self.last_id = self.last_id.max(entry.id);
            let slot = self.slots.entry(entry.id).or_default();
            lines.extend(slot.take(Arc::new(entry), now));
        }
        self.reschedule(now);
        lines
    }

    /// Recomputes the next due times.
    fn reschedule(&mut self, now: Timestamp) {
        self.due.clear();
        for (id, slot) in &mut self.slots {
            slot.account.set_back(now);
            slot.account.passed(now);
            if slot.waiting.is_none() {
                slot.next = slot.after(slot.account.mark);
                self.due.extend(slot.next.map(|next| (next, *id)));
            }
        }
    }

    fn unschedule(&mut self, id: u64) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if let Some(next) = slot.next.take() {
            self.due.remove(&(next, id));
        }
        if let Some(waiting) = slot.waiting.take() {
            self.waiting.remove(&(waiting, id));
        }
    }

    /// Decides everything that is due. `passed` is the time of a monotonic clock.
    pub fn tick(&mut self, now: Timestamp, passed: Duration) -> Tick {
        let mut tick = Tick {
            jump: self.jump(now, passed),
            ..Tick::default()
        };
        if tick.jump.is_some_and(|jump| jump.is_negative()) {
            self.reschedule(now);
        }
        while let Some((due, id)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, id));
            let slot = self.slots.get_mut(&id).expect("what is due is there");
            slot.decide(now, &mut tick.lines);
            if let Some(waiting) = slot.waiting {
                self.waiting.insert((waiting, id));
            }
            // While a run waits, later times are not decided.
            self.due.extend(slot.next.map(|next| (next, id)));
        }
        self.start(now, &mut tick);
        tick.wake = self.due.first().map(|(due, _)| {
            let wait = Duration::try_from(due.duration_since(now)).unwrap_or_default();
            wait.min(MAX_NAP)
        });
        tick
    }

    fn jump(&mut self, now: Timestamp, passed: Duration) -> Option<SignedDuration> {
        let (then, before) = self.seen.replace((now, passed))?;
        let really = SignedDuration::try_from(passed.saturating_sub(before)).ok()?;
        let jump = now.duration_since(then) - really;
        (jump.abs() > JUMP).then_some(jump)
    }

    /// Skips waiting runs whose entry has quiet hours now.
    fn skip_quiet(&mut self, now: Timestamp, tick: &mut Tick) {
        let is_quiet = |(_, id): &&(Timestamp, u64)| self.slots[id].is_quiet(now);
        let quiet: Vec<_> = self.waiting.iter().filter(is_quiet).copied().collect();
        for (due, id) in quiet {
            self.waiting.remove(&(due, id));
            let slot = self
                .slots
                .get_mut(&id)
                .expect("waiting entries have a slot");
            slot.skip_waiting(due, now, &mut tick.lines);
            self.due.extend(slot.next.map(|next| (next, id)));
        }
    }

    /// Starts waiting runs up to the limits.
    fn start(&mut self, now: Timestamp, tick: &mut Tick) {
        self.skip_quiet(now, tick);
        let room = self.settings.at_once.saturating_sub(self.running);
        if room == 0 {
            return;
        }
        let mut begun = Vec::new();
        let mut chosen = HashSet::new();
        for (due, id) in &self.waiting {
            if begun.len() == room {
                break;
            }
            let slot = &self.slots[id];
            let entry = slot.entry.as_ref().expect("what waits is scheduled");
            if !self.busy.contains_key(&entry.key) && chosen.insert(&entry.key) {
                begun.push((*due, *id));
            }
        }
        for (due, id) in begun {
            self.waiting.remove(&(due, id));
            let fire = self.begin(id, Some(due), now, &mut tick.lines);
            tick.fires.extend(fire);
            let slot = self.slots.get_mut(&id).expect("it was begun above");
            slot.next = slot.after(slot.account.mark);
            self.due.extend(slot.next.map(|next| (next, id)));
        }
    }

    fn begin(
        &mut self,
        id: u64,
        due: Option<Timestamp>,
        now: Timestamp,
        lines: &mut Vec<Line>,
    ) -> Option<Fire> {
        let slot = self.slots.get_mut(&id)?;
        let entry = Arc::clone(slot.entry.as_ref()?);
        self.last_seq += 1;
        let seq = self.last_seq;
        slot.waiting = None;
        slot.running = Some((seq, now));
        self.running += 1;
        *self.busy.entry(entry.key.clone()).or_default() += 1;
        let line = Line::Fired(Fired {
            id,
            seq,
            due,
            at: now,
            late: due.is_some() && slot.late,
            // A run on demand does not use up the entry.
            once: due.is_some() && entry.is_once(),
            agent: entry.key.agent.to_string(),
            sender: entry.key.sender.to_string(),
            words: entry.words().chars().take(MAX_WORDS).collect(),
        });
        slot.account.take(&line);
        slot.fired_key = Some(entry.key.clone());
        lines.push(line);
        Some(Fire {
            seq,
            due,
            at: now,
            entry,
        })
    }

    /// Starts a run of an entry on demand. `None` if the entry does not exist or has a run in
    /// progress.
    pub fn run_now(&mut self, id: u64, now: Timestamp) -> Option<(Vec<Line>, Fire)> {
        let slot = self.slots.get(&id)?;
        if slot.running.is_some() {
            return None;
        }
        // The run takes the place of a waiting due time.
        let due = slot.waiting;
        if let Some(due) = due {
            self.waiting.remove(&(due, id));
        }
        let mut lines = Vec::new();
        let fire = self.begin(id, due, now, &mut lines)?;
        if due.is_some() {
            let slot = self.slots.get_mut(&id)?;
            slot.next = slot.after(slot.account.mark);
            self.due.extend(slot.next.map(|next| (next, id)));
        }
        Some((lines, fire))
    }

    /// Starts a run that was closed as interrupted but never began. `None` if its entry was
    /// removed, paused or replaced, or has a newer run.
    pub fn begin_again(&mut self, fired: &Fired) -> Option<(Line, Fire)> {
        let slot = self.slots.get_mut(&fired.id)?;
        let entry = Arc::clone(slot.entry.as_ref()?);
        let account = &slot.account;
        let is_last = account
            .last
            .as_ref()
            .is_some_and(|last| last.seq == fired.seq);
        let ended = account
            .ended
            .as_ref()
            .filter(|ended| ended.seq == fired.seq);
        let cut = ended.is_some_and(|ended| ended.outcome == Outcome::Interrupted);
        let same =
            entry.key.agent.as_str() == fired.agent && entry.key.sender.as_str() == fired.sender;
        let free = slot.running.is_none() && slot.waiting.is_none();
        if !(is_last && cut && same && free) || account.paused {
            return None;
        }
        let line = Line::Fired(fired.clone());
        slot.account.take(&line);
        self.running += 1;
        *self.busy.entry(entry.key.clone()).or_default() += 1;
        slot.running = Some((fired.seq, fired.at));
        slot.fired_key = Some(entry.key.clone());
        let fire = Fire {
            seq: fired.seq,
            due: fired.due,
            at: fired.at,
            entry,
        };
        Some((line, fire))
    }

    /// Records the end of a run; returns its lines, and whether its entry is
    /// paused because of it.
    pub fn ended(&mut self, ended: Ended) -> (Vec<Line>, bool) {
        let Some(slot) = self.slots.get_mut(&ended.id) else {
            return (Vec::new(), false);
        };
        if slot.running.map(|(seq, _)| seq) != Some(ended.seq) {
            return (Vec::new(), false);
        }
        slot.running = None;
        self.running -= 1;
        if let Some(key) = slot.fired_key.take()
            && let Entry::Occupied(mut runs) = self.busy.entry(key)
        {
            *runs.get_mut() -= 1;
            if *runs.get() == 0 {
                runs.remove();
            }
        }
        let (id, at) = (ended.id, ended.at);
        let failed = matches!(ended.outcome, Outcome::Failed | Outcome::Interrupted);
        let mut lines = vec![Line::Ended(ended)];
        slot.account.take(&lines[0]);
        let after = self.settings.pause_after;
        let pause = failed && after > 0 && slot.account.failures >= after && !slot.account.paused;
        if slot.entry.is_none() {
            self.slots.remove(&id);
            lines.push(Line::Removed { id });
            return (lines, false);
        }
        if pause {
            lines.extend(self.pause(id, true, at));
        } else if slot.next.is_none() && slot.waiting.is_none() {
            // A run that never began did not use up the entry.
            slot.next = slot.after(slot.account.mark);
            self.due.extend(slot.next.map(|next| (next, id)));
        }
        (lines, pause)
    }

    /// Corrects the end of a run that was closed as interrupted; returns its
    /// line.
    pub fn corrected(&mut self, ended: Ended) -> Option<Line> {
        let slot = self.slots.get_mut(&ended.id)?;
        let known = slot.account.ended.as_ref()?;
        if known.seq != ended.seq || known.outcome != Outcome::Interrupted {
            return None;
        }
        let line = Line::Ended(ended);
        slot.account.take(&line);
        Some(line)
    }

    /// Pauses or resumes an entry. Due times while paused are skipped.
    pub fn pause(&mut self, id: u64, paused: bool, now: Timestamp) -> Option<Line> {
        self.unschedule(id);
        let slot = self.slots.get_mut(&id)?;
        let line = Line::Paused {
            id,
            paused,
            at: now,
        };
        slot.account.take(&line);
        slot.next = slot.after(slot.account.mark);
        self.due.extend(slot.next.map(|next| (next, id)));
        Some(line)
    }

    /// The entries, by their numbers.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<entry::CronEntry>> {
        self.slots.values().filter_map(|slot| slot.entry.as_ref())
    }

    /// An entry, its account, and its next due time.
    pub fn entry(&self, id: u64) -> Option<(&Arc<entry::CronEntry>, &Account, Option<Timestamp>)> {
        let slot = self.slots.get(&id)?;
        let next = slot.waiting.or(slot.next);
        Some((slot.entry.as_ref()?, &slot.account, next))
    }

    /// Runs in progress of existing entries.
    pub fn running(&self) -> Vec<Fire> {
        let running = self.slots.values().filter_map(|slot| {
            let ((seq, at), entry) = slot.running.zip(slot.entry.clone())?;
            Some(Fire {
                seq,
                due: slot.account.last.as_ref().and_then(|last| last.due),
                at,
                entry,
            })
        });
        running.collect()
    }

    /// Used entries without a run in progress, which may be removed.
    pub fn spent(&self) -> Vec<u64> {
        let spent = self.slots.iter().filter(|(_, slot)| {
            slot.entry.is_some() && slot.account.used && slot.running.is_none()
        });
        spent.map(|(id, _)| *id).collect()
    }

    /// Whether an entry has a run in progress.
    pub fn is_running(&self, id: u64) -> bool {
        self.slots
            .get(&id)
            .is_some_and(|slot| slot.running.is_some())
    }

    /// The account of an entry, which may have been removed.
    pub fn account(&self, id: u64) -> Option<&Account> {
        self.slots.get(&id).map(|slot| &slot.account)
    }
}

#[cfg(test)]
mod tests;
