//! A supervisor that ends at any instant loses nothing and doubles nothing.

mod compression;

use crate::rig::{Rig, is_quiet, say};
use crabtalk_nexus::world::Command;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

const TEAM: &str =
    "compress = \"auto\"\n[rules]\nallow = [\"bash(cargo *)\"]\n[agent.A]\n[agent.B]\n";

/// What ADMIN says.
const SAYS: [&str; 3] = [
    "@A [FIRST]: ask B",
    "@B [SECOND]: prompt cargo test",
    "@A [THIRD]: die",
];

const TASKS: [&str; 3] = ["@ANY [T1]: one", "@A [T2]: two", "@ANY [T3]: three"];

/// Runs the team to its rest. At the `at`-th thing that is done, everything
/// ends and begins anew. How many things there were.
async fn play(rig: &Rig, at: usize) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let crash = Arc::new(Notify::new());
    let tap = {
        let (count, crash) = (Arc::clone(&count), Arc::clone(&crash));
        Arc::new(move || {
            let now = count.fetch_add(1, Ordering::SeqCst) + 1;
            if now == at {
                crash.notify_one();
            }
            now == at
        })
    };
    loop {
        let (commands, asked) = mpsc::channel(8);
        let (heard, tap) = (Arc::clone(&tap), Arc::clone(&tap) as crate::double::Tap);
        let supervisor = rig.supervisor(&tap).heard_by(Box::new(move |_, _| {
            let _ = heard();
        }));
        let admin = async {
            let all = SAYS.iter().map(|text| (false, text));
            for (is_task, text) in all.chain(TASKS.iter().map(|text| (true, text))) {
                let text = (*text).to_owned();
                // What was not answered is said again, unless the log has it.
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
            () = crash.notified() => {}
            result = supervisor.run(asked, std::future::pending()) => result.unwrap(),
            () = admin => return count.load(Ordering::SeqCst),
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
async fn check_26_a_supervisor_killed_at_any_step_loses_and_doubles_nothing() {
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
