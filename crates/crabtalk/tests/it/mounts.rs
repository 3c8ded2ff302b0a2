//! Mounts that do not answer cost those who go there, and nobody else.

use crate::rig::{TestEnv, chunks, end_of, eventually, has_tools, skip, stream_to_end};
use crabtalk_proto::{Client, ClientError, StreamMsg, code, stream_event};
use futures_util::StreamExt;
use std::fs;
use tokio::task::JoinSet;

/// Clients that name a folder there: more than the daemon ever has threads.
const CLIENTS: usize = 100;

/// Threads that it has at most, however many want to go there.
const THREADS: usize = 80;

async fn in_folder(env: &TestEnv, sender: String, cwd: String) -> Result<String, ClientError> {
    let request = StreamMsg {
        content: "hello".into(),
        sender: Some(sender),
        cwd: Some(cwd),
        ..StreamMsg::default()
    };
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(request));
    let mut said = String::new();
    while let Some(event) = events.next().await {
        if let Some(stream_event::Event::Chunk(chunk)) = event?.event {
            said.push_str(&chunk.content);
        }
    }
    Ok(said)
}

#[tokio::test]
async fn a_dead_mount_costs_those_who_go_there_and_nobody_else() {
    let this = "a_dead_mount_costs_those_who_go_there_and_nobody_else";
    if !has_tools(this, &["unshare", "mount"]) {
        return;
    }
    let env = std::sync::Arc::new(TestEnv::new());
    let dead = env.user_home.join("dead");
    let skills = env.user_home.join("dead-skills");
    for folder in [&dead, &skills] {
        fs::create_dir(folder).unwrap();
    }
    if let Err(why) = env.may_mount_the_dead(&dead).await {
        return skip(this, &why);
    }
    let link = env.user_home.join("link");
    std::os::unix::fs::symlink(&dead, &link).unwrap();
    let config = format!("[skills]\npaths = [\"{}\"]\n", skills.display());
    env.write(".crabtalk/config/config.toml", &config);
    env.write(
        ".crabtalk/config/skills/fly/SKILL.md",
        "---\nname: fly\ndescription: how to fly\n---\nFlap.\n",
    );
    env.agent("crab", "permissions: { read: allow }");
    let daemon = env.daemon_beside_the_dead(&[&dead, &skills]).await;

    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let (env, through) = (env.clone(), [&dead, &link][n % 2]);
        let cwd = format!("{}/{n}", through.display());
        clients.spawn(async move { (cwd.clone(), in_folder(&env, format!("tg:{n}"), cwd).await) });
    }
    let tasks = format!("/proc/{}/task", daemon.pid());
    let threads = || fs::read_dir(&tasks).unwrap().count();
    let some_hang = async || (threads() > 5).then_some(());
    eventually("the first to hang", some_hang).await;

    // What others do is done, with the skills that lie elsewhere.
    let say = |content: &str| StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    };
    let events = stream_to_end(&env, say("good morning")).await;
    assert_eq!(end_of(&events).code, 0);
    assert!(env.run(&["skills"]).await.ok().contains("fly"));
    assert!(env.run(&["history"]).await.ok().contains("good morning"));
    assert!(
        env.run(&["daemon", "status"])
            .await
            .ok()
            .contains("running")
    );
    let events = stream_to_end(&env, say("/fly to the moon")).await;
    assert!(chunks(&events).contains("Flap."), "{events:?}");
    env.write("notes.txt", "Remember the milk.");
    let notes = format!(
        r#"/tool read {{"path":"{}/notes.txt"}}"#,
        env.user_home.display()
    );
    let events = stream_to_end(&env, say(&notes)).await;
    assert!(chunks(&events).contains("the milk"), "{events:?}");

    while let Some(told) = clients.join_next().await {
        let (cwd, told) = told.unwrap();
        let Err(ClientError::Refused(status)) = told else {
            panic!("{cwd}: {told:?}");
        };
        assert_eq!(status.code, code::TIMEOUT, "{status:?}");
        assert!(status.message.contains(&cwd), "{status:?}");
    }
    assert!(threads() < THREADS, "{} threads", threads());
    // By now it is known, whichever way one goes; tools say so, too.
    let path = format!("{}/x", link.display());
    let events = stream_to_end(&env, say(&format!(r#"/tool read {{"path":"{path}"}}"#))).await;
    let text = chunks(&events);
    assert!(text.contains("has not answered for more than"), "{text}");
    assert!(text.contains(&dead.display().to_string()), "{text}");
    daemon.terminate().await;
}
