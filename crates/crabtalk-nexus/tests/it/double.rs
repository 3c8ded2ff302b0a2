//! An agent that does as its messages say, and whose transcript outlives
//! everybody: a strict double behind the port.
//!
//! It fails the test where NEXUS types into a working agent, submits a message
//! twice, or answers a prompt that does not wait.

mod transcript;

pub(crate) use transcript::{Line, lines};

use crabtalk_nexus::backend::{
    Answered, Backend, Call, Compressed, Event, Events, Evidence, Exit, Failure, Launch, Look,
    Mark, Probe, Prompt, Reply, Source, Submission, Submitted, Turn, What,
};
use crabtalk_nexus::clock::Clock;
use crabtalk_nexus::grammar;
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use transcript::{LastTurn, body, turn_of};

/// Called at each thing done, before and after: a crash may be put there.
pub(crate) type Tap = Arc<dyn Fn() -> bool + Send + Sync>;

pub(crate) struct Double {
    name: String,
    path: PathBuf,
    clock: Clock,
    tap: Tap,
    state: Arc<Mutex<State>>,
    wake: Arc<Notify>,
}

#[derive(Default)]
struct State {
    lines: Vec<Line>,
    alive: bool,
    /// The turn that is told of: its place in the transcript.
    followed: Option<usize>,
    /// Told of it: seen, prompt, end.
    told: BTreeSet<&'static str>,
    ready: VecDeque<Event>,
}

fn proof(detail: impl Into<String>) -> Evidence {
    Evidence::new(Source::Transcript, detail)
}

impl Double {
    pub(crate) fn new(name: &str, folder: &Path, clock: Clock, tap: Tap) -> Self {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(format!("{name}.jsonl"));
        let state = State {
            lines: lines(&path),
            alive: folder.join(format!("{name}.alive")).exists(),
            ..State::default()
        };
        Self {
            name: name.into(),
            path,
            clock,
            tap,
            state: Arc::new(Mutex::new(state)),
            wake: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn alive(&self, alive: bool) {
        let path = self.path.with_extension("alive");
        if alive {
            fs::write(path, "").unwrap();
        } else {
            let _ = fs::remove_file(path);
        }
        self.state().alive = alive;
    }

    fn write(&self, line: Line) {
        let mut file = fs::File::options()
            .append(true)
            .create(true)
            .open(&self.path)
            .unwrap();
        writeln!(file, "{}", serde_json::to_string(&line).unwrap()).unwrap();
        self.state().lines.push(line);
        self.wake.notify_one();
    }

    /// A place where everything may end.
    async fn tapped(&self) {
        if (self.tap)() {
            std::future::pending::<()>().await;
        }
    }

    fn press(&self, prompt: &Prompt, allow: bool) -> Answered {
        let waits = turn_of(&self.state().lines).is_some_and(|turn| turn.waits(&prompt.id));
        if !waits {
            return Answered::Stale(proof("no such prompt"));
        }
        self.write(Line::Pressed {
            id: prompt.id.clone(),
            allow,
            at: self.clock.now(),
        });
        Answered::Taken(proof("pressed"))
    }
}

impl Double {
    /// What its model would answer.
    fn answer(&self, turn: &LastTurn) -> String {
        let me = &self.name;
        let message = grammar::read_one(&turn.text).expect("NEXUS writes messages");
        let from = message.header.from.to_string();
        let topic = message.header.topic.map(|topic| topic.to_string());
        let topic = topic.unwrap_or_else(|| "GENERAL".into());
        match topic.as_str() {
            "BOOTSTRAP" => {
                format!("@{me} → @NEXUS [BOOTSTRAP]: Identity confirmed. Context loaded. Ready")
            }
            "REFLECTION" => format!("@{me} → @NEXUS [REFLECTION]: Consolidated."),
            _ => match message.body.strip_prefix("ask ") {
                Some(whom) => format!(
                    "@{me} → @{whom} [Q-{topic}]: what of {topic}?\n\
                     @{me} → @{from} [{topic}]: done: asked {whom}"
                ),
                // An answer of another one is the end of it.
                None if from != "NEXUS" && topic.starts_with("RE-") => {
                    format!("@{me} → @ADMIN [SEEN-{topic}]: heard")
                }
                None if topic.starts_with("Q-") => {
                    format!("@{me} → @{from} [RE-{topic}]: well")
                }
                None if turn.denied => format!("@{me} → @{from} [{topic}]: failed: refused"),
                None => format!("@{me} → @{from} [{topic}]: done"),
            },
        }
    }

    /// What there is to tell now.
    fn collect(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        let Some(turn) = turn_of(&state.lines).filter(|t| state.followed == Some(t.index)) else {
            return;
        };
        if !state.alive || turn.died {
            return;
        }
        let tell = |state: &mut State, once, what| {
            if state.told.insert(once) {
                let evidence = proof(format!("line {}", turn.index));
                state.ready.push_back(Event { what, evidence });
            }
        };
        tell(&mut state, "began", What::TurnBegan);
        tell(
            &mut state,
            "seen",
            What::Seen {
                id: turn.id.clone(),
            },
        );
        if let Some(prompt) = &turn.prompt {
            tell(&mut state, "prompt", What::Prompt(prompt.clone()));
        }
        if turn.ends_at.is_some_and(|at| at <= now) {
            let text = body(&turn.text);
            if text == "die" && turn.attempt == 0 {
                drop(state);
                self.write(Line::Died { id: turn.id });
                self.alive(false);
                let mut state = self.state();
                state.followed = None;
                let exit = Exit {
                    signal: Some(11),
                    ..Exit::default()
                };
                let what = What::Died(exit);
                let evidence = Evidence::new(Source::Process, "signal 11");
                state.ready.push_back(Event { what, evidence });
                return;
            }
            drop(state);
            let ended = Turn {
                output: self.answer(&turn),
                ..Turn::default()
            };
            let mut state = self.state();
            tell(&mut state, "ended", What::TurnEnded(ended));
            state.followed = None;
        }
    }

    fn follow(&self, index: usize) {
        let mut state = self.state();
        state.followed = Some(index);
        state.told.clear();
        drop(state);
        self.wake.notify_one();
    }

    /// Whether the process ended in this turn.
    fn died_in(&self, index: usize) -> bool {
        let state = self.state();
        let rest = state.lines[index + 1..].iter();
        let mut rest = rest.take_while(|line| !matches!(line, Line::User { .. }));
        rest.any(|line| matches!(line, Line::Died { .. }))
    }

    /// Reports a turn whose end is not recorded.
    fn tell_end(&self, id: &str) {
        let ended = Turn {
            error: Some("the agent ended in the midst of it".into()),
            ..Turn::default()
        };
        let seen = What::Seen { id: id.to_owned() };
        for what in [What::TurnBegan, seen, What::TurnEnded(ended)] {
            let evidence = proof("its turn has no end");
            self.state().ready.push_back(Event { what, evidence });
        }
        self.wake.notify_one();
    }

    fn next_end(&self) -> Option<u64> {
        let state = self.state();
        let turn = turn_of(&state.lines)?;
        let waits = state.followed == Some(turn.index);
        turn.ends_at.filter(|_| waits && state.alive)
    }
}

/// The double as the supervisor holds it.
pub(crate) struct Shared(pub(crate) Arc<Double>);

impl Backend for Shared {
    fn events(&self) -> Events {
        let double = Arc::clone(&self.0);
        Box::pin(futures_util::stream::unfold(double, async |double| {
            loop {
                double.collect();
                let ready = double.state().ready.pop_front();
                if let Some(event) = ready {
                    return Some((event, double));
                }
                let until = double.next_end();
                tokio::select! {
                    () = double.wake.notified() => {}
                    () = double.clock.until(until) => {}
                }
            }
        }))
    }

    fn launch(&self, launch: Launch) -> Call<'_, ()> {
        Box::pin(async move {
            let double = &self.0;
            double.tapped().await;
            let adopting = matches!(launch, Launch::Adopt { .. });
            if adopting && !double.state().alive {
                return Err(Failure::NotRunning("no window".into()));
            }
            double.alive(true);
            let now = double.clock.now();
            let busy = turn_of(&double.state().lines)
                .is_some_and(|turn| !turn.died && turn.ends_at.is_none_or(|at| at > now));
            let ready = What::Ready {
                session: format!("s-{}", double.name),
                busy: adopting && busy,
            };
            let evidence = Evidence::new(Source::Process, "started");
            double.state().ready.push_back(Event {
                what: ready,
                evidence,
            });
            double.wake.notify_one();
            double.tapped().await;
            Ok(())
        })
    }

    fn mark(&self) -> Call<'_, Mark> {
        Box::pin(async {
            self.0.tapped().await;
            Ok(Mark(self.0.state().lines.len().to_string()))
        })
    }

    fn submit(&self, message: Submission) -> Call<'_, Submitted> {
        Box::pin(async move {
            let double = &self.0;
            double.tapped().await;
            let now = double.clock.now();
            let is_it = |line: &Line| matches!(line, Line::User { id, .. } if *id == message.id);
            let known = double.state().lines.iter().position(is_it);
            if let Some(index) = known {
                assert!(
                    message.again,
                    "{} submitted twice: {message:?}",
                    double.name
                );
                if double.died_in(index) {
                    double.tell_end(&message.id);
                } else {
                    double.follow(index);
                }
                return Ok(Submitted::AlreadyThere(proof(format!("line {index}"))));
            }
            let turn = turn_of(&double.state().lines);
            let works =
                turn.is_some_and(|turn| !turn.died && turn.ends_at.is_none_or(|at| at > now));
            assert!(!works, "{} was interrupted by {message:?}", double.name);
            double.write(Line::User {
                id: message.id,
                text: message.text,
                at: now,
            });
            let index = double.state().lines.len() - 1;
            double.follow(index);
            double.tapped().await;
            Ok(Submitted::Sent(proof(format!("line {index}"))))
        })
    }

    fn reply<'a>(&'a self, prompt: &'a Prompt, reply: &'a Reply) -> Call<'a, Answered> {
        Box::pin(async move {
            self.0.tapped().await;
            let answered = self.0.press(prompt, !matches!(reply, Reply::Deny(_)));
            self.0.tapped().await;
            Ok(answered)
        })
    }

    fn probe(&self) -> Call<'_, Probe> {
        Box::pin(async {
            let state = self.0.state();
            Ok(Probe {
                alive: state.alive,
                digest: state.lines.len().to_string(),
                prompt: turn_of(&state.lines).and_then(|turn| turn.prompt),
                evidence: proof("a look"),
            })
        })
    }

    fn compress(&self) -> Call<'_, Compressed> {
        Box::pin(async { panic!("nothing is compressed") })
    }

    fn cancel(&self) -> Call<'_, bool> {
        Box::pin(async { Ok(false) })
    }

    fn stop(&self) -> Call<'_, ()> {
        Box::pin(async {
            self.0.alive(false);
            let mut state = self.0.state();
            state.followed = None;
            Ok(())
        })
    }

    fn look(&self) -> Call<'_, Look> {
        Box::pin(async { Ok(Look::default()) })
    }
}
