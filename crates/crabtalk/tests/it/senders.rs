//! Two senders never share a conversation, and no name reaches a path (CONV-2).

use crate::rig::{TestEnv, entries};
use crabtalk_proto::{
    Client, ClientError, DeleteConversationMsg, GetConversationHistoryMsg, ListConversationsMsg,
    SendMsg,
};

async fn say(env: &TestEnv, agent: &str, sender: &str, content: &str) {
    let request = SendMsg {
        agent: agent.into(),
        sender: Some(sender.into()),
        content: content.into(),
        ..SendMsg::default()
    };
    env.connect().await.send(request).await.unwrap();
}

#[tokio::test]
async fn similar_senders_keep_separate_histories() {
    let env = TestEnv::new();
    for agent in ["crab", "a", "a_b"] {
        env.agent(agent, "description: x");
    }
    let long = "x".repeat(1023);
    let (long_a, long_b) = (format!("{long}a"), format!("{long}b"));
    let pairs = [
        ("crab", "tg:1"),
        ("crab", "tg-1"),
        ("crab", "tg_1"),
        ("crab", "TG:1"),
        ("a_b", "c"),
        ("a", "b_c"),
        ("crab", &long_a),
        ("crab", &long_b),
        ("crab", "../x"),
        ("crab", "x"),
        ("crab", ".."),
        ("crab", "/etc/passwd"),
        ("crab", "🦀"),
        ("crab", "🦞"),
        ("crab", "a\nb"),
        ("crab", " "),
    ];
    let check = async |rounds: &[&str]| {
        for (agent, sender) in pairs {
            let history = entries(&env, agent, sender).await;
            let said: Vec<&str> = history
                .iter()
                .filter(|entry| entry.role == "user")
                .map(|entry| entry.content.as_str())
                .collect();
            let own = rounds
                .iter()
                .map(|round| format!("{round} {agent} {sender}"));
            assert_eq!(said, own.collect::<Vec<_>>());
        }
        let mut connection = env.connect().await;
        let listed = connection.list_conversations(ListConversationsMsg::default());
        let listed = listed.await.unwrap().conversations;
        assert_eq!(listed.len(), pairs.len());
        assert_eq!(env.logs().len(), pairs.len());
    };
    let daemon = env.daemon().await;
    for (agent, sender) in pairs {
        say(&env, agent, sender, &format!("first {agent} {sender}")).await;
    }
    check(&["first"]).await;
    daemon.kill().await;
    let _daemon = env.daemon().await;
    for (agent, sender) in pairs {
        say(&env, agent, sender, &format!("second {agent} {sender}")).await;
    }
    check(&["first", "second"]).await;
    assert!(!env.home.join("x").exists() && !env.home.join("x.jsonl").exists());
}

#[tokio::test]
async fn file_paths_must_be_names_of_conversation_files() {
    let env = TestEnv::new();
    env.config("# nothing\n");
    let _daemon = env.daemon().await;
    say(&env, "crab", "me", "hello").await;
    let log = env.logs().pop().unwrap();
    let name = log.file_name().unwrap().to_str().unwrap().to_owned();
    let mut connection = env.connect().await;
    let absolute = log.to_str().unwrap();
    for path in [
        "",
        ".",
        "..",
        "../config/config.toml",
        "/etc/passwd",
        absolute,
        &format!("./{name}"),
        &format!("trash/../{name}"),
        &format!("{name}\0"),
        "daemon.sock",
        "trash",
    ] {
        let read = GetConversationHistoryMsg {
            file_path: path.into(),
        };
        let delete = DeleteConversationMsg {
            file_path: path.into(),
        };
        let read = connection.get_conversation_history(read).await.map(|_| ());
        let delete = connection.delete_conversation(delete).await;
        for answer in [read, delete] {
            let code = answer.as_ref().err().and_then(ClientError::code);
            assert_eq!(code, Some(400), "{path:?}: {answer:?}");
        }
    }
    let missing = GetConversationHistoryMsg {
        file_path: "crab_nobody_1.jsonl".into(),
    };
    let missing = connection.get_conversation_history(missing).await;
    assert_eq!(missing.unwrap_err().code(), Some(404));
    let read = GetConversationHistoryMsg {
        file_path: name.clone(),
    };
    let read = connection.get_conversation_history(read).await.unwrap();
    assert_eq!(read.messages[0].content, "hello");
    let delete = DeleteConversationMsg { file_path: name };
    connection.delete_conversation(delete).await.unwrap();
    assert!(env.logs().is_empty());
    assert_eq!(
        std::fs::read_dir(env.sessions().join("trash"))
            .unwrap()
            .count(),
        1
    );
}
