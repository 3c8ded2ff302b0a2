//! What is known of an agent's session, read from its transcript and hooks.
//!
//! Invariants: a submission is told as seen once, and before the end of its
//! turn; a prompt goes before the turn ends in which it was asked; a file is one
//! agent's; what is found waits in a bounded list.

mod past;

use super::Spec;
use crate::hook::{Hook, Said};
use crate::kind::{HookNames, Place};
use crate::terminals::Claims;
use crate::tmux::control::Window;
use crate::tmux::text::{cut, squeezed};
use crate::transcript::place::{self, Found};
use crate::transcript::tail::{Tail, length};
use crate::transcript::turns::{Step, Turns};
use crate::transcript::{Form, Reader, Record};
use crabtalk_backend::{Event, Evidence, Mark, Prompt, Source, Turn, What};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

/// Messages that are known to have arrived: one is asked about at a time.
const SEEN: usize = 8;

/// Events that wait for the watcher; more are read when it took them.
const FOUND: usize = 512;

/// How long a submission may take before another transcript than the known one is
/// looked for: some programs begin a new one.
const ELSEWHERE_AFTER: Duration = Duration::from_millis(400);

/// Between two looks for a transcript.
const LOOK_FOR_IT: Duration = Duration::from_millis(300);

/// The same while a message of ours has to appear in it.
const LOOK_FOR_OURS: Duration = Duration::from_millis(50);

/// The same where it does not appear: something swallowed it, and looking costs
/// reading what others wrote.
const LOOK_SELDOM: Duration = Duration::from_secs(5);

/// How long a message is expected any moment.
const ANY_MOMENT: Duration = Duration::from_secs(20);

/// How long another agent may take to know a transcript as its own, by a message in
/// it, before one that nobody claims is taken for it.
const UNCLAIMED: Duration = Duration::from_secs(2);

/// How far before the launch a file may have changed that the launch wrote:
/// clocks of file systems are coarse.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// How long the transcript may take to say what a hook has said.
const HOOK_AHEAD: Duration = Duration::from_millis(1500);

/// What is read of a transcript to know where it stands, from its end.
const REPLAY_BYTES: u64 = 8 << 20;

/// One life of the agent: a process in a window.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) window: Window,
    pub(crate) since: SystemTime,
    /// It ended, or is being ended.
    pub(crate) is_over: bool,
    /// It takes input, which was told.
    pub(crate) is_ready: bool,
    /// It ran already when it was found.
    pub(crate) is_found: bool,
    /// Until then it has to be ready.
    pub(crate) deadline: Instant,
}

/// A message that was typed and is not in the transcript yet.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) since: Instant,
}

/// A prompt that waits.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) prompt: Prompt,
    pub(crate) key: String,
    /// The call that it asks about, where that has a result only afterwards.
    pub(crate) call: Option<String>,
    /// How it was answered by us.
    pub(crate) answer: Option<String>,
}

/// A place in a transcript, as [`Mark`] holds it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct At {
    pub(super) file: PathBuf,
    pub(super) at: u64,
    /// Milliseconds since 1970.
    pub(super) since: u64,
}

pub(crate) struct Session {
    place: Option<Place>,
    names: HookNames,
    pattern: String,
    folder: PathBuf,
    agent: String,
    claims: Claims,
    pub(crate) life: Option<Life>,
    /// Its name for the supervisor.
    pub(crate) name: String,
    tail: Option<Tail>,
    hooks: Option<Tail>,
    pub(crate) turns: Turns,
    /// Where the transcript was last compacted.
    compacted_at: u64,
    pub(crate) compactions: u64,
    /// Files that another session wrote, and how long they were at the launch.
    before: BTreeMap<PathBuf, u64>,
    looked: Option<Instant>,
    /// The one file that may be its own, and since when.
    alone: Option<(PathBuf, Instant)>,
    pub(crate) pending: Vec<Pending>,
    /// The last messages that were told as seen, by their ids.
    seen: VecDeque<String>,
    /// Until then a message of an earlier supervisor may come late.
    late_until: Option<Instant>,
    pub(crate) live: Option<Live>,
    pub(crate) prompts: u64,
    /// Tells prompts of this session from those that an earlier supervisor saw.
    pub(crate) epoch: u128,
    /// How many prompts have gone: a look from before one went shows it still.
    pub(crate) gone: u64,
    /// A hook said that the turn ended, and when.
    ended: Option<(String, Instant)>,
    /// A hook or the transcript gave a reason to look at the screen.
    pub(crate) hint: Option<Evidence>,
    /// A command is under way whose turns are nobody's.
    pub(crate) is_compressing: bool,
    /// What a call ended may leave no record of its end.
    pub(crate) cut_short: Option<Instant>,
    pub(crate) moved: Instant,
    pub(crate) found: VecDeque<Event>,
    /// What turns came to since the agent was found again, until the supervisor
    /// has asked about the message that was with it: its arrival is told first.
    held: Option<VecDeque<Event>>,
}

impl Session {
    pub(super) fn new(spec: &Spec, home: &Path, claims: Claims) -> Self {
        let folder = crate::tmux::windows::real(&spec.folder);
        let place = spec.kind.transcript.clone();
        let files = place.as_ref().map_or("", |place| place.files.as_str());
        Self {
            pattern: pattern(files, home, &folder),
            names: spec.kind.hooks.clone(),
            place,
            folder,
            agent: spec.name.clone(),
            claims,
            life: None,
            name: String::new(),
            tail: None,
            hooks: None,
            turns: Turns::default(),
            compacted_at: 0,
            compactions: 0,
            before: BTreeMap::new(),
            looked: None,
            alone: None,
            pending: Vec::new(),
            seen: VecDeque::new(),
            late_until: None,
            live: None,
            prompts: 0,
            epoch: now().as_nanos(),
            gone: 0,
            ended: None,
            hint: None,
            is_compressing: false,
            cut_short: None,
            moved: Instant::now(),
            found: VecDeque::new(),
            held: None,
        }
    }

    /// Begins a life: with a transcript that is known, or one that will be found.
    pub(super) fn begin(&mut self, life: Life, name: String, file: Option<Found>, hooks: &Path) {
        self.before.clear();
        if let Some(place) = &self.place {
            let always = SystemTime::UNIX_EPOCH;
            for found in place::candidates(&self.pattern, place.form, always, &self.folder) {
                self.before.insert(found.path.clone(), length(&found.path));
            }
        }
        self.turns = Turns::default();
        self.tail = None;
        self.live = None;
        self.ended = None;
        self.cut_short = None;
        self.is_compressing = false;
        self.hooks = Some(Tail::new(hooks, length(hooks)));
        self.name = name;
        self.held = life.is_found.then(VecDeque::new);
        let late = self.place.as_ref().filter(|_| life.is_found);
        self.late_until = late.map(|place| Instant::now() + Duration::from_secs(place.late_secs));
        if let Some(found) = file {
            self.take_up(&found.path);
            self.name = found.session;
        }
        if !life.is_found {
            // What was in flight went with the process.
            self.turns.drop_turn();
        }
        self.life = Some(life);
    }

    /// Follows a file from its end, after reading where it stands.
    fn take_up(&mut self, path: &Path) {
        let Some(place) = &self.place else { return };
        let reader = Reader::new(place.form);
        let end = length(path);
        let mut tail = Tail::new(path, end.saturating_sub(REPLAY_BYTES));
        while tail.at() < end {
            let (lines, more) = tail.step();
            for record in lines.iter().flat_map(|line| reader.read(line)) {
                if self.turns.take(record).contains(&Step::Compacted) {
                    self.compacted_at = tail.at();
                }
            }
            if !more {
                break;
            }
        }
        self.claim(path);
        self.tail = Some(tail);
    }

    fn claim(&self, path: &Path) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, agent| *agent != self.agent);
        claims.insert(path.to_owned(), self.agent.clone());
    }

    fn is_anothers(&self, path: &Path) -> bool {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.get(path).is_some_and(|agent| *agent != self.agent)
    }

    /// Forgets the transcript: another one begins.
    pub(super) fn forget(&mut self, name: String) {
        if let Some(tail) = self.tail.take() {
            let end = length(&tail.path);
            self.before.insert(tail.path, end);
        }
        self.turns = Turns::default();
        self.compacted_at = 0;
        self.name = name;
    }

    /// Whether it was told that a message arrived.
    pub(super) fn has_seen(&self, id: &str) -> bool {
        self.seen.iter().any(|seen| seen == id)
    }

    /// Whether a message that an earlier supervisor may have entered may come
    /// late still.
    pub(super) fn may_come_late(&self) -> bool {
        self.late_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether a message has to appear any moment.
    pub(crate) fn expects_message(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.since.elapsed() < ANY_MOMENT)
    }

    /// Reads what was written; whether anything was.
    pub(crate) fn catch_up(&mut self) -> bool {
        if self.life.is_none() || self.found.len() >= FOUND {
            return false;
        }
        let before = self.found.len();
        let hooked = self.read_hooks();
        self.find();
        let moved = self.read_transcript();
        self.end_by_hook();
        if moved {
            self.moved = Instant::now();
        }
        hooked || moved || self.found.len() != before
    }

    fn read_hooks(&mut self) -> bool {
        let Some(mut tail) = self.hooks.take() else {
            return false;
        };
        let (lines, _) = tail.step();
        self.hooks = Some(tail);
        let hooks: Vec<Hook> = lines
            .iter()
            .filter_map(|line| self.names.read(line))
            .collect();
        for hook in hooks {
            if self.tail.is_none()
                && let Some(path) = hook.transcript.as_deref().map(Path::new)
                && !self.is_anothers(path)
                && path.exists()
            {
                self.follow(path);
            }
            match hook.said {
                Said::Prompt => {
                    self.hint = Some(Evidence::new(Source::Hook, hook.name));
                }
                Said::Ended => self.ended = Some((hook.name, Instant::now())),
                Said::Began => self.ended = None,
                Said::Other => {}
            }
        }
        !lines.is_empty()
    }

    /// Looks for the transcript where it is not known, or where a message does
    /// not appear in the one that is.
    fn find(&mut self) {
        let Some(place) = self.place.clone() else {
            return;
        };
        let overdue = self
            .pending
            .iter()
            .any(|p| p.since.elapsed() > ELSEWHERE_AFTER);
        let pause = self.pending.iter().map(|p| p.since.elapsed() / 8).min();
        let pause = pause.map_or(LOOK_FOR_IT, |pause| pause.clamp(LOOK_FOR_OURS, LOOK_SELDOM));
        let waited = self.looked.is_none_or(|at| at.elapsed() > pause);
        if (self.tail.is_some() && !overdue) || !waited {
            return;
        }
        self.looked = Some(Instant::now());
        let since = self
            .life
            .as_ref()
            .map_or(SystemTime::now(), |life| life.since);
        let since = since
            .checked_sub(CLOCK_SLACK)
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let mut found = place::candidates(&self.pattern, place.form, since, &self.folder);
        let current = self.tail.as_ref().map(|tail| tail.path.clone());
        found.retain(|found| {
            let grown = length(&found.path) > self.before.get(&found.path).copied().unwrap_or(0);
            grown && Some(&found.path) != current.as_ref() && !self.is_anothers(&found.path)
        });
        let holds = |found: &&Found| {
            let at = self.before.get(&found.path).copied().unwrap_or(0);
            let said = past::users(&found.path, at, Reader::new(place.form));
            let mut pending = self.pending.iter();
            pending.any(|pending| said.iter().any(|said| is_said(said, &pending.text)))
        };
        let choice = found.iter().find(holds).cloned();
        // Without a message of ours only one that is alone is surely its own, unless
        // all conversations lie there, whoever has them.
        let may_be = place.form != Form::Crabtalk && self.tail.is_none() && self.pending.is_empty();
        let alone = (may_be && found.len() == 1).then(|| found[0].clone());
        let (seen, since) = self
            .alone
            .take()
            .unwrap_or((PathBuf::new(), Instant::now()));
        self.alone = alone.as_ref().map(|found| {
            let is_same = found.path == seen;
            (
                found.path.clone(),
                if is_same { since } else { Instant::now() },
            )
        });
        let waited = self
            .alone
            .as_ref()
            .is_some_and(|(_, since)| since.elapsed() > UNCLAIMED);
        let alone = alone.filter(|_| waited);
        if let Some(found) = choice.or(alone) {
            self.follow(&found.path);
            self.rename(found.session);
        }
    }

    fn follow(&mut self, path: &Path) {
        self.claim(path);
        let at = self.before.get(path).copied().unwrap_or(0);
        self.compacted_at = at;
        self.tail = Some(Tail::new(path, at));
    }

    fn rename(&mut self, name: String) {
        if self.name == name || name.is_empty() {
            return;
        }
        self.name.clone_from(&name);
        if self.life.as_ref().is_some_and(|life| life.is_ready) {
            let evidence = Evidence::new(Source::Transcript, "its head names the session");
            self.tell(What::Session { session: name }, evidence);
        }
    }

    fn read_transcript(&mut self) -> bool {
        let (Some(mut tail), Some(place)) = (self.tail.take(), self.place.as_ref()) else {
            return false;
        };
        let reader = Reader::new(place.form);
        let (lines, _) = tail.step();
        let at = tail.at();
        self.tail = Some(tail);
        for record in lines.iter().flat_map(|line| reader.read(line)) {
            if let Record::Head { session, .. } = &record {
                self.rename(session.clone());
            }
            if let Record::Call { tool, .. } = &record {
                let detail = format!("a call of {tool} without a result");
                self.hint = Some(Evidence::new(Source::Transcript, detail));
            }
            if let Record::Result { id } = &record
                && self.live.as_ref().and_then(|live| live.call.as_ref()) == Some(id)
            {
                self.prompt_gone("its call has a result", Source::Transcript);
            }
            for step in self.turns.take(record) {
                self.step(step, at);
            }
        }
        if !lines.is_empty() && self.turns.is_busy && !self.is_compressing {
            let evidence = Evidence::new(Source::Transcript, format!("{} lines", lines.len()));
            self.tell(What::Progress, evidence);
        }
        !lines.is_empty()
    }

    fn step(&mut self, step: Step, at: u64) {
        match step {
            Step::Began(name) if !self.is_compressing => {
                self.cut_short = None;
                self.ended = None;
                self.tell(What::TurnBegan, Evidence::new(Source::Transcript, name));
            }
            Step::User(text) => self.seen(&text),
            Step::Ended(turn, name) if !self.is_compressing => self.told_end(turn, name, at),
            Step::Compacted => {
                self.compactions += 1;
                self.compacted_at = at;
            }
            Step::Began(_) | Step::Ended(..) => {}
        }
    }

    fn seen(&mut self, text: &str) {
        let said = squeezed(text);
        let Some(at) = self
            .pending
            .iter()
            .position(|pending| is_said(&said, &pending.text))
        else {
            return;
        };
        let pending = self.pending.remove(at);
        self.seen.push_back(pending.id.clone());
        if self.seen.len() > SEEN {
            self.seen.pop_front();
        }
        let evidence = Evidence::new(Source::Transcript, "a user's turn with this text");
        self.tell(What::Seen { id: pending.id }, evidence);
    }

    fn told_end(&mut self, mut turn: Turn, name: &str, at: u64) {
        turn.transcript_bytes = Some(at.saturating_sub(self.compacted_at));
        let evidence = match self.ended.take() {
            Some((hook, _)) => Evidence::new(Source::Hook, format!("{hook}; transcript: {name}")),
            None => Evidence::new(Source::Transcript, name),
        };
        self.cut_short = None;
        self.prompt_gone("its turn ended", evidence.source);
        self.tell(What::TurnEnded(turn), evidence);
    }

    /// Takes the prompt away that waited.
    pub(crate) fn prompt_gone(&mut self, how: &str, source: Source) {
        if let Some(live) = self.live.take() {
            self.gone += 1;
            let how = live.answer.unwrap_or_else(|| how.to_owned());
            let id = live.prompt.id;
            let evidence = Evidence::new(source, how.clone());
            self.tell(What::PromptGone { id, how }, evidence);
        }
    }

    /// Ends a turn of which a hook alone says that it ended.
    fn end_by_hook(&mut self) {
        let Some((hook, at)) = &self.ended else {
            return;
        };
        if at.elapsed() < HOOK_AHEAD {
            return;
        }
        let evidence = Evidence::new(Source::Hook, hook.clone());
        self.ended = None;
        self.end_turn(None, evidence);
    }

    /// Ends the turn in flight, if there is one, on other evidence than the
    /// transcript's.
    pub(crate) fn end_turn(&mut self, error: Option<String>, evidence: Evidence) {
        let bytes = self
            .tail
            .as_ref()
            .map(|tail| tail.at().saturating_sub(self.compacted_at));
        if let Some(mut turn) = self.turns.end(error, None) {
            turn.transcript_bytes = bytes;
            self.cut_short = None;
            self.prompt_gone("its turn ended", evidence.source);
            self.tell(What::TurnEnded(turn), evidence);
        }
    }

    /// Lays an event ready for the watcher.
    pub(crate) fn tell(&mut self, what: What, mut evidence: Evidence) {
        const MAX_DETAIL_BYTES: usize = 1 << 10;
        evidence.detail = cut(&evidence.detail, MAX_DETAIL_BYTES).to_owned();
        let is_progress = |what: &What| matches!(what, What::Progress);
        if is_progress(&what) && self.found.iter().any(|event| is_progress(&event.what)) {
            return;
        }
        let of_turn = matches!(what, What::TurnBegan | What::TurnEnded(_));
        match &mut self.held {
            Some(held) if of_turn => held.push_back(Event { what, evidence }),
            _ => self.found.push_back(Event { what, evidence }),
        }
    }

    /// Tells what was held back.
    pub(crate) fn release(&mut self) {
        self.found.extend(self.held.take().into_iter().flatten());
    }

    pub(super) fn mark(&self) -> Mark {
        let at = match &self.tail {
            Some(tail) => At {
                file: tail.path.clone(),
                at: tail.at(),
                since: now_ms(),
            },
            None => At {
                since: now_ms(),
                ..At::default()
            },
        };
        Mark(serde_json::to_string(&at).unwrap_or_default())
    }

    /// Whether the transcript is followed: what it does not say did not happen.
    pub(crate) fn is_followed(&self) -> bool {
        self.tail.is_some()
    }

    /// A number of the transcript's state, for a probe.
    pub(super) fn length(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| length(&tail.path))
    }

    /// The file of a session, where it is still there.
    pub(super) fn file_of(&self, session: &str) -> Option<Found> {
        let place = self.place.as_ref()?;
        place::of_session(&self.pattern, place.form, session)
    }
}

/// Whether a user's turn is this message: an agent may put words around it.
fn is_said(said: &str, message: &str) -> bool {
    !message.is_empty() && said.contains(message)
}

/// A kind's pattern of files, for this home and folder.
fn pattern(files: &str, home: &Path, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let slashes = folder.trim_start_matches('/').replace(['/', ':'], "-");
    let dashes = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    files
        .replace("{home}", &home.display().to_string())
        .replace("{slashes}", &slashes)
        .replace("{dashes}", &folder.chars().map(dashes).collect::<String>())
}

fn now() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}
