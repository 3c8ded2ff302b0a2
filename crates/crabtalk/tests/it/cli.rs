//! The command line as scripts use it: streams, exit codes, JSON.

use crate::rig::{ModelServer, TestEnv};
use crabtalk_proto::{Client, ListActiveConversationsMsg};
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
async fn json_prints_one_value_per_line() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    let question = "/tool bash {\"command\":\"echo hi\"}";
    let events = json_lines(&env.run(&["ask", "--json", question]).await.ok());
    let mut types: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    // Told once the command has run for a moment, which on a slow machine it does.
    types.retain(|kind| *kind != "tool_progress");
    types.dedup();
    assert_eq!(
        types,
        [
            "start",
            "tool_start",
            "tool_result",
            "tools_complete",
            "text_start",
            "chunk",
            "text_end",
            "end"
        ]
    );
    let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert_eq!(events.last().unwrap()["code"], 0);

    let stats = json_lines(&env.run(&["stats", "--json"]).await.ok());
    assert_eq!(stats[0]["active_model"], "offline");
    let listed = json_lines(&env.run(&["conversations", "--json"]).await.ok());
    assert_eq!(listed[0]["sender"], "user");
    let history = json_lines(&env.run(&["history", "--json", "-n", "1"]).await.ok());
    assert_eq!(history.len(), 1);
    assert_eq!(history[0]["role"], "assistant");
}

#[tokio::test]
async fn lists_are_newest_first_and_report_truncation() {
    let env = TestEnv::new();
    for sender in ["early", "late"] {
        env.run(&["--as", sender, "ask", "hello"]).await.ok();
    }
    let all = json_lines(&env.run(&["conversations", "--json"]).await.ok());
    let senders: Vec<&str> = all.iter().map(|c| c["sender"].as_str().unwrap()).collect();
    assert_eq!(senders, ["late", "early"]);
    let latest = env.run(&["conversations", "--json", "-n", "1"]).await;
    assert_eq!(json_lines(&latest.stdout)[0]["sender"], "late");
    assert_eq!(json_lines(&latest.stdout).len(), 1);
    assert!(latest.stderr.contains("-n 0"), "{}", latest.stderr);
    let mut connection = env.connect().await;
    let request = |limit| ListActiveConversationsMsg {
        limit,
        ..ListActiveConversationsMsg::default()
    };
    for (limit, listed, more) in [(0, 2, false), (1, 1, true), (2, 2, false)] {
        let active = connection.list_active_conversations(request(limit)).await;
        let active = active.unwrap();
        assert_eq!((active.conversations.len(), active.more), (listed, more));
    }
}

#[tokio::test]
async fn unknown_command_runs_a_program() {
    let mut env = TestEnv::new();
    env.script(
        "crabtalk-greet",
        "#!/bin/sh\necho \"greetings from $1\"\nexit 7\n",
    );
    let path = format!("{}:{}", env.work.display(), std::env::var("PATH").unwrap());
    env.set("PATH", &path);
    let ran = env.run(&["greet", "afar"]).await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(7), "greetings from afar\n")
    );
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
    // The first message makes the conversation, and settles nothing else.
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
