//! Bells, silence, and who looks.

use super::rig::{Rig, eventually, tmux};
use crate::backend::{Backend, Launch, Source, What};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a bell may take on a machine that does nothing else; as a rule it takes some
/// milliseconds. Without the hooks it would take a second.
const SOON: Duration = Duration::from_millis(500);

/// Questions to tmux whose time it may take beyond that, on a machine that does more.
const QUESTIONS: u32 = 40;

/// How often a spinner is tried, which one that were told of as silent would be each
/// time.
const SPINS: usize = 5;

fn bells(what: &What) -> Option<u64> {
    match what {
        What::Bell { count, .. } => Some(*count),
        _ => None,
    }
}

#[tokio::test]
async fn check_11_a_bell_in_the_window_that_is_looked_at_is_seen() {
    let Some(rig) = Rig::open("check_11").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    rig.tmux(&["select-window", "-t", "nexus:FE"]);
    // A person's client, within a terminal of another server.
    let inner = format!(
        "tmux -S '{}' attach -t nexus",
        rig.folder.path().join("tmux").display()
    );
    let outer = rig.folder.path().join("outer");
    std::fs::create_dir(&outer).unwrap();
    tmux(
        &outer,
        &[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            &inner,
        ],
    );
    agent
        .until("Held", |what| {
            matches!(what, What::Held { held: true }).then_some(())
        })
        .await;
    let refused = agent.submit("x", "not while somebody looks").await;
    assert!(matches!(refused, crate::backend::Submitted::NotNow(_)));
    rig.tmux(&["send-keys", "-t", "nexus:FE", "-l", "[say:hello]"]);
    rig.tmux(&["send-keys", "-t", "nexus:FE", "Enter"]);
    agent.until("Bell", bells).await;
    tmux(&outer, &["kill-server"]);
    agent
        .until("Held", |what| {
            matches!(what, What::Held { held: false }).then_some(())
        })
        .await;
    agent.say("now").await;
}

#[tokio::test]
async fn check_12_three_bells_between_looks_are_three() {
    let Some(rig) = Rig::open("check_12").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[bells:3]").await;
    let mut heard = 0;
    while heard < 3 {
        heard += agent.until("Bell", bells).await;
    }
    assert_eq!(heard, 3);
}

/// Whatever a program writes, others are seen and answered meanwhile, and so is it once
/// its screen is its own again.
#[tokio::test]
async fn a_flood_in_a_window_holds_nobody_up() {
    const ROUNDS: usize = 2;
    let Some(rig) = Rig::open("a_flood_in_a_window").await else {
        return;
    };
    let (mut floods, mut asks) = (rig.ready("FE").await, rig.ready("DB").await);
    floods.say("[spin]").await;
    let terminal = rig.tmux(&["display-message", "-p", "-t", "nexus:FE", "#{pane_tty}"]);
    let mut seed = 7_u64;
    let noise = std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u8::try_from(seed >> 56).unwrap()
    });
    let noise: Vec<u8> = noise.take(1 << 20).collect();
    let title = "\x1b]2;#{@nexus_agent}|DB|#(touch ran)\x07\x1bkDB\x1b\\";
    let wide = "x".repeat(1 << 20);
    let flood = tokio::task::spawn_blocking(move || {
        use std::io::Write;
        let mut terminal = std::fs::File::options()
            .write(true)
            .open(terminal.trim())
            .unwrap();
        for _ in 0..ROUNDS {
            for part in [&noise, title.as_bytes(), wide.as_bytes()] {
                terminal.write_all(part).unwrap();
            }
        }
        // Its screen as it was before.
        terminal.write_all(b"\x1bc").unwrap();
    });
    asks.say("[tool:echo one]").await;
    let prompt = asks.prompt().await;
    let answered = asks.port.allow(&prompt).await.unwrap();
    assert!(matches!(answered, crate::backend::Answered::Taken(_)));
    asks.ended().await;
    assert_eq!(asks.ran(), ["echo one"]);
    floods.port.probe().await.unwrap();
    floods.port.look().await.unwrap();
    flood.await.unwrap();
    floods.go();
    assert_eq!(floods.ended().await.output, "went on");
    floods.say("[say:still here]").await;
    assert_eq!(floods.ended().await.output, "still here");
}

/// Each event stands in the log, which a program that rings on and on would fill.
#[tokio::test]
async fn a_flood_of_bells_is_told_now_and_then() {
    const BELLS: u64 = 40;
    /// Those are told at once.
    const FIRST: u64 = 8;
    let Some(rig) = Rig::open("a_flood_of_bells").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let root = rig.folder.path().to_owned();
    let tells = move |field| tmux(&root, &["display-message", "-p", "-t", "nexus:FE", field]);
    let terminal = tells("#{pane_tty}");
    let began = Instant::now();
    let rings = tokio::task::spawn_blocking(move || {
        for bell in 1..=BELLS {
            std::fs::write(terminal.trim(), "\x07").unwrap();
            while tells("#{@nexus_bell}").trim().parse() == Ok(bell - 1) {}
        }
    });
    let mut heard = 0;
    while heard < BELLS {
        heard += agent.until("Bell", bells).await;
    }
    rings.await.unwrap();
    assert_eq!(heard, BELLS);
    let events = agent.count(|what| bells(what).is_some());
    let most = began.elapsed().as_secs() + FIRST + 1;
    assert!(events as u64 <= most, "{events} events, at most {most}");
}

#[tokio::test]
async fn check_13_the_bell_that_ends_a_title_is_none() {
    let Some(rig) = Rig::open("check_13").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[title]").await;
    assert_eq!(agent.ended().await.output, "titled");
    agent.say("[say:and a real one]").await;
    assert_eq!(agent.until("Bell", bells).await, 1);
}

#[tokio::test]
async fn check_14_a_spinner_is_never_silent_and_a_probe_sees_that_nothing_moves() {
    let Some(rig) = Rig::open("check_14").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    // On a crowded machine a spinner stands still for a second now and then.
    let silence = ["set-option", "-w", "-t", "nexus:FE", "monitor-silence", "4"];
    rig.tmux(&silence);
    // On one that stood still for longer it was silent, and spins once more.
    let mut silences = 0;
    let first = loop {
        agent.say("[spin]").await;
        let first = agent.port.probe().await.unwrap();
        // Longer than after which a silent one is told of.
        let begin = Instant::now();
        eventually("six seconds of spinning", || {
            begin.elapsed() > Duration::from_secs(6)
        })
        .await;
        let told = agent.count(|what| matches!(what, What::Silent { .. }));
        if told == silences {
            break first;
        }
        silences += 1;
        assert!(told == silences && silences < SPINS, "a spinner is silent");
        agent.go();
        agent.ended().await;
    };
    let probe = agent.port.probe().await.unwrap();
    assert_eq!((probe.alive, probe.busy), (true, Some(true)));
    assert_ne!(first.digest, "");
    agent.go();
    agent.ended().await;
}

#[tokio::test]
async fn check_15_and_16_silence_in_a_turn_is_told_once_and_not_between_turns() {
    let Some(rig) = Rig::open("check_15").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[hang]").await;
    let silent = |what: &What| matches!(what, What::Silent { .. });
    agent
        .until("Silent", |what| silent(what).then_some(()))
        .await;
    assert_eq!(agent.evidence(silent).source, Source::Bell);
    let keys = agent.keys();
    let first = agent.port.probe().await.unwrap();
    let second = agent.port.probe().await.unwrap();
    assert_eq!(first.digest, second.digest, "nothing moved");
    assert_eq!(agent.keys(), keys, "a probe types nothing");
    let silences = || {
        rig.tmux(&[
            "display-message",
            "-p",
            "-t",
            "nexus:FE",
            "#{@nexus_silence}",
        ])
    };
    let before = silences();
    agent.go();
    agent.ended().await;
    // The window falls silent again, but nothing was to be heard.
    eventually("a second silence", || silences() != before).await;
    agent.say("[hang]").await;
    agent
        .until("Silent", |what| silent(what).then_some(()))
        .await;
    assert_eq!(agent.count(silent), 2);
}

/// tmux tells of a silence once, until somebody says that it was heard.
#[tokio::test]
async fn who_fell_silent_while_nobody_watched_is_told_of_by_the_next_supervisor() {
    let Some(rig) = Rig::open("who_fell_silent_while_nobody_watched").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[hang]").await;
    let session = agent.session.clone();
    drop(agent);
    let flag = [
        "display-message",
        "-p",
        "-t",
        "nexus:FE",
        "#{window_silence_flag}",
    ];
    eventually("a silence that nobody heard", || {
        rig.tmux(&flag).trim() == "1"
    })
    .await;

    let mut next = rig.agent("FE");
    assert!(next.launch(Launch::Adopt { session }).await, "it is busy");
    let silent = |what: &What| matches!(what, What::Silent { .. }).then_some(());
    next.until("Silent", silent).await;
}

#[tokio::test]
async fn a_bell_is_told_at_once() {
    let Some(rig) = Rig::open("a_bell_is_told_at_once").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let (mut times, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        agent.say("[wait]").await;
        agent.go();
        eventually("it went on", || !agent.folder.join("go").exists()).await;
        let begin = Instant::now();
        agent.until("Bell", bells).await;
        times.push(begin.elapsed());
        agent.drain();
        let begin = Instant::now();
        rig.tmux(&["display-message", "-p", "x"]);
        asked.push(begin.elapsed());
    }
    times.sort();
    println!("from bell to event: {times:?}");
    let soon = SOON + *asked.iter().max().unwrap() * QUESTIONS;
    assert!(times[2] < soon, "{times:?}, and {asked:?} to ask");
}

#[tokio::test]
async fn two_signals_that_nobody_waits_for_wake_all_the_same() {
    let Some(rig) = Rig::open("two_signals_that_nobody_waits_for").await else {
        return;
    };
    // Another server, in which nobody waits.
    let other = rig.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let file = other.join("wake");
    std::fs::write(&file, crate::terminal::tmux::hooks::wake()).unwrap();
    tmux(
        &other,
        &[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "tail",
            "-f",
            "/dev/null",
        ],
    );
    for _ in 0..2 {
        tmux(&other, &["source-file", file.to_str().unwrap()]);
    }
    let mut client =
        crate::terminal::tmux::Tmux::new(Some(other.join("tmux")), other.clone()).client();
    let wait = client.args(["wait-for", "nexus-77"]).status();
    let woken = tokio::time::timeout(Duration::from_secs(120), wait).await;
    tmux(&other, &["kill-server"]);
    assert!(woken.expect("it is woken").unwrap().success());
}

#[tokio::test]
async fn hooks_of_the_user_stay_and_ours_go() {
    let Some(rig) = Rig::open("hooks_of_the_user_stay").await else {
        return;
    };
    rig.tmux(&["set-hook", "-g", "alert-bell[0]", "display-message user"]);
    let hooks = || rig.tmux(&["show-hooks", "-g", "alert-bell"]);
    assert!(hooks().contains("alert-bell[77]"), "{}", hooks());
    rig.terminals.server.tmux.unset_hooks().await.unwrap();
    assert!(
        hooks().contains("alert-bell[0] display-message"),
        "{}",
        hooks()
    );
    assert!(!hooks().contains("[77]"), "{}", hooks());
}

#[tokio::test]
async fn check_31_without_tmux_the_error_is_clear() {
    // This very program again, where no tmux is found.
    if std::env::var_os("CRABTALK_NO_TMUX").is_some() {
        let folder = tempfile::tempdir().unwrap();
        let error = crate::terminal::Terminals::open(super::rig::settings(folder.path()))
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("need tmux") && text.contains("install it"),
            "{text}"
        );
        let failure = crate::backend::Failure::from(error);
        assert!(matches!(failure, crate::backend::Failure::Missing(_)));
        return;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "tests::signs::check_31_without_tmux_the_error_is_clear",
            "--exact",
        ])
        .env("CRABTALK_NO_TMUX", "1")
        .env("PATH", "/nonexistent")
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}
