//! The state of an agent's session, read from its transcript and hooks.
//!
//! Invariants: a submission is told as seen once, and before the end of its
//! turn; a prompt goes before the turn ends in which it was asked; a file is one
//! agent's; what is found waits in a bounded list.

mod locate;
mod past;
mod read;

use locate::pattern;

use super::{Spec, slug};
use crate::backend::{Event, Mark, Prompt};
use crate::terminal::kind::{HookNames, Place};
use crate::terminal::terminals::Claims;
use crate::terminal::tmux::windows::Window;
use crate::terminal::transcript::place::{self, Found};
use crate::terminal::transcript::tail::{Tail, length};
use crate::terminal::transcript::turns::Turns;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Events that wait for the watcher; more are read when it took them.
const FOUND: usize = 512;

/// How long a message is expected any moment.
const ANY_MOMENT: Duration = Duration::from_secs(20);

/// How far before the launch a file may have changed that the launch wrote:
/// clocks of file systems are coarse.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// Bytes at the end of a transcript that are read to know its state.
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
    /// A command is running whose turns are not reported.
    pub(crate) is_compressing: bool,
    /// A turn that a call cancelled may leave no record of its end.
    pub(crate) cut_short: Option<Instant>,
    pub(crate) moved: Instant,
    pub(crate) found: VecDeque<Event>,
    /// The agent was found again, and its transcript is read on once the supervisor has
    /// asked about the message that was with it: its arrival is told first.
    waits: bool,
}

impl Session {
    pub(super) fn new(spec: &Spec, (home, crabtalk): (&Path, &Path), claims: Claims) -> Self {
        let folder = crate::terminal::tmux::windows::real(&spec.folder);
        let place = spec.kind.transcript.clone();
        let files = place.as_ref().map_or("", |place| place.files.as_str());
        Self {
            pattern: pattern(files, home, &folder)
                .replace("{crabtalk}", &crabtalk.display().to_string())
                .replace("{name}", &slug(&spec.name)),
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
            pending: Vec::new(),
            seen: VecDeque::new(),
            late_until: None,
            live: None,
            prompts: 0,
            epoch: now().as_nanos(),
            gone: 0,
            ended: None,
            is_compressing: false,
            cut_short: None,
            moved: Instant::now(),
            found: VecDeque::new(),
            waits: false,
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
        self.waits = life.is_found;
        let late = self.place.as_ref().filter(|_| life.is_found);
        self.late_until = late.map(|place| Instant::now() + Duration::from_secs(place.late_secs));
        if let Some(found) = file {
            self.take_up(&found.path);
            self.name = found.session;
        }
        if !life.is_found {
            // Turns in flight ended with the process.
            self.turns.drop_turn();
        }
        self.life = Some(life);
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

    /// Reads on.
    pub(crate) fn release(&mut self) {
        self.waits = false;
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
        if self.waits {
            return hooked;
        }
        self.find();
        let moved = self.read_transcript();
        self.end_by_hook();
        if moved {
            self.moved = Instant::now();
        }
        hooked || moved || self.found.len() != before
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

    /// Whether another call was opened beside the one that the live prompt is
    /// exactly about.
    pub(crate) fn is_outdated(&self) -> bool {
        let live = self.live.as_ref();
        self.turns.calls.len() > 1
            && live.is_some_and(|live| live.prompt.exact && live.answer.is_none())
    }

    /// Whether the transcript is followed: what it does not say did not happen.
    pub(crate) fn is_followed(&self) -> bool {
        self.tail.is_some()
    }

    /// A number of the transcript's state, for a probe.
    pub(crate) fn length(&self) -> u64 {
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

fn now() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}
