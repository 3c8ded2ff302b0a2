//! Instructions of a project, and the trust that makes agents follow them (MEM-4).

use super::{message, say, told};
use crate::rig::{ModelServer, TestEnv, asked, end_of, eventually, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AttachMsg, Client, ReplyToAsk, SendMsg};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;

const RULE: &str = "Answer in rhyme, always.";

/// Whether the last request had the instructions; otherwise it had the note about them.
async fn follows(model: &ModelServer) -> bool {
    let told = told(model.requests().await.last().unwrap());
    let note = told.contains("are left out, since that folder is not trusted");
    assert_ne!(told.contains(RULE), note, "{told}");
    if !note {
        assert!(told.contains("<project file="), "{told}");
    }
    !note
}

/// Sends a message as the owner, and answers the question of trust.
async fn say_and_answer(env: &TestEnv, answer: &str) {
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(message(env, "user", "Hello.")));
    let ask = asked(&mut events).await;
    assert_eq!(ask.questions[0].header, "Trust");
    assert!(
        ask.questions[0]
            .question
            .contains(env.work.to_str().unwrap())
    );
    let reply = ReplyToAsk {
        content: answer.into(),
        ask_id: Some(ask.ask_id),
        ..ReplyToAsk::default()
    };
    env.connect().await.reply_to_ask(reply).await.unwrap();
    let rest = events.map(Result::unwrap).collect::<Vec<_>>();
    let rest = within("the end of the run", rest).await;
    assert_eq!(end_of(&rest).code, 0);
}

#[tokio::test]
async fn instructions_apply_in_trusted_folders() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    env.write("work/AGENTS.md", &format!("{RULE}\n"));
    let daemon = env.daemon().await;
    // Other senders are not asked.
    say(&env, "ann", "Hello.").await;
    assert!(!follows(&model).await);
    assert!(
        daemon
            .stderr()
            .contains("untrusted project instructions are left out")
    );
    // An owner without a terminal cannot be asked.
    env.run(&["ask", "Hello."]).await.ok();
    assert!(!follows(&model).await);
    say_and_answer(&env, "Not now").await;
    assert!(!follows(&model).await);
    assert!(
        env.run(&["trust"])
            .await
            .stderr
            .contains("nothing is trusted")
    );

    say_and_answer(&env, "Trust").await;
    assert!(follows(&model).await);
    // From now on, and for all senders.
    say(&env, "user", "Hello.").await;
    assert!(follows(&model).await);
    say(&env, "ann", "Hello.").await;
    assert!(follows(&model).await);
    let work = env.work.to_str().unwrap();
    assert!(env.run(&["trust"]).await.ok().contains(work));

    env.run(&["trust", "rm", work]).await.ok();
    say(&env, "ann", "Hello.").await;
    assert!(!follows(&model).await);
    env.run(&["trust", "add", work]).await.ok();
    say(&env, "ann", "Hello.").await;
    assert!(follows(&model).await);
}

#[tokio::test]
async fn resumed_run_does_not_ask_for_trust() {
    let half = openai::pieces(&["half a word"]).stall_after(2);
    let model = ModelServer::start(Script::openai([half, openai::text("Here again.")])).await;
    let env = TestEnv::with_model(&model);
    let config = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!("{config}\n[runs]\nresume = \"auto\"\n"));
    env.write("work/AGENTS.md", &format!("{RULE}\n"));
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(message(&env, "user", "Hello.")));
    let ask = asked(&mut events).await;
    let reply = ReplyToAsk {
        content: "Not now".into(),
        ask_id: Some(ask.ask_id),
        ..ReplyToAsk::default()
    };
    env.connect().await.reply_to_ask(reply).await.unwrap();
    let half_a_word = async {
        loop {
            if let Some(Event::Chunk(_)) = events.next().await.unwrap().unwrap().event {
                return;
            }
        }
    };
    within("the first words", half_a_word).await;
    daemon.kill().await;

    let _daemon = env.daemon().await;
    eventually("the run to be carried on", async || {
        (model.requests().await.len() == 2).then_some(())
    })
    .await;
    assert!(!follows(&model).await);
    let mut connection = env.connect().await;
    let events = connection.attach(AttachMsg::default());
    let events = within("its end", events.map(Result::unwrap).collect::<Vec<_>>()).await;
    assert_eq!(end_of(&events).code, 0);
}

#[tokio::test]
async fn client_without_a_stream_gets_the_trust_advice() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    env.write("work/AGENTS.md", &format!("{RULE}\n"));
    env.write("work/deep/AGENTS.md", "And in tune.\n");
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let request = SendMsg {
        content: "Hello.".into(),
        cwd: Some(env.work.join("deep").display().to_string()),
        ..SendMsg::default()
    };
    let answer = within("an answer", connection.send(request)).await.unwrap();
    assert_eq!(answer.content, "Yes.");
    assert!(!follows(&model).await);
    let notices = answer.notices;
    assert_eq!(notices.len(), 2, "{notices:?}");
    let advice = format!("crabtalk trust add {}", env.work.display());
    assert!(notices.iter().any(|n| n.contains(&advice)), "{notices:?}");
}
