//! Agents start, crash, continue, and leave no process behind.

use super::rig::{Agent, Rig, eventually};
use crate::backend::{Backend, Exit, Failure, Launch, Source, Submission, What};
use crate::terminal::{Compress, Sandbox, Spec};

fn died(what: &What) -> Option<Exit> {
    match what {
        What::Died(exit) => Some(exit.clone()),
        _ => None,
    }
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // A zombie does not count as running.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn crash_is_reported_with_status_and_session_resumes() {
    let Some(rig) = Rig::open("check_27").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("remember this").await;
    agent.ended().await;
    agent.submit("boom", "[crash:7]").await;
    let exit = agent.until("Died", died).await;
    assert_eq!((exit.status, exit.signal), (Some(7), None));
    let evidence = agent.evidence(|what| matches!(what, What::Died(_)));
    assert_eq!(evidence.source, Source::Process);
    let message = Submission {
        id: "x".into(),
        text: "hello?".into(),
        mark: agent.port.mark().await.unwrap(),
        again: false,
    };
    let refused = agent.port.submit(message).await;
    assert!(
        matches!(refused, Err(Failure::NotRunning(_))),
        "{refused:?}"
    );

    let session = agent.told.iter().rev().find_map(|event| match &event.what {
        What::Session { session } => Some(session.clone()),
        _ => None,
    });
    let session = session.expect("the first message named it");
    agent
        .launch(Launch::Resume {
            session: session.clone(),
        })
        .await;
    assert_eq!(agent.session, session);
    agent.say("go on").await;
    assert_eq!(agent.ended().await.output, "ok: go on");
    let files = std::fs::read_dir(agent.folder.join("sessions")).unwrap();
    assert_eq!(files.count(), 1, "it is one session");
}

#[tokio::test]
async fn kill_is_reported_with_its_signal() {
    let Some(rig) = Rig::open("a_kill_is_told").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    let pid = agent.port.shared().running().unwrap().pid;
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(agent.until("Died", died).await.signal, Some(9));
}

#[tokio::test]
async fn closed_window_is_reported_as_a_death() {
    let Some(rig) = Rig::open("a_window_that_is_closed").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    rig.tmux(&["kill-window", "-t", "nexus:FE"]);
    let exit = agent.until("Died", died).await;
    assert_eq!(exit.said, "its window is gone");
    agent.launch(Launch::Fresh).await;
    agent.say("again").await;
}

#[tokio::test]
async fn agents_restart_after_the_tmux_server_ended() {
    let Some(rig) = Rig::open("a_server_that_was_ended").await else {
        return;
    };
    let mut all = [rig.ready("A").await, rig.ready("B").await];
    for agent in &mut all {
        agent.say("before").await;
        agent.ended().await;
    }
    rig.tmux(&["kill-server"]);
    for agent in &mut all {
        assert_eq!(agent.until("Died", died).await.said, "its window is gone");
    }
    // Both at the same time, like a supervisor.
    let [a, b] = &all;
    let both = tokio::join!(a.port.launch(Launch::Fresh), b.port.launch(Launch::Fresh));
    assert_eq!(both, (Ok(()), Ok(())));
    for agent in &mut all {
        agent
            .until("Ready", |what| {
                let after = matches!(what, What::Ready { .. });
                after.then_some(())
            })
            .await;
        agent.say("after").await;
    }
}

#[tokio::test]
async fn stop_ends_processes_outside_the_window() {
    let Some(rig) = Rig::open("stopping_ends_what_left").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[child]").await;
    let output = agent.ended().await.output;
    let pid = output.strip_prefix("pid ").unwrap();
    eventually("the child", || is_running(pid)).await;
    agent.port.stop().await.unwrap();
    assert!(!is_running(pid));
    assert!(!rig.tmux(&["list-windows", "-a"]).contains("FE"));
    assert_eq!(agent.count(|what| matches!(what, What::Died(_))), 0);
}

#[tokio::test]
async fn question_before_the_composer_is_not_ready() {
    let Some(rig) = Rig::open("a_question_before_the_composer").await else {
        return;
    };
    let mut agent = rig.agent("FE");
    std::fs::write(agent.folder.join("dialog"), "").unwrap();
    agent.port.launch(Launch::Fresh).await.unwrap();
    let screens = || rig.tmux(&["capture-pane", "-p", "-t", "nexus:FE"]);
    eventually("the question", || screens().contains("Do you trust")).await;
    let refused = agent.submit("x", "swallowed?").await;
    assert!(matches!(refused, crate::backend::Submitted::NotNow(_)));
    assert_eq!(agent.count(|what| matches!(what, What::Ready { .. })), 0);
    std::fs::remove_file(agent.folder.join("dialog")).unwrap();
    agent
        .until("Ready", |what| {
            matches!(what, What::Ready { .. }).then_some(())
        })
        .await;
}

#[tokio::test]
async fn agent_works_after_compact_and_clear() {
    let Some(rig) = Rig::open("compacting_and_clearing").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[tokens:90000]").await;
    assert_eq!(agent.ended().await.tokens, Some(90_000));
    let done = agent.port.compressed(Compress::Compact).await.unwrap();
    assert_eq!(done.evidence.source, Source::Transcript);
    agent.say("after the summary").await;
    let bytes = agent.ended().await.transcript_bytes.unwrap();
    assert!(bytes < 700, "counted since the summary: {bytes}");
    let cleared = agent.port.compress().await.unwrap();
    assert_ne!(cleared.session, done.session);
    agent.say("a new session").await;
    assert_eq!(agent.ended().await.output, "ok: a new session");
    let files = std::fs::read_dir(agent.folder.join("sessions")).unwrap();
    assert_eq!(files.count(), 2);
    assert!(
        agent
            .told
            .iter()
            .any(|event| matches!(event.what, What::Session { .. }))
    );
}

#[tokio::test]
async fn cancel_ends_only_the_turn() {
    let Some(rig) = Rig::open("cancelling_ends_the_turn").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.port.cancel().await.unwrap();
    assert!(agent.keys().is_empty(), "no turn, no key");
    agent.say("[wait]").await;
    agent.port.cancel().await.unwrap();
    assert_eq!(agent.ended().await.error.as_deref(), Some("cancelled"));
    agent.say("next").await;
}

#[tokio::test]
async fn agents_in_one_folder_read_their_own_transcripts() {
    let Some(rig) = Rig::open("two_of_a_kind").await else {
        return;
    };
    // With one home, both transcripts are in one folder.
    let mut first = rig.ready("A").await;
    let mut second = Agent::new(&rig.terminals, rig.folder.path(), "B", "");
    let shared = first.folder.join("sessions");
    std::fs::create_dir_all(&shared).unwrap();
    std::os::unix::fs::symlink(&shared, second.folder.join("sessions")).unwrap();
    second.launch(Launch::Fresh).await;
    first.say("[say:from A]").await;
    second.say("[say:from B]").await;
    assert_eq!(first.ended().await.output, "from A");
    assert_eq!(second.ended().await.output, "from B");
    assert_eq!(first.count(|what| matches!(what, What::TurnEnded(_))), 1);
}

#[tokio::test]
async fn adoption_of_a_stopped_agent_fails() {
    let Some(rig) = Rig::open("adopting_what_does_not_run").await else {
        return;
    };
    let agent = rig.agent("FE");
    let refused = agent
        .port
        .launch(Launch::Adopt {
            session: "x".into(),
        })
        .await;
    assert!(
        matches!(refused, Err(Failure::NotRunning(_))),
        "{refused:?}"
    );
    let look = agent.port.look().await;
    assert!(matches!(look, Err(Failure::NotRunning(_))));
}

/// Agents of the same names in another home are other agents.
#[tokio::test]
async fn two_teams_in_one_server_have_their_own_agents() {
    let Some(rig) = Rig::open("two_teams_in_one_server").await else {
        return;
    };
    let mut ours = rig.ready("A").await;
    let mut settings = super::rig::settings(rig.folder.path());
    settings.state = rig.folder.path().join("other");
    let others = crate::terminal::Terminals::open(settings).await.unwrap();
    let mut other = super::rig::Agent::new(&others, &rig.folder.path().join("theirs"), "A", "");
    other.launch(Launch::Fresh).await;
    other.port.stop().await.unwrap();
    others.close().await.unwrap();
    ours.say("still here").await;
    ours.ended().await;
}

#[tokio::test]
async fn agent_outside_its_sandbox_is_not_adopted() {
    let Some(rig) = Rig::open("agent_outside_its_sandbox_is_not_adopted").await else {
        return;
    };
    let agent = rig.ready("FE").await;
    let sandbox = Sandbox {
        guardian: crabtalk_guardian::GuardianCommand::new("/nonexistent"),
        crabtalk_home: rig.folder.path().join("home"),
        hosts: Vec::new(),
        writable: Vec::new(),
        readable: Vec::new(),
        environment: Vec::new(),
    };
    let known = &agent.port.shared().spec;
    for (sandbox, is_adopted) in [(Some(sandbox), false), (None, true)] {
        let spec = Spec {
            sandbox,
            ..known.clone()
        };
        let session = agent.session.clone();
        let found = rig.terminals.agent(spec);
        let adopted = found.launch(Launch::Adopt { session }).await;
        assert_eq!(adopted.is_ok(), is_adopted, "{adopted:?}");
    }
}
