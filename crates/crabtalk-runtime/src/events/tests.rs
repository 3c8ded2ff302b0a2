use super::RunLog;
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
    }
}

/// Everything that is there for a reader, as `seq:text`.
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
fn a_replay_is_merged_and_keeps_its_numbers() {
    let log = ended();
    assert_eq!(read(&log, 0), "1:. 3:(hm) 6:one two three 7:end");
    assert_eq!(read(&log, 2), "3:(m) 6:one two three 7:end");
    assert_eq!(read(&log, 4), "6:two three 7:end");
    assert_eq!(read(&log, 6), "7:end");
    assert_eq!(read(&log, 99), "");
}

#[test]
fn a_live_reader_gets_every_delta_on_its_own() {
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
fn a_reader_in_the_middle_of_a_text_gets_the_rest_once() {
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
async fn a_waiting_reader_is_woken_and_the_end_is_the_end() {
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
async fn a_refusal_reaches_every_reader() {
    let log = Arc::new(RunLog::default());
    let (mut one, mut two) = (log.subscribe(0), log.subscribe(0));
    log.refuse(crate::Error::EmptyContent);
    for reader in [&mut one, &mut two] {
        assert_eq!(reader.next().await.expect_err("refused").code(), 400);
    }
}
