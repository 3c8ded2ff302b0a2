//! A first session with default settings: reading, searching, editing, testing
//! and committing in a git repository needs no approval.

use super::{results, say};
use crate::rig::{ModelServer, TestEnv, end_of, has_tools, stream_to_end};
use crabtalk_proto::StreamEvent;
use crabtalk_proto::stream_event::Event;
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Maximum questions in a first session.
const MAX_QUESTIONS: usize = 2;

pub(crate) fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=me", "-c", "user.email=me@example.com"])
        .args(args)
        .current_dir(&env.work)
        .env("HOME", &env.user_home)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn questions(events: &[StreamEvent]) -> usize {
    let is_question = |event: &&StreamEvent| matches!(event.event, Some(Event::AskUser(_)));
    events.iter().filter(is_question).count()
}

#[tokio::test]
async fn first_session_asks_at_most_twice() {
    if !has_tools("first_session_asks_at_most_twice", &["git"]) {
        return;
    }
    let commit = "git add -A && git -c user.name=me -c user.email=me@x commit -qm 'fix: names' \
                  && git log --oneline | wc -l";
    let edit = |file: &str| {
        let new = json!({"path": file, "old_string": "old", "new_string": "new"});
        ("edit", new)
    };
    let steps: Vec<Vec<(&str, Value)>> = vec![
        vec![
            ("read", json!({"path": "a.txt"})),
            ("grep", json!({"pattern": "old"})),
        ],
        vec![edit("a.txt"), edit("b.txt"), edit("src/c.txt")],
        vec![(
            "bash",
            json!({"command": "sh test.sh 2>&1 | tail -3; ls -la"}),
        )],
        vec![("bash", json!({"command": commit}))],
    ];
    let replies = steps.iter().enumerate().map(|(at, calls)| {
        let name = format!("step{at}");
        openai::tools(&name, calls)
    });
    let replies: Vec<_> = replies.chain([openai::text("Done.")]).collect();
    let model = ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::with_model(&model);
    for file in ["a.txt", "b.txt", "src/c.txt"] {
        env.write(&format!("work/{file}"), "old\n");
    }
    env.write(
        "work/test.sh",
        "grep -q new a.txt b.txt src/c.txt && echo PASSED\n",
    );
    git(&env, &["init", "-q"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-qm", "begin"]);
    let _daemon = env.daemon().await;

    let events = stream_to_end(&env, say(&env, "rename old to new")).await;
    assert_eq!(end_of(&events).code, 0);
    assert!(questions(&events) <= MAX_QUESTIONS);
    let results = results(&events);
    let failed: Vec<_> = results.iter().filter(|result| result.is_error).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let outputs: Vec<&str> = results.iter().map(|r| r.output.as_str()).collect();
    assert!(
        outputs.iter().any(|output| output.contains("PASSED")),
        "{outputs:?}"
    );
    assert_eq!(git(&env, &["log", "--oneline"]).lines().count(), 2);
    assert_eq!(git(&env, &["status", "--porcelain"]), "");
    assert_eq!(
        fs::read_to_string(env.work.join("src/c.txt")).unwrap(),
        "new\n"
    );
}
