//! The command line as scripts use it: streams, exit codes, JSON.

use crate::rig::{ModelServer, TestEnv};
use crabtalk_proto::Client;
use crabtalk_testkit::scripted::{Reply, Script, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

#[tokio::test]
async fn first_question_starts_the_daemon() {
    let env = TestEnv::new();
    let first = env.run(&["ask", "hello"]).await;
    assert!(
        first.stderr.contains("crabtalk: started the daemon ("),
        "{first:?}"
    );
    let answer = first.ok();
    assert!(answer.contains("You told me: hello"), "{answer}");
    assert!(
        answer.ends_with('\n') && !answer.contains("crabtalk:"),
        "{answer}"
    );
    let second = env.run(&["what is this"]).await;
    assert!(!second.stderr.contains("started"), "{second:?}");
    assert!(second.ok().contains("You told me: what is this"));
    let piped = env
        .run_with(&["ask", "sum up"], Some("piped words\n"))
        .await
        .ok();
    assert!(
        piped.contains("You told me: sum up\n\npiped words"),
        "{piped}"
    );
    let unread = env.run_with(&["ask", "alone", "--no-stdin"], Some("piped words\n"));
    assert!(!unread.await.ok().contains("piped words"));
    let history = env.run(&["history"]).await.ok();
    assert!(
        history.starts_with("user> hello\ncrab> I am the offline")
            || history.starts_with("user> hello\nassistant> I am the offline"),
        "{history}"
    );
    env.run(&["daemon", "stop"]).await.ok();
}

#[tokio::test]
async fn denial_without_a_terminal_names_a_working_rule() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let question = "/tool bash {\"command\":\"touch proof\"}";
    let denied = env.run(&["ask", question]).await;
    for says in [
        "denied, since there is no terminal to ask on: crab wants to use bash:",
        "touch proof",
        "crabtalk agents edit crab",
        "--wait",
    ] {
        assert!(denied.stderr.contains(says), "{says}: {denied:?}");
    }
    let answer = denied.stdout;
    assert!(answer.contains("bash failed:"), "{answer}");
    assert!(answer.contains("no terminal to approve it on"), "{answer}");
    assert!(!env.work.join("proof").exists());

    let advice = denied
        .stderr
        .lines()
        .find_map(|line| line.split_once('`')?.1.split_once("` to `permissions`"))
        .unwrap()
        .0;
    env.agent("crab", &format!("permissions: {{ {advice} }}"));
    env.run(&["daemon", "reload"]).await.ok();
    let allowed = env.run(&["ask", question]).await.ok();
    assert!(allowed.contains("bash answered:"), "{allowed}");
    assert!(env.work.join("proof").exists());

    let asked = env.run(&["ask", "/ask Who is there?"]).await;
    assert!(asked.stderr.contains("no terminal"), "{asked:?}");
    assert!(asked.ok().contains("nobody is at the terminal"));
}

#[tokio::test]
async fn exit_codes_tell_what_happened() {
    let model = ModelServer::start(Script::openai([
        Reply::error(401, "invalid_api_key", "no such key"),
        openai::text("fine"),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    let none = env.run(&["--no-start", "ask", "hi"]).await.fails(3);
    assert!(
        none.contains("--no-start") && none.contains("daemon start"),
        "{none}"
    );
    assert!(!env.socket().exists());
    env.run(&["daemon", "status"]).await.fails(3);
    env.run(&["daemon", "reload"]).await.fails(3);

    let _daemon = env.daemon().await;
    let failed = env.run(&["ask", "hi"]).await.fails(1);
    assert!(failed.contains("401"), "{failed}");
    assert_eq!(env.run(&["ask", "hi"]).await.ok(), "fine\n");
    let unknown = env.run(&["ask", "hi", "--agent", "nobody"]).await.fails(1);
    assert!(unknown.contains("there are: crab"), "{unknown}");
    for (arguments, says) in [
        (&["ask"][..], "nothing to ask"),
        (&["histroy"], "did you mean `history`?"),
        (&["ask", "--bogus"], "--bogus"),
        (
            &["ask", "hi", "--cwd", "/does/not/exist"],
            "/does/not/exist",
        ),
        (&["--connect", "tcp://x:1", "ask", "hi"], "--connect"),
    ] {
        let usage = env.run(arguments).await.fails(2);
        assert!(usage.contains(says), "{usage}");
    }
    assert!(env.run(&["--help"]).await.ok().contains("Usage"));
}

#[tokio::test]
async fn interrupt_cancels_the_run_with_exit_130() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut command = env.program(crate::rig::CRABTALK);
    command.args(["ask", "--json", "/slow 60000 never to be said"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = crate::rig::within("the start", lines.next_line()).await;
    assert!(first.unwrap().unwrap().contains("\"start\""));
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = crate::rig::within("an interrupted ask", child.wait()).await;
    assert_eq!(status.unwrap().code(), Some(130));
    let listed = env.run(&["conversations", "--json"]).await.ok();
    assert_eq!(json_lines(&listed)[0]["running"], false);
    let history = env.run(&["history", "--json"]).await.ok();
    assert_eq!(json_lines(&history).len(), 1);
}

#[tokio::test]
async fn folder_of_a_message_applies_to_its_run() {
    let env = TestEnv::new();
    let place = env.user_home.join("place");
    std::fs::create_dir(&place).unwrap();
    env.agent("crab", "permissions: { bash: allow }\ncwd: ~/place");
    let _daemon = env.daemon().await;
    let pwd = "/tool bash {\"command\": \"pwd\"}";
    let work = env.work.to_str().unwrap();
    let place = place.to_str().unwrap();
    // The first message creates the conversation without settings.
    for (arguments, want) in [
        (&["ask", pwd][..], work),
        (&["ask", "--cwd", "", pwd], place),
        (&["ask", "--cwd", "/", pwd], "/"),
        (&["ask", "--cwd", "", pwd], place),
    ] {
        let said = env.run(arguments).await.ok();
        assert!(
            said.contains(&format!(": {want}\n")) || said.contains(&format!("{want}\n")),
            "{arguments:?}: {said}"
        );
    }
    let set = crabtalk_proto::SetConversationMsg {
        cwd: Some(work.into()),
        ..Default::default()
    };
    env.connect().await.set_conversation(set).await.unwrap();
    let said = env.run(&["ask", "--cwd", "", pwd]).await.ok();
    assert!(said.contains(work), "{said}");
}
