//! Guests: what they are told, and by whose name they are heard.

use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end, within};
use crabtalk_proto::{
    AgentEventKind, Client, GetConversationHistoryMsg, ListConversationsMsg, StreamMsg,
    SubscribeEvents,
};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;

fn to_the_guest(env: &TestEnv) -> StreamMsg {
    StreamMsg {
        agent: "crab".into(),
        content: "and you?".into(),
        guest: Some("ada".into()),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    }
}

async fn world() -> (ModelServer, TestEnv) {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "description: the first");
    env.agent("ada", "description: the guest\nskills: [\"greet\"]");
    let skill = "---\nname: greet\ndescription: Does greet.\n---\nGreet.\n";
    env.write(".crabtalk/config/skills/greet/SKILL.md", skill);
    (model, env)
}

#[tokio::test]
async fn a_guest_hears_nothing_of_tools_skills_and_memorys_tools() {
    let (model, env) = world().await;
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, to_the_guest(&env)).await;
    assert_eq!(end_of(&events).code, 0);
    let request = model.requests().await.pop().unwrap();
    assert!(request["tools"].is_null(), "{request}");
    let told = request["messages"].to_string();
    for word in ["recall`", "remember", "<skills>", "greet", "<scope>"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
    assert!(told.contains("You are ada."), "{told}");
    // In a conversation of its own it has them all.
    let own = StreamMsg {
        agent: "ada".into(),
        guest: None,
        ..to_the_guest(&env)
    };
    stream_to_end(&env, own).await;
    let request = model.requests().await.pop().unwrap();
    let told = request["messages"].to_string();
    for word in ["recall`", "<skills>", "greet", "<scope>"] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

#[tokio::test]
async fn a_guest_is_named_where_runs_are_watched_and_in_the_old_history() {
    let (_model, env) = world().await;
    let _daemon = env.daemon().await;
    let mut watching = env.connect().await;
    let narrowed = SubscribeEvents {
        agent: Some("crab".into()),
        sender: None,
        ..SubscribeEvents::default()
    };
    let mut events = std::pin::pin!(watching.subscribe_events(narrowed));
    let own = StreamMsg {
        guest: None,
        ..to_the_guest(&env)
    };
    let watched = async {
        let mut speakers = Vec::new();
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            speakers.push((event.agent, event.speaker));
            if event.kind == i32::from(AgentEventKind::Done) {
                return speakers;
            }
        }
        speakers
    };
    // Nobody says when a watch has begun: there are runs until it sees one.
    let runs = async {
        loop {
            stream_to_end(&env, to_the_guest(&env)).await;
        }
    };
    let speakers = within("a watched run", async {
        tokio::select! {
            speakers = watched => speakers,
            () = runs => Vec::new(),
        }
    })
    .await;
    assert!(!speakers.is_empty());
    for (agent, speaker) in speakers {
        assert_eq!((agent.as_str(), speaker.as_str()), ("crab", "ada"));
    }
    stream_to_end(&env, own).await;
    let mut connection = env.connect().await;
    let listed = connection
        .list_conversations(ListConversationsMsg::default())
        .await
        .unwrap();
    let request = GetConversationHistoryMsg {
        file_path: listed.conversations[0].file_path.clone(),
    };
    let history = connection.get_conversation_history(request).await.unwrap();
    let speakers: Vec<(&str, &str)> = history
        .messages
        .iter()
        .map(|message| (message.role.as_str(), message.speaker.as_str()))
        .collect();
    assert_eq!(speakers[..2], [("user", ""), ("assistant", "ada")]);
    assert_eq!(speakers.last(), Some(&("assistant", "crab")));
}
