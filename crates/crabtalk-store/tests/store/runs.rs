//! Traces of runs in a log.

use crate::support::*;
use crabtalk_domain::Usage;
use crabtalk_domain::storage::*;

fn start(id: u64) -> Record {
    Record::Run(run(id, RunPhase::Start))
}

fn end(id: u64, code: u32, error: &str) -> Record {
    Record::Run(RunRecord {
        code,
        error: error.into(),
        ..run(id, RunPhase::End)
    })
}

async fn traced(home: &Home, run: u64) -> Option<(Option<String>, Option<u32>)> {
    let pair = key("crab", "user");
    let trace = home.store.trace(&pair, run).await.expect("reads")?;
    Some((trace.answer, trace.end.map(|end| end.code)))
}

#[tokio::test]
async fn a_run_is_found_wherever_it_is_by_now() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[start(1), user("a"), said("one"), end(1, 0, "")])
        .await
        .expect("appends");
    log.append(&[start(2), user("b"), end(2, 502, "no network")])
        .await
        .expect("appends");
    log.append(&[compact("so far", 1)]).await.expect("appends");
    log.append(&[start(3), user("c"), said("three")])
        .await
        .expect("appends");
    let answer = |text: &str| Some(text.to_owned());
    assert_eq!(traced(&home, 1).await, Some((answer("one"), Some(0))));
    assert_eq!(traced(&home, 2).await, Some((None, Some(502))));
    assert_eq!(traced(&home, 3).await, Some((answer("three"), None)));
    assert_eq!(traced(&home, 4).await, None);
}

#[tokio::test]
async fn an_end_keeps_what_the_run_came_to() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let end = RunRecord {
        usage: Some(Usage {
            prompt_tokens: 10,
            completion_tokens: 2,
            ..Usage::default()
        }),
        duration_ms: Some(1500),
        ..run(1, RunPhase::End)
    };
    log.append(&[start(1), user("a"), Record::Run(end.clone())])
        .await
        .expect("appends");
    let trace = home.store.trace(&key("crab", "user"), 1).await;
    assert_eq!(trace.expect("reads").and_then(|trace| trace.end), Some(end));
}

#[tokio::test]
async fn continued_run_keeps_its_earlier_answer() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let again = RunRecord {
        tries: 1,
        ..run(2, RunPhase::Start)
    };
    log.append(&[start(1), user("a"), said("one")])
        .await
        .expect("appends");
    log.append(&[
        Record::Run(run(1, RunPhase::Interrupted)),
        Record::Run(again),
        end(2, 0, ""),
    ])
    .await
    .expect("appends");
    let answer = Some("one".to_owned());
    assert_eq!(traced(&home, 2).await, Some((answer, Some(0))));
}

#[tokio::test]
async fn pages_report_failed_runs_among_their_messages() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    for id in 1..=4 {
        let text = format!("said {id}");
        let failed = end(id, 502, &format!("failure {id}"));
        log.append(&[start(id), user(&text), failed])
            .await
            .expect("appends");
    }
    home.restart();
    let source = LogPart::Conversation(key("crab", "user"));
    let (mut before, mut told) = (None, Vec::new());
    loop {
        let page = home.store.page(&source, before, 3).await.expect("reads");
        let failed = page.runs.iter().filter(|(_, run)| run.is_failure());
        let errors = failed.map(|(_, run)| run.error.clone());
        told.push(errors.collect::<Vec<_>>());
        before = page.entries.first().map(|entry| entry.index);
        if !page.more {
            break;
        }
    }
    assert_eq!(
        told,
        [
            vec!["failure 2", "failure 3", "failure 4"],
            vec!["failure 1"]
        ]
    );
    let opened = home.find("crab", "user").await.expect("exists");
    let last = opened.last_end.expect("a run");
    assert_eq!((last.code, last.error.as_str()), (502, "failure 4"));
}

#[tokio::test]
async fn invalid_run_number_does_not_change_the_next_one() {
    let home = Home::new();
    home.write(
        "crab_user_1.jsonl",
        "{\"agent\":\"crab\",\"created_by\":\"user\"}\n\
         {\"run\":{\"id\":1,\"event\":\"start\"}}\n\
         {\"role\":\"user\",\"content\":\"hi\"}\n\
         {\"run\":{\"id\":18446744073709551615,\"event\":\"start\"}}\n\
         {\"meta\":{\"last_run\":18446744073709551615,\"uptime_secs\":18446744073709551615}}\n\
         {\"run\":{\"id\":1,\"event\":\"end\"}}\n",
    );
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!((opened.last_run, opened.open_run), (1, None));
}

#[tokio::test]
async fn a_try_to_carry_on_is_found_in_the_log() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[start(1), user("a")]).await.expect("appends");
    let tried = RunRecord {
        tries: 2,
        ..run(1, RunPhase::Start)
    };
    let state = MetaRecord {
        last_run: Some(1),
        open_run: Some(tried.clone()),
        ..MetaRecord::default()
    };
    log.append(&[Record::Meta(state)]).await.expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.open_run, Some(tried));
    let list = home.store.list(None, None).await.expect("lists");
    assert!(list[0].has_open_run);
}
