mod cron;
mod json_lines;
mod knowledge;
mod models;

use crate::error::Error;
use crate::tests::{Fake, shows};
use crabtalk_proto::{
    ApprovalInfo, AskOption, AskQuestion, AskUserEvent, HistoryEntry, Image, PendingAsk,
    ReloadReport, Status, ToolCallInfo,
};

async fn output(fake: &Fake, words: &str) -> String {
    let mut at = fake.at(words);
    at.run().await.unwrap();
    at.out.text()
}

#[tokio::test]
async fn conversations_are_a_table_or_json() {
    let fake = Fake::start().await;
    assert_eq!(
        output(&fake, "conversations").await,
        "AGENT  SENDER  MESSAGES  USED        TITLE\n\
         crab   user    2         2026-11-21  a<U+001B>[1m title\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&output(&fake, "conversations --json").await).unwrap();
    assert_eq!(
        (&json["agent"], &json["message_count"]),
        (&"crab".into(), &2.into())
    );
}

#[tokio::test]
async fn truncated_list_is_reported() {
    let fake = Fake::start().await;
    for (words, said) in [
        ("conversations", ""),
        ("conversations -n 0", ""),
        (
            "conversations -n 1",
            "crabtalk: only the latest 1; `-n 0` lists all\n",
        ),
    ] {
        let mut at = fake.at(words);
        at.run().await.unwrap();
        assert_eq!(at.err.text(), said, "{words}");
    }
}

#[tokio::test]
async fn history_turns_pages_until_it_has_enough() {
    let fake = Fake::start().await;
    let entry = |index: u64, role: &str, content: &str| HistoryEntry {
        index,
        role: role.into(),
        content: content.into(),
        ..HistoryEntry::default()
    };
    let mut call = entry(3, "assistant", "I look");
    call.tool_calls.push(ToolCallInfo {
        name: "bash".into(),
        arguments: r#"{"command":"ls"}"#.into(),
        ..ToolCallInfo::default()
    });
    let mut shown = entry(4, "tool", "a\nb");
    shown.images.push(Image {
        media_type: "image/png".into(),
        data: vec![0; 34_000].into(),
    });
    let mut guest = entry(5, "assistant", "done\n");
    guest.agent = "rev".into();
    *fake.script.history.lock().unwrap() = vec![
        entry(1, "user", "first"),
        entry(2, "user", "look"),
        call,
        shown,
        guest,
    ];
    assert_eq!(
        output(&fake, "history -n 4").await,
        "user> look\nassistant> I look\n    > bash ls\n    < a b\n      [image/png, 34 KB]\nrev> done\n"
    );
    assert_eq!(
        output(&fake, "history -n 3 --before 3").await,
        "user> first\nuser> look\n"
    );
    assert_eq!(output(&fake, "history --json").await.lines().count(), 5);
}

#[tokio::test]
async fn refusal_shows_the_daemons_message() {
    let fake = Fake::start().await;
    let refusal = Err(Status::not_found("nothing runs in (crab, user)"));
    fake.script.replies.lock().unwrap().push_back(refusal);
    match fake.at("kill").run().await {
        Err(Error::Refused { code: 404, message }) => {
            assert_eq!(message, "nothing runs in (crab, user)");
        }
        other => panic!("{other:?}"),
    }
}

fn option(label: &str) -> AskOption {
    AskOption {
        label: label.into(),
        ..AskOption::default()
    }
}

fn pending_approval() -> PendingAsk {
    PendingAsk {
        agent: "crab".into(),
        sender: "tg:1".into(),
        ask: Some(AskUserEvent {
            ask_id: "a1".into(),
            kind: "approval".into(),
            tool: "bash".into(),
            detail: "ls\n-l\u{202e}".into(),
            cwd: "/w".into(),
            always: Some(ApprovalInfo {
                agent: "crab".into(),
                sender: "tg:1".into(),
                tool: "bash".into(),
                exact: "ls\n-l\u{202e}".into(),
                cwd: "/w".into(),
                ..ApprovalInfo::default()
            }),
            questions: vec![AskQuestion {
                options: ["Allow once", "Allow always", "Deny"].map(option).into(),
                ..AskQuestion::default()
            }],
            ..AskUserEvent::default()
        }),
        asked_at: "now".into(),
        ..PendingAsk::default()
    }
}

/// Expected text of this approval.
const SHOWN: &str = "crab wants to use bash (2 lines):\n    ls\n    -l<U+202E>\n  in /w\n  \
     Always: allow this exact command in this folder\n";

#[tokio::test]
async fn approve_repeats_what_it_allows() {
    let mut fake = Fake::start().await;
    *fake.script.asks.lock().unwrap() = vec![pending_approval()];
    assert_eq!(
        output(&fake, "asks").await,
        format!("a1  approval  crab for tg:1  now\n{SHOWN}")
    );
    let mut at = fake.at("approve a1");
    at.run().await.unwrap();
    assert!(at.err.text().starts_with(SHOWN), "{}", at.err.text());
    assert_eq!(fake.next_told().await, "reply a1 Allow once");
    output(&fake, "approve --always --yes").await;
    assert_eq!(fake.next_told().await, "reply a1 Allow always");
    let error = fake.at("approve --conversation --yes").run().await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("\"Allow for this conversation\""), "{error}");
    let listed = fake.script.asks.lock().unwrap()[0].clone();
    let mut ask = listed.ask.clone().unwrap();
    ask.questions[0]
        .options
        .push(option("Allow for this conversation"));
    fake.script.asks.lock().unwrap()[0].ask = Some(ask);
    output(&fake, "approve --conversation --yes").await;
    assert_eq!(
        fake.next_told().await,
        "reply a1 Allow for this conversation"
    );
    fake.script.asks.lock().unwrap()[0] = listed;
    // If several are pending, one must be named.
    let mut another = pending_approval();
    another.ask.as_mut().unwrap().ask_id = "a2".into();
    fake.script.asks.lock().unwrap().push(another);
    let mut at = fake.at("approve --yes");
    let error = at.run().await.unwrap_err().to_string();
    assert_eq!(error, "several are pending, name one: a1, a2");
    output(&fake, "deny a1 --reason no").await;
    assert_eq!(fake.next_told().await, "reply a1 Deny: no");
    output(&fake, "reply --id a1 yes please").await;
    assert_eq!(fake.next_told().await, "reply a1 yes please");
}

#[tokio::test]
async fn approve_asks_again_at_a_terminal() {
    let mut fake = Fake::start().await;
    *fake.script.asks.lock().unwrap() = vec![pending_approval()];
    for (typed, allowed) in [("y", true), ("n", false), ("", false)] {
        let mut at = fake.at("approve a1");
        let (typist, shown) = at.with_person();
        // Too early to count as an answer.
        typist.send("y").await.unwrap();
        let drive = async {
            shows(&shown, "Allow it once? [y]es, [n]o > ", 1).await;
            typist.send(typed).await.unwrap();
        };
        let (done, ()) = tokio::join!(at.run(), drive);
        assert_eq!(done.is_ok(), allowed, "{typed}");
        assert!(shown.text().starts_with(SHOWN), "{}", shown.text());
        if allowed {
            assert_eq!(fake.next_told().await, "reply a1 Allow once");
        }
        assert!(fake.told.try_recv().is_err());
    }
}

#[tokio::test]
async fn stats_and_status_are_printed() {
    let fake = Fake::start().await;
    assert!(
        output(&fake, "stats")
            .await
            .starts_with("version                  9.9.9\n")
    );
    let status = output(&fake, "daemon status --json").await;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(status["uptime_secs"], 61);
    assert!(
        output(&fake, "daemon start --json")
            .await
            .contains("\"started\":false")
    );
}

#[tokio::test]
async fn missing_daemon_has_its_exit_code() {
    let mut fake = Fake::start().await;
    fake.stop().await;
    for words in ["stats --no-start", "daemon status", "daemon reload"] {
        assert!(
            matches!(fake.at(words).run().await, Err(Error::NoDaemon(_))),
            "{words}"
        );
    }
    let mut at = fake.at("daemon stop");
    at.run().await.unwrap();
    assert_eq!(at.err.text(), "crabtalk: no daemon runs\n");
}

/// A hanging daemon must not be reported as missing.
#[tokio::test]
async fn hanging_daemon_is_not_reported_as_missing() {
    let mut fake = Fake::start().await;
    fake.stop().await;
    let mut at = fake.at("daemon status");
    let socket = at.context.home.socket();
    let _ = std::fs::remove_file(&socket);
    let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    // The request waits only for the timeout.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let Err(Error::NoDaemon(said)) = at.run().await else {
        panic!("no daemon answers");
    };
    assert!(begun.elapsed().as_secs() <= 60, "{:?}", begun.elapsed());
    let own = format!("pid {}", std::process::id());
    assert!(
        said.contains(&own) && said.contains("does not answer"),
        "{said}"
    );
    assert!(!said.contains("no daemon runs"), "{said}");
}

#[tokio::test]
async fn logs_end_with_the_last_lines() {
    let fake = Fake::start().await;
    let at = fake.at("stats");
    std::fs::create_dir(at.context.home.logs_dir()).unwrap();
    std::fs::write(at.context.home.log_file(), "a\nb\nc").unwrap();
    assert_eq!(output(&fake, "daemon logs -n 2").await, "b\nc\n");
    assert_eq!(output(&fake, "daemon logs -n 0").await, "");
}

#[tokio::test]
async fn an_empty_question_is_a_usage_error() {
    let fake = Fake::start().await;
    assert!(matches!(
        fake.at("ask --no-stdin").run().await,
        Err(Error::Usage(_))
    ));
    let mut at = fake.at("ask --no-stdin --cwd /nowhere/at/all x");
    assert!(matches!(at.run().await, Err(Error::Usage(_))));
}

#[tokio::test]
async fn reload_prints_warnings_errors_and_kept_parts() {
    let fake = Fake::start().await;
    let report = ReloadReport {
        warnings: vec!["config.toml:3:1: unknown key `modell`".into()],
        errors: vec!["agents/a.md: it is empty".into()],
        kept: vec!["the agent a is as it was before".into()],
    };
    *fake.script.report.lock().unwrap() = report.clone();
    let mut at = fake.at("daemon reload");
    assert!(
        at.run()
            .await
            .unwrap_err()
            .to_string()
            .contains("parts were not reloaded")
    );
    assert_eq!(
        at.err.text(),
        "crabtalk: warning: config.toml:3:1: unknown key `modell`\ncrabtalk: agents/a.md: it is \
         empty\ncrabtalk: still active: the agent a is as it was before\n"
    );
    let report = ReloadReport {
        errors: Vec::new(),
        ..report
    };
    *fake.script.report.lock().unwrap() = report;
    let mut at = fake.at("daemon reload");
    at.run().await.unwrap();
    assert!(at.err.text().contains("unknown key `modell`"));
    assert!(at.err.text().ends_with("active runs keep the old one\n"));
}
