//! What waits for a disk that takes nothing.
//!
//! Invariants: what was not written is not done; what happens meanwhile waits in
//! its order, which is no more than what was on its way: agents are not listened
//! to, and commands are refused with the reason.

use super::{Reply, Supervisor};
use crate::journal;
use crate::world::{Input, Output};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Until the disk is tried again: a person needs longer to make room.
const AGAIN: Duration = Duration::from_secs(2);

/// A step that is not on disk yet.
pub(super) struct Held {
    out: Output,
    reply: Reply,
    error: journal::Error,
    since: Instant,
    again_at: Instant,
    waiting: VecDeque<(Input, Reply)>,
}

impl Held {
    pub(super) fn again_at(&self) -> Instant {
        self.again_at
    }

    /// Calls that were on their way come to something, and their steps wait.
    pub(super) fn waits(&mut self, input: Input, reply: Reply) {
        self.waiting.push_back((input, reply));
    }

    pub(super) fn why(&self) -> String {
        let error = &self.error;
        format!("{error}; NEXUS does nothing until it can write down what it does")
    }
}

impl Supervisor {
    /// What could not be written waits for the disk, or ends NEXUS.
    pub(super) fn hold(
        &mut self,
        out: Output,
        reply: Reply,
        error: journal::Error,
    ) -> Result<(), journal::Error> {
        if !error.may_pass() {
            return Err(error);
        }
        let now = Instant::now();
        let held = Held {
            out,
            reply,
            error,
            since: now,
            again_at: now + AGAIN,
            waiting: VecDeque::new(),
        };
        let why = held.why();
        self.held = Some(held);
        self.remark(why);
        Ok(())
    }

    /// Tries the disk again, and goes on where it takes what waits.
    pub(super) fn try_again(&mut self) -> Result<(), journal::Error> {
        let Some(mut held) = self.held.take() else {
            return Ok(());
        };
        match self.write_down(&held.out) {
            Err(error) if error.may_pass() => {
                held.error = error;
                held.again_at = Instant::now() + AGAIN;
                self.held = Some(held);
                return Ok(());
            }
            Err(error) => return Err(error),
            Ok(()) => self.written(held.out, held.reply)?,
        }
        let (secs, error) = (held.since.elapsed().as_secs(), held.error);
        self.step(Input::Wrote(format!("after {secs} s: {error}")), None)?;
        for (input, reply) in held.waiting {
            self.step(input, reply)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::absent::Absent;
    use crate::backend::Backend;
    use crate::clock::Clock;
    use crate::config::Team;
    use crate::journal::{Bounds, EVENTS, Journal, entries};
    use crate::name::Name;
    use crate::supervisor::{Asked, Supervisor};
    use crate::world::{Answer, Command, World};
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::{self, Write};
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::sync::{mpsc, oneshot};

    async fn put(commands: &mpsc::Sender<Asked>, text: &str) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let text = text.to_owned();
        let command = Command::AddTask { text };
        commands.send((command, reply)).await.unwrap();
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_disk_is_told_and_nothing_is_done_that_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let team: Team = toml::from_str("root = \"/nowhere\"\n[agent.A]\n").unwrap();
        let journal = Journal::open(folder.path(), Bounds::default(), |_, _, _| {}).unwrap();
        let is_full = Arc::clone(&journal.disk_is_full);
        let absent: Arc<dyn Backend> = Arc::new(Absent::new("not here"));
        let backends = BTreeMap::from([(Name::new("a").unwrap(), absent)]);
        let heard = Arc::new(Mutex::new(String::new()));
        let told = Arc::clone(&heard);
        let supervisor = Supervisor::new(World::new(team), journal, backends, Clock::system())
            .heard_by(Box::new(move |entry, _| {
                told.lock().unwrap().push_str(&format!("{}\n", entry.why));
            }));
        let (commands, asked) = mpsc::channel(8);
        let admin = async {
            assert!(put(&commands, "@A [X]: one").await.await.is_ok());
            is_full.store(true, Ordering::SeqCst);
            let mut second = put(&commands, "@A [X]: two").await;
            let refused = put(&commands, "@A [X]: three").await.await.unwrap();
            let Answer::Refused { why } = refused else {
                panic!("{refused:?}");
            };
            assert!(why.contains("events.jsonl"), "{why}");
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(second.try_recv().is_err(), "it is not on disk");
            is_full.store(false, Ordering::SeqCst);
            assert!(matches!(second.await, Ok(Answer::Done { .. })));
            assert!(put(&commands, "@A [X]: four").await.await.is_ok());
        };
        tokio::select! {
            result = supervisor.run(asked, std::future::pending()) => panic!("{result:?}"),
            () = admin => {}
        }
        let mut log = String::new();
        entries(folder.path(), |entry| {
            log.push_str(&format!("{}\n", entry.why))
        })
        .unwrap();
        for (text, is_there) in [
            ("one", true),
            ("two", true),
            ("three", false),
            ("four", true),
        ] {
            assert_eq!(log.contains(&format!("[X]: {text}")), is_there, "{log}");
        }
        assert!(log.contains("can be written again"), "{log}");
        let heard = heard.lock().unwrap();
        assert!(heard.contains("NEXUS does nothing until"), "{heard}");
    }

    /// A page that is removed, cut, or written into while NEXUS runs costs nothing that
    /// was announced: the next one begins with all of it.
    #[tokio::test(start_paused = true)]
    async fn what_was_announced_outlives_a_log_that_somebody_takes_away() {
        type Harm = fn(&Path) -> io::Result<()>;
        let harms: [Harm; 5] = [
            |log| fs::remove_file(log),
            |log| fs::rename(log, log.with_extension("away")),
            |log| fs::write(log, ""),
            |log| {
                fs::File::options()
                    .append(true)
                    .open(log)?
                    .write_all(b"mine\n")
            },
            |log| fs::remove_file(log).and_then(|()| fs::create_dir(log)),
        ];
        for (n, harm) in harms.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let team: Team = toml::from_str("root = \"/nowhere\"\n[agent.A]\n").unwrap();
            let journal = Journal::open(folder.path(), Bounds::default(), |_, _, _| {}).unwrap();
            let world = World::new(team.clone());
            let heard = Arc::new(Mutex::new(String::new()));
            let told = Arc::clone(&heard);
            let supervisor = Supervisor::new(world, journal, BTreeMap::new(), Clock::system())
                .heard_by(Box::new(move |entry, _| {
                    told.lock().unwrap().push_str(&entry.why);
                }));
            let (commands, asked) = mpsc::channel(8);
            let admin = async {
                assert!(put(&commands, "@A [X]: one").await.await.is_ok());
                harm(&folder.path().join(EVENTS)).unwrap();
                assert!(put(&commands, "@A [X]: two").await.await.is_ok());
            };
            tokio::select! {
                result = supervisor.run(asked, std::future::pending()) => panic!("{result:?}"),
                () = admin => {}
            }
            let (world, _journal) = crate::start::restored(team, folder.path()).unwrap();
            let (_, whole) = world.whole();
            let tasks: Vec<&str> = whole.tasks.values().map(|t| t.body.as_str()).collect();
            assert_eq!(tasks, ["one", "two"], "harm {n}");
            let mut log = String::new();
            entries(folder.path(), |entry| log.push_str(&entry.why)).unwrap_or_default();
            assert!(log.contains("[X]: two"), "{n}: {log}");
            let heard = heard.lock().unwrap();
            assert!(heard.contains("it goes on here"), "{n}: {heard}");
        }
    }
}
