//! Messages arrive once, and only when the agent is free.

use super::rig::{Agent, Rig, eventually};
use crate::backend::{Backend, Reply, Source, Submitted, What};
use crate::terminal::Kinds;
use std::path::Path;

/// The first message of a supervisor, with a file in the middle.
const BOOTSTRAP: &str = "@NEXUS → @FE [BOOTSTRAP]: @gov/context_compression_protocol.md completed \
    for @FE.md agent - please reload all relevant agent context for continuation";

#[tokio::test]
async fn first_message_arrives_verbatim() {
    let Some(rig) = Rig::open("check_01").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say(BOOTSTRAP).await;
    let turn = agent.ended().await;
    assert_eq!(agent.users(), [BOOTSTRAP]);
    assert_eq!(turn.output, format!("ok: {BOOTSTRAP}"));
    assert_eq!(
        (turn.tokens, turn.window, turn.error),
        (Some(1000), Some(100_000), None)
    );
    assert!(turn.transcript_bytes.unwrap() > 0);
    let seen = agent.evidence(|what| matches!(what, What::Seen { .. }));
    assert_eq!(seen.source, Source::Transcript);
}

#[tokio::test]
async fn busy_agent_gets_no_key() {
    let Some(rig) = Rig::open("check_05").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[wait]").await;
    let keys = agent.keys();
    let refused = agent.submit("late", "for later").await;
    assert!(matches!(refused, Submitted::NotNow(_)), "{refused:?}");
    assert_eq!(agent.keys(), keys);
    agent.go();
    agent.ended().await;
    agent.say("for later").await;
    assert_eq!(agent.users(), ["[wait]", "for later"]);
}

#[tokio::test]
async fn message_is_submitted_in_copy_mode() {
    let Some(rig) = Rig::open("check_18").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    rig.tmux(&["copy-mode", "-t", "nexus:FE"]);
    assert_eq!(
        rig.tmux(&["display-message", "-p", "-t", "nexus:FE", "#{pane_in_mode}"]),
        "1\n"
    );
    agent.say("through").await;
    assert_eq!(agent.users(), ["through"]);
}

#[tokio::test]
async fn message_that_ends_in_a_file_is_submitted_once() {
    let Some(rig) = Rig::open("check_19").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("read @gov/protocol.md").await;
    agent.ended().await;
    assert_eq!(agent.users(), ["read @gov/protocol.md"]);
    let enters = agent.keys().iter().filter(|key| *key == "Enter").count();
    assert_eq!(enters, 2, "the first one closed the completion");
}

#[tokio::test]
async fn control_characters_are_removed_from_messages() {
    let Some(rig) = Rig::open("check_20").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let odd = "-l;\u{1b}[201~rm -rf\u{7}\n\ttab 'quoted' \"$HOME\" #{pane_id} `id`;";
    agent.say(odd).await;
    agent.ended().await;
    let long = format!("[say:got it] {}", "0123456789 äöü; \n".repeat(11_000));
    assert!(long.len() > 200_000);
    agent.say(&long).await;
    assert_eq!(agent.ended().await.output, "got it");
    let plain = "-l;[201~rm -rf\n\ttab 'quoted' \"$HOME\" #{pane_id} `id`;";
    assert_eq!(agent.users(), [plain, &long]);
}

#[tokio::test]
async fn draft_of_an_earlier_attempt_is_cleared() {
    let Some(rig) = Rig::open("what_an_earlier_try_left").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    rig.tmux(&["send-keys", "-t", "nexus:FE", "-l", "half a mess"]);
    eventually("a draft", || agent.keys().concat().contains("half a mess")).await;
    agent.say("a whole message").await;
    assert_eq!(agent.users(), ["a whole message"]);
}

#[tokio::test]
async fn delivered_message_is_not_typed_again() {
    let Some(rig) = Rig::open("a_message_that_is_there_already").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let mark = agent.port.mark().await.unwrap();
    agent.say("once").await;
    agent.ended().await;

    // Another supervisor starts after the first was killed during a delivery.
    let keys = agent.keys();
    let session = agent.session.clone();
    drop(agent);
    let quick = "[changed]\nlike = \"fake\"\ntranscript.late_secs = 0\n";
    let mut next = Agent::new(&rig.terminals, rig.folder.path(), "FE", quick);
    let busy = next.launch(crate::backend::Launch::Adopt { session }).await;
    assert!(!busy);
    let again = next.submit_again("x", "once", mark.clone(), true).await;
    assert!(matches!(again, Submitted::AlreadyThere(_)), "{again:?}");
    assert_eq!(next.ended().await.output, "ok: once");
    assert_eq!(
        next.count(|what| matches!(what, What::Seen { id } if id == "x")),
        1
    );
    assert_eq!(next.keys(), keys);
    let sent = next.submit_again("y", "never sent", mark, true).await;
    assert!(matches!(sent, Submitted::Sent(_)), "{sent:?}");
    next.ended().await;
    assert_eq!(next.users(), ["once", "never sent"]);
}

/// The program accepted the message, and records it only with its answer.
#[tokio::test]
async fn late_transcript_of_a_message_is_awaited() {
    let Some(rig) = Rig::open("a_message_that_comes_into_the_transcript_late").await else {
        return;
    };
    let slow = "[changed]\nlike = \"fake\"\ntranscript.late_secs = 3600\n";
    let begin = || Agent::new(&rig.terminals, rig.folder.path(), "FE", slow);
    let mut agent = begin();
    agent.launch(crate::backend::Launch::Fresh).await;
    std::fs::write(agent.folder.join("late"), "").unwrap();
    let mark = agent.port.mark().await.unwrap();
    let sent = agent.submit_again("x", "[wait]", mark.clone(), false).await;
    assert!(matches!(sent, Submitted::Sent(_)), "{sent:?}");
    let (keys, session) = (agent.keys(), agent.session.clone());
    drop(agent);

    let mut next = begin();
    next.launch(crate::backend::Launch::Adopt { session }).await;
    let again = next.submit_again("x", "[wait]", mark.clone(), true).await;
    assert!(matches!(again, Submitted::NotNow(_)), "{again:?}");
    assert_eq!(next.keys(), keys);
    next.go();
    assert_eq!(next.ended().await.output, "went on");
    let again = next.submit_again("x", "[wait]", mark, true).await;
    assert!(matches!(again, Submitted::AlreadyThere(_)), "{again:?}");
    assert_eq!(next.keys(), keys);
    assert_eq!(next.users(), ["[wait]"]);
    let ends = next.count(|what| matches!(what, What::TurnEnded(_) | What::Seen { .. }));
    assert_eq!(ends, 2, "each is told once");
}

/// The prompt opened while no supervisor was running.
#[tokio::test]
async fn next_supervisor_sees_an_open_prompt() {
    let Some(rig) = Rig::open("next_supervisor_sees_an_open_prompt").await else {
        return;
    };
    for (text, is_prompt) in [("[tool:echo a]", true), ("[odd]", false)] {
        let name = if is_prompt { "ASKS" } else { "ODD" };
        let agent = rig.ready(name).await;
        let mark = agent.port.mark().await.unwrap();
        agent.submit("x", text).await;
        let session = agent.session.clone();
        let window = format!("nexus:{name}");
        drop(agent);
        let screen = || rig.tmux(&["capture-pane", "-p", "-t", &window]);
        let shown = if is_prompt { "Allow this" } else { "Which" };
        eventually("the question", || screen().contains(shown)).await;

        let mut next = Agent::new(&rig.terminals, rig.folder.path(), name, "");
        // The session has no name yet: it began with this message.
        next.launch(crate::backend::Launch::Adopt { session }).await;
        let again = next.submit_again("x", text, mark, true).await;
        assert!(matches!(again, Submitted::AlreadyThere(_)), "{again:?}");
        if is_prompt {
            let prompt = next.prompt().await;
            assert_eq!(prompt.subject, "echo a");
            next.port.reply(&prompt, &Reply::Allow).await.unwrap();
            assert_eq!(next.ended().await.output, "done");
            assert_eq!(next.ran(), ["echo a"]);
        } else {
            // Neither a prompt nor an end is reported.
            next.until("Seen", |what| {
                matches!(what, What::Seen { .. }).then_some(())
            })
            .await;
            assert_eq!(next.count(|what| matches!(what, What::Prompt(_))), 0);
            assert_eq!(next.count(|what| matches!(what, What::TurnEnded(_))), 0);
        }
    }
}

#[tokio::test]
async fn next_supervisor_sees_the_end_of_the_turn_in_flight() {
    let Some(rig) = Rig::open("a_supervisor_that_comes_back").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let mark = agent.port.mark().await.unwrap();
    agent.say("[wait]").await;
    let session = agent.session.clone();
    drop(agent);
    let mut next = Agent::new(&rig.terminals, rig.folder.path(), "FE", "");
    assert!(
        next.launch(crate::backend::Launch::Adopt { session }).await,
        "it is busy"
    );
    let again = next.submit_again("x", "[wait]", mark, true).await;
    assert!(matches!(again, Submitted::AlreadyThere(_)), "{again:?}");
    next.go();
    assert_eq!(next.ended().await.output, "went on");
    assert_eq!(next.users().len(), 1);
}

#[tokio::test]
async fn end_during_adoption_is_reported_once() {
    let Some(rig) = Rig::open("an_end_between_finding").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let mark = agent.port.mark().await.unwrap();
    agent.say("[wait]").await;
    let session = agent.session.clone();
    drop(agent);
    let mut next = Agent::new(&rig.terminals, rig.folder.path(), "FE", "");
    let launch = crate::backend::Launch::Adopt { session };
    assert!(next.launch(launch).await, "it is busy");
    let length = || next.port.shared().session().length();
    let before = length();
    next.go();
    eventually("its end is written", || length() > before).await;
    assert_eq!(next.count(|what| matches!(what, What::TurnEnded(_))), 0);
    let again = next.submit_again("x", "[wait]", mark, true).await;
    assert!(matches!(again, Submitted::AlreadyThere(_)), "{again:?}");
    assert_eq!(next.ended().await.output, "went on");
    next.say("and on").await;
    next.ended().await;
    let of_turn = |what: &What| match what {
        What::TurnEnded(turn) => Some(turn.output.clone()),
        What::Seen { id } if id == "x" => Some("seen".to_owned()),
        _ => None,
    };
    let told = next.told.iter().filter_map(|event| of_turn(&event.what));
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["seen", "went on", "ok: and on"],
        "its arrival comes first"
    );
}

#[tokio::test]
async fn message_of_a_dead_agent_is_not_answered() {
    let Some(rig) = Rig::open("a_message_that_its_agent_died_with").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("hello").await;
    agent.ended().await;
    let mark = agent.port.mark().await.unwrap();
    agent.submit("boom", "[crash:7]").await;
    let died = |what: &What| matches!(what, What::Died(_)).then_some(());
    agent.until("Died", died).await;
    let session = agent.told.iter().rev().find_map(|event| match &event.what {
        What::Session { session } => Some(session.clone()),
        _ => None,
    });
    let session = session.expect("the first message named it");
    agent
        .launch(crate::backend::Launch::Resume { session })
        .await;
    agent.say("who are you?").await;
    agent.ended().await;
    // The message's arrival is unknown, so the end of another turn must not count as its end.
    let again = agent.submit_again("x", "[crash:7]", mark, true).await;
    assert!(matches!(again, Submitted::AlreadyThere(_)), "{again:?}");
    let turn = agent.ended().await;
    assert!(turn.error.is_some() && turn.output.is_empty(), "{turn:?}");
    assert_eq!(agent.users(), ["hello", "[crash:7]", "who are you?"]);
}

#[tokio::test]
async fn compaction_that_a_person_orders_is_reported() {
    let Some(rig) = Rig::open("compaction_that_a_person_orders").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("hello").await;
    agent.ended().await;
    rig.tmux(&["send-keys", "-t", "nexus:FE", "-l", "/compact"]);
    rig.tmux(&["send-keys", "-t", "nexus:FE", "Enter"]);
    agent
        .until("Compacted", |what| {
            matches!(what, What::Compacted).then_some(())
        })
        .await;
    let evidence = agent.evidence(|what| matches!(what, What::Compacted));
    assert_eq!(evidence.source, Source::Transcript);
}

#[tokio::test]
async fn chat_of_another_home_is_started_for_that_home() {
    let Some(rig) = Rig::open("chat_of_another_home").await else {
        return;
    };
    let kinds = Kinds::new(&toml::Table::new()).unwrap();
    let chat = kinds.get("crabtalk").unwrap();
    let env = [("CRABTALK_HOME", "/other")];
    let agent = Agent::of_kind(&rig.terminals, rig.folder.path(), "FE", chat, &env);
    let program = agent.port.shared().program("life", None);
    let homes = program.environment.iter();
    let homes = homes.filter(|(name, _)| name == "CRABTALK_HOME");
    assert!(homes.clone().count() > 0 && homes.clone().all(|(_, home)| home == "/other"));
    assert_eq!(agent.port.shared().crabtalk, Path::new("/other"));
}
