//! The prompt of a guest.

use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end};
use crabtalk_proto::StreamMsg;
use crabtalk_testkit::scripted::{Script, openai};

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
async fn guests_get_no_tools_skills_or_memory() {
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
    // The agent has them all in its own conversation.
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
