//! Prompts get exactly the intended keys, or none.

use super::rig::{Agent, Rig, eventually};
use crate::backend::{Answered, Backend, Reply, What};
use crate::terminal::tmux::keys::Stroke;

#[tokio::test]
async fn allowed_prompt_gets_one_key() {
    let Some(rig) = Rig::open("check_06").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[say:hello]").await;
    agent.ended().await;
    agent.say("[tool:cargo test]").await;
    let prompt = agent.prompt().await;
    assert_eq!(
        (prompt.tool.as_str(), prompt.subject.as_str()),
        ("bash", "cargo test")
    );
    assert!(prompt.exact, "{prompt:?}");
    assert!(prompt.text.starts_with("Allow this command?"), "{prompt:?}");
    let taken = agent.port.reply(&prompt, &Reply::Allow).await.unwrap();
    assert!(matches!(taken, Answered::Taken(_)), "{taken:?}");
    assert_eq!(agent.ended().await.output, "done");
    assert_eq!(agent.ran(), ["cargo test"]);
    let ones = agent.keys().iter().filter(|key| *key == "text 1").count();
    assert_eq!(ones, 1);
    let again = agent.port.reply(&prompt, &Reply::Allow).await.unwrap();
    assert!(matches!(again, Answered::Stale(_)));
    assert_eq!(agent.count(|what| matches!(what, What::Prompt(_))), 1);
    agent
        .until("PromptGone", |what| {
            matches!(what, What::PromptGone { .. }).then_some(())
        })
        .await;
    assert_eq!(
        agent.count(|what| matches!(what, What::PromptGone { .. })),
        1
    );
    let place = |is: fn(&What) -> bool| agent.told.iter().rposition(|event| is(&event.what));
    let gone = place(|what| matches!(what, What::PromptGone { .. }));
    let ended = place(|what| matches!(what, What::TurnEnded(_)));
    assert!(gone < ended, "a prompt goes before its turn ends");
}

#[tokio::test]
async fn denied_prompt_gets_escape() {
    let Some(rig) = Rig::open("check_07").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[tool:rm -rf /]").await;
    let prompt = agent.prompt().await;
    let taken = agent
        .port
        .reply(&prompt, &Reply::Deny("it is destructive".into()))
        .await
        .unwrap();
    assert!(matches!(taken, Answered::Taken(e) if e.detail.contains("<Escape>")));
    assert_eq!(agent.ended().await.error.as_deref(), Some("cancelled"));
    assert!(agent.ran().is_empty());
    assert_eq!(agent.keys().last().unwrap(), "Escape");
}

#[tokio::test]
async fn unknown_prompt_gets_no_key() {
    let Some(rig) = Rig::open("check_08").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[odd]").await;
    let keys = agent.keys();
    let screen = || rig.tmux(&["capture-pane", "-p", "-t", "nexus:FE"]);
    eventually("the question", || screen().contains("Which")).await;
    let probe = agent.port.probe().await.unwrap();
    assert_eq!(probe.prompt, None);
    assert_eq!(agent.keys(), keys);
}

#[tokio::test]
async fn closed_prompt_gets_no_key() {
    let Some(rig) = Rig::open("check_09").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[vanish:cargo test]").await;
    let prompt = agent.prompt().await;
    let pane = agent.port.shared().running().unwrap().pane;
    let seen = rig.terminals.tmux.look(&pane).await.unwrap().unwrap();
    let keys = agent.keys();
    agent.go();
    agent.ended().await;
    // The screen has changed.
    let strokes = [Stroke::Text("1".into())];
    assert!(
        !rig.terminals
            .tmux
            .press(&pane, &seen, &strokes)
            .await
            .unwrap()
    );
    let stale = agent.port.reply(&prompt, &Reply::Allow).await.unwrap();
    assert!(matches!(stale, Answered::Stale(_)), "{stale:?}");
    assert_eq!(agent.keys(), keys);
    assert!(agent.ran().is_empty());
}

#[tokio::test]
async fn old_prompt_text_gets_no_key() {
    let Some(rig) = Rig::open("check_10").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[old:rm -rf /]").await;
    agent.ended().await;
    let keys = agent.keys();
    assert!(agent.screen().await.contains("Allow this command?"));
    assert_eq!(agent.port.probe().await.unwrap().prompt, None);
    assert_eq!(agent.count(|what| matches!(what, What::Prompt(_))), 0);
    assert_eq!(agent.keys(), keys);
}

#[tokio::test]
async fn answer_of_a_person_is_reported() {
    let Some(rig) = Rig::open("a_person_who_answers").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[tool:make]").await;
    let prompt = agent.prompt().await;
    rig.tmux(&["send-keys", "-t", "nexus:FE", "-l", "1"]);
    let gone = agent
        .until("PromptGone", |what| match what {
            What::PromptGone { id, .. } => Some(id.clone()),
            _ => None,
        })
        .await;
    assert_eq!(gone, prompt.id);
    agent.ended().await;
}

#[tokio::test]
async fn repeated_question_is_another_prompt() {
    let Some(rig) = Rig::open("the_same_question_asked_later").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        agent.say("[tool:make]").await;
        let prompt = agent.prompt().await;
        agent.port.reply(&prompt, &Reply::Allow).await.unwrap();
        agent.ended().await;
        ids.push(prompt.id);
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(agent.ran(), ["make", "make"]);
}

#[tokio::test]
async fn kind_without_keys_fails_to_answer() {
    let Some(rig) = Rig::open("a_kind_without_keys").await else {
        return;
    };
    let changes = "[changed]\nlike = 'fake'\n[[changed.prompts]]\nask = '^Which colour'\n\
        choice = '^. 1. Blue'\n";
    let mut agent = Agent::new(&rig.terminals, rig.folder.path(), "FE", changes);
    agent.launch(crate::backend::Launch::Fresh).await;
    agent.say("[odd]").await;
    let prompt = agent.prompt().await;
    let keys = agent.keys();
    agent.port.reply(&prompt, &Reply::Allow).await.unwrap_err();
    assert_eq!(agent.keys(), keys);
    rig.tmux(&["send-keys", "-t", "nexus:FE", "-l", "b"]);
    eventually("an answer", || agent.keys().len() > keys.len()).await;
    agent.ended().await;
}

#[tokio::test]
async fn prompt_beside_a_hidden_call_is_not_exact() {
    let Some(rig) = Rig::open("prompt_beside_a_hidden_call").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[say:hello]").await;
    agent.ended().await;
    agent.say("[two:ls]").await;
    let prompt = agent.prompt().await;
    assert_eq!(prompt.text.lines().next(), Some("Allow this command?"));
    assert!(!prompt.exact, "{prompt:?}");
    // ADMIN, who sees the screen, may still allow it.
    let taken = agent.port.reply(&prompt, &Reply::Allow).await.unwrap();
    assert!(matches!(taken, Answered::Taken(_)), "{taken:?}");
}
