//! A supervisor that ends at any instant loses nothing and doubles nothing.

use crate::double::Tap;
use crate::rig::{Rig, is_quiet, say};
use crabtalk_nexus::supervisor::Supervisor;
use crabtalk_nexus::world::Command;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

const TEAM: &str = "compress = \"auto\"\n[rules]\nallow = [\"bash(cargo test)\"]\n[agent.A]\n\
     [agent.B]\nkind = \"double\"\n";

/// What ADMIN says.
const SAYS: [&str; 3] = [
    "@A [FIRST]: ask B",
    "@B [SECOND]: prompt cargo test",
    "@A [THIRD]: die",
];

const TASKS: [&str; 3] = ["@ANY [T1]: one", "@A [T2]: two", "@ANY [T3]: three"];

/// The end of everything at one of the things that are done.
struct Crash {
    now: Arc<Notify>,
    /// Things that were done.
    count: Arc<AtomicUsize>,
    tap: Tap,
}

impl Crash {
    fn at(at: usize) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let now = Arc::new(Notify::new());
        let (counted, notify) = (Arc::clone(&count), Arc::clone(&now));
        let tap = Arc::new(move || {
            let is_it = counted.fetch_add(1, Ordering::SeqCst) + 1 == at;
            if is_it {
                notify.notify_one();
            }
            is_it
        });
        Self { now, count, tap }
    }

    /// A supervisor whose every deed and entry of the log counts.
    fn supervisor(&self, rig: &Rig) -> Supervisor {
        let heard = Arc::clone(&self.tap);
        rig.supervisor(&self.tap).heard_by(Box::new(move || {
            let _ = heard();
        }))
    }

    async fn comes(&self) {
        self.now.notified().await;
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

/// Runs the team to its rest. At the `at`-th thing that is done, everything
/// ends and restarts. The number of actions.
async fn play(rig: &Rig, at: usize) -> usize {
    let crash = Crash::at(at);
    loop {
        let (commands, asked) = mpsc::channel(8);
        let supervisor = crash.supervisor(rig);
        let admin = async {
            let all = SAYS.iter().map(|text| (false, text));
            for (is_task, text) in all.chain(TASKS.iter().map(|text| (true, text))) {
                let text = (*text).to_owned();
                // An unanswered command is repeated, unless the log has it.
                if rig.is_logged(&text) {
                    continue;
                }
                let command = if is_task {
                    Command::AddTask { text }
                } else {
                    Command::Send { text }
                };
                say(&commands, command).await;
            }
            while !is_quiet(&commands).await {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        };
        tokio::select! {
            biased;
            () = crash.comes() => {}
            result = supervisor.run(asked, std::future::pending()) => result.unwrap(),
            () = admin => return crash.count(),
        }
    }
}

fn check(rig: &Rig, at: usize) {
    let mut all = Vec::new();
    for name in ["A", "B"] {
        let messages = rig.messages(name);
        let once: BTreeSet<_> = messages.iter().collect();
        assert_eq!(once.len(), messages.len(), "{at}: {messages:#?}");
        let place = |topic: &str| messages.iter().position(|m| m.contains(topic));
        if name == "A" {
            assert!(place("[FIRST]") < place("[THIRD]"), "{at}: {messages:#?}");
        }
        all.extend(messages);
    }
    let count = |part: &str| all.iter().filter(|text| text.contains(part)).count();
    for part in ["[FIRST]", "[SECOND]", "[Q-FIRST]", "[RE-Q-FIRST]"] {
        assert_eq!(count(part), 1, "{at} {part}: {all:#?}");
    }
    for part in ["[T1]", "[T2]", "[T3]"] {
        assert_eq!(count(part), 1, "{at} {part}: {all:#?}");
    }
    // The agent ended with it: it is told to carry on, once.
    assert_eq!(count("[THIRD]: die"), 1, "{at}: {all:#?}");
}

#[tokio::test(start_paused = true)]
async fn kill_at_any_step_loses_and_repeats_nothing() {
    let rig = Rig::new(TEAM);
    let steps = play(&rig, usize::MAX).await;
    check(&rig, 0);
    assert!(steps > 100, "{steps}");
    for at in 1..=steps {
        let rig = Rig::new(TEAM);
        play(&rig, at).await;
        check(&rig, at);
    }
}
