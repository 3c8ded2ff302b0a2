use super::RunLog;
use super::log::MAX_BYTES;
use crabtalk_domain::{AgentEvent, End};
use std::sync::Arc;

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text(text.into())
}

fn start() -> AgentEvent {
    AgentEvent::Start {
        agent: "crab".into(),
        run: 1,
        model: String::new(),
        mode: None,
    }
}

/// All events that a reader finds, as `seq:text`.
fn read(log: &Arc<RunLog>, after: u64) -> String {
    let mut subscription = log.subscribe(after);
    let mut out = Vec::new();
    while let Some(Ok(Some(next))) = subscription.try_next() {
        let seq = next.seq;
        out.push(if let AgentEvent::Text(text) = next.event {
            format!("{seq}:{text}")
        } else if let AgentEvent::Thinking(text) = next.event {
            format!("{seq}:({text})")
        } else if let AgentEvent::End(_) = next.event {
            format!("{seq}:end")
        } else {
            format!("{seq}:.")
        });
    }
    out.join(" ")
}

fn ended() -> Arc<RunLog> {
    let log = Arc::new(RunLog::default());
    for event in [
        start(),
        AgentEvent::Thinking("h".into()),
        AgentEvent::Thinking("m".into()),
    ] {
        log.publish(event);
    }
    for word in ["one ", "two ", "three"] {
        log.publish(text(word));
    }
    log.publish(AgentEvent::End(End::default()));
    log
}

#[test]
fn replays_merge_deltas_and_keep_sequence_numbers() {
    let log = ended();
    assert_eq!(read(&log, 0), "1:. 3:(hm) 6:one two three 7:end");
    assert_eq!(read(&log, 2), "3:(m) 6:one two three 7:end");
    assert_eq!(read(&log, 4), "6:two three 7:end");
    assert_eq!(read(&log, 6), "7:end");
    assert_eq!(read(&log, 99), "");
}

#[test]
fn live_readers_get_each_delta() {
    let log = Arc::new(RunLog::default());
    let mut live = log.subscribe(0);
    log.publish(start());
    log.publish(text("a"));
    log.publish(text("b"));
    let mut seqs = Vec::new();
    while let Some(Ok(Some(next))) = live.try_next() {
        seqs.push((next.seq, next.event));
    }
    assert_eq!(seqs, [(1, start()), (2, text("a")), (3, text("b"))]);
}

#[test]
fn late_readers_get_the_rest_of_a_text_once() {
    let log = Arc::new(RunLog::default());
    log.publish(start());
    log.publish(text("a"));
    log.publish(text("b"));
    let mut late = log.subscribe(0);
    let mut got = String::new();
    let mut take = |late: &mut super::Subscription| {
        while let Some(Ok(Some(next))) = late.try_next() {
            if let AgentEvent::Text(text) = next.event {
                got.push_str(&format!("{}:{text} ", next.seq));
            }
        }
    };
    take(&mut late);
    log.publish(text("c"));
    take(&mut late);
    log.publish(text("d"));
    take(&mut late);
    assert_eq!(got, "3:ab 4:c 5:d ");
}

#[tokio::test]
async fn readers_are_woken_and_nothing_follows_the_end() {
    let log = Arc::new(RunLog::default());
    let mut reader = log.subscribe(0);
    let (next, ()) = tokio::join!(reader.next(), async { log.publish(start()) });
    assert_eq!(next.expect("not refused").map(|n| n.seq), Some(1));
    log.publish(AgentEvent::End(End::default()));
    log.publish(text("too late"));
    assert_eq!(
        reader.next().await.expect("not refused").map(|n| n.seq),
        Some(2)
    );
    assert_eq!(reader.next().await.expect("not refused"), None);
}

#[tokio::test]
async fn refusals_reach_every_reader() {
    let log = Arc::new(RunLog::default());
    let (mut one, mut two) = (log.subscribe(0), log.subscribe(0));
    log.refuse(crate::Error::EmptyContent);
    for reader in [&mut one, &mut two] {
        assert_eq!(reader.next().await.expect_err("refused").code(), 400);
    }
}

#[test]
fn long_runs_drop_earlier_steps_with_a_notice() {
    let log = Arc::new(RunLog::default());
    let mut early = log.subscribe(0);
    log.publish(start());
    for _ in 0..60 {
        log.publish(AgentEvent::TextStart);
        log.publish(text(&"x".repeat(100_000)));
        log.publish(AgentEvent::TextEnd);
        log.answer_stored();
        assert!(log.bytes() <= MAX_BYTES + 100_000, "{}", log.bytes());
    }
    log.publish(AgentEvent::End(End::default()));
    for after in [0, 1, 12] {
        let mut reader = log.subscribe(after);
        let (mut seen, mut notices) = (after, 0);
        while let Some(Ok(Some(next))) = reader.try_next() {
            assert!(next.seq > seen, "{} after {seen}", next.seq);
            seen = next.seq;
            notices += usize::from(matches!(next.event, AgentEvent::Notice(_)));
        }
        assert_eq!((seen, notices), (182, 1), "after {after}");
    }
    let first = early.try_next().expect("there").expect("not refused");
    assert_eq!(first.expect("open").event, start());
}

#[tokio::test]
async fn answers_are_the_last_step_without_notices() {
    let log = Arc::new(RunLog::default());
    let reader = log.subscribe(0);
    let events = [
        start(),
        AgentEvent::TextStart,
        text("let me look"),
        AgentEvent::TextEnd,
        AgentEvent::ToolStart(Vec::new()),
        AgentEvent::TextStart,
        text("here "),
        text("it is"),
        AgentEvent::TextEnd,
        AgentEvent::Notice("mind the step".into()),
        AgentEvent::End(End::default()),
    ];
    events.into_iter().for_each(|event| log.publish(event));
    let answer = reader.answer().await.expect("not refused");
    assert_eq!(answer.text, "here it is");
    assert_eq!(answer.notices, ["mind the step"]);
}
