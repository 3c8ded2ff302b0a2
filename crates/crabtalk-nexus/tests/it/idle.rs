//! What NEXUS costs while nothing happens, and how soon it answers when
//! something does.

use crate::double::{Line, Tap};
use crate::rig::{Rig, is_quiet, say};
use crabtalk_nexus::world::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

fn no_tap() -> Tap {
    Arc::new(|| false)
}

/// Seconds that this thread has had a core, which is all of the supervisor's while
/// nothing is written; `None` where the system does not say.
fn used_secs() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(11).map(str::parse::<u64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    Some((user + system) / rustix::param::clock_ticks_per_second())
}

/// A day of fifty agents without work: no entry, and of the machine far less than
/// a hundredth of a core.
#[tokio::test(start_paused = true)]
async fn fifty_idle_agents_cost_nothing() {
    let team: String = (0..50).map(|n| format!("[agent.A{n}]\n")).collect();
    let rig = Rig::new(&team);
    let (commands, asked) = mpsc::channel(8);
    let entries = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&entries);
    let supervisor = rig.supervisor(&no_tap()).heard_by(Box::new(move |_, _| {
        heard.fetch_add(1, Ordering::SeqCst);
    }));
    let admin = async {
        while !is_quiet(&commands).await {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        // Their checkpoints come one by one.
        tokio::time::sleep(Duration::from_secs(600)).await;
        let (before, used) = (entries.load(Ordering::SeqCst), used_secs());
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        if let (Some(before), Some(now)) = (used, used_secs()) {
            assert!(now - before < 86, "{} seconds", now - before);
        }
        entries.load(Ordering::SeqCst) - before
    };
    let new = tokio::select! {
        result = supervisor.run(asked, std::future::pending()) => panic!("{result:?}"),
        new = admin => new,
    };
    // That the idle time is over is one, for each of them.
    assert!(new <= 50, "{new} entries while nothing happened");
}

/// What rings is answered when it rings: no look now and then is in between.
#[tokio::test(start_paused = true)]
async fn prompt_is_answered_at_once_and_once() {
    let rig = Rig::new("[rules]\nallow = [\"bash(cargo test)\"]\n[agent.A]\nkind = \"double\"\n");
    let (commands, asked) = mpsc::channel(8);
    let supervisor = rig.supervisor(&no_tap());
    let admin = async {
        while !is_quiet(&commands).await {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let text = "@A [X]: prompt cargo test".into();
        say(&commands, Command::AddTask { text }).await;
        while !is_quiet(&commands).await {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    };
    tokio::select! {
        result = supervisor.run(asked, std::future::pending()) => panic!("{result:?}"),
        () = admin => {}
    }
    let mut asked_at = None;
    let mut pressed = 0;
    for line in rig.transcript("A") {
        match line {
            Line::User { text, at, .. } if text.contains("prompt") => asked_at = Some(at),
            Line::Pressed { at, allow, .. } => {
                assert!(allow && at - asked_at.unwrap() <= 100);
                pressed += 1;
            }
            Line::User { .. } | Line::Died { .. } | Line::Compressed { .. } => {}
        }
    }
    assert_eq!(pressed, 1);
}
