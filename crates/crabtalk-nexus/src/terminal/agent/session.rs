//! The state of an agent's session, read from its transcript and hooks.
//!
//! Invariants: a submission is reported as seen once, before the end of its
//! turn; a prompt closes before the end of the turn in which it opened; a file belongs to one
//! agent; found events wait in a bounded list.

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

/// Maximum events for the watcher; reading continues after it took them.
const FOUND: usize = 512;

/// How long the arrival of a message is expected soon.
const ANY_MOMENT: Duration = Duration::from_secs(20);

/// How far before the launch a file written by the launch may be dated, since file
/// times are coarse.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// Bytes at the end of a transcript that are read to restore the state.
const REPLAY_BYTES: u64 = 8 << 20;

/// One life of the agent: a process in a window.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) window: Window,
    pub(crate) since: SystemTime,
    /// Whether it ended or is being ended.
    pub(crate) is_over: bool,
    /// Whether it accepts input, which was reported.
    pub(crate) is_ready: bool,
    /// Whether it was already running when it was found.
    pub(crate) is_found: bool,
    /// The deadline for readiness.
    pub(crate) deadline: Instant,
}

/// A message that was typed and is not yet in the transcript.
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
    /// The call that the prompt is about, if its result is recorded only afterwards.
    pub(crate) call: Option<String>,
    /// How NEXUS answered the prompt.
    pub(crate) answer: Option<String>,
}

/// The contents of a [`Mark`].
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
    /// The offset of the last compaction in the transcript.
    compacted_at: u64,
    pub(crate) compactions: u64,
    /// Files of other sessions, with their lengths at the launch.
    before: BTreeMap<PathBuf, u64>,
    looked: Option<Instant>,
    pub(crate) pending: Vec<Pending>,
    /// The ids of the last messages that were reported as seen.
    seen: VecDeque<String>,
    /// The time until which a message of an earlier supervisor may still appear.
    late_until: Option<Instant>,
    pub(crate) live: Option<Live>,
    pub(crate) prompts: u64,
    /// Distinguishes prompts of this session from those of an earlier supervisor.
    pub(crate) epoch: u128,
    /// The number of closed prompts: a screen read before the last one closed may still show it.
    pub(crate) gone: u64,
    /// The report of a hook that the turn ended, and its time.
    ended: Option<(String, Instant)>,
    /// Whether a compression command runs, whose turns are not reported.
    pub(crate) is_compressing: bool,
    /// The time of a cancellation; the cancelled turn may leave no record of its end.
    pub(crate) cut_short: Option<Instant>,
    pub(crate) moved: Instant,
    pub(crate) found: VecDeque<Event>,
    /// Whether reading waits until the supervisor has asked about the message in delivery to an agent
    /// that was found again, so that its arrival is reported first.
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

    /// Begins a life with a known transcript, or with one that will be found.
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
            // A turn in flight ended with the process.
            self.turns.drop_turn();
        }
        self.life = Some(life);
    }

    /// Forgets the transcript, because another one begins.
    pub(super) fn forget(&mut self, name: String) {
        if let Some(tail) = self.tail.take() {
            let end = length(&tail.path);
            self.before.insert(tail.path, end);
        }
        self.turns = Turns::default();
        self.compacted_at = 0;
        self.name = name;
    }

    /// Resumes reading.
    pub(crate) fn release(&mut self) {
        self.waits = false;
    }

    /// Whether a message should appear soon.
    pub(crate) fn expects_message(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.since.elapsed() < ANY_MOMENT)
    }

    /// Reads new records; returns whether there were any.
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

    /// Whether another call was opened in addition to the one that the open prompt is
    /// exactly about.
    pub(crate) fn is_outdated(&self) -> bool {
        let live = self.live.as_ref();
        self.turns.calls.len() > 1
            && live.is_some_and(|live| live.prompt.exact && live.answer.is_none())
    }

    /// Whether the transcript is followed, so that unrecorded events did not happen.
    pub(crate) fn is_followed(&self) -> bool {
        self.tail.is_some()
    }

    /// The length of the transcript, for a probe.
    pub(crate) fn length(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| length(&tail.path))
    }

    /// The transcript of a session, if it exists.
    pub(super) fn file_of(&self, session: &str) -> Option<Found> {
        let place = self.place.as_ref()?;
        place::of_session(&self.pattern, place.form, session)
    }
}

/// Whether a user's turn contains this message; an agent may add text around it.
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
