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
        mode: None,
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

mod long {
    use super::super::log::MAX_BYTES;
    use super::*;
    use crabtalk_domain::storage::{ConversationLog, NewConversation, Record, Storage};
    use crabtalk_domain::{ConversationKey, Image, ImageType, Message, ToolCall, ToolCallInfo};
    use crabtalk_testkit::MemoryStore;

    struct Long {
        key: Arc<ConversationKey>,
        disk: Box<dyn ConversationLog>,
        log: Arc<RunLog>,
        said: Vec<AgentEvent>,
    }

    impl Long {
        async fn new() -> Self {
            let key = Arc::new(ConversationKey::new("crab", "user").expect("valid"));
            let store = MemoryStore::default();
            let opened = store.open(&key, Some(NewConversation::default())).await;
            let disk = opened.expect("in memory").expect("created").log;
            let log = Arc::new(RunLog::default());
            log.set_store(Arc::new(store), Arc::clone(&key));
            Self {
                key,
                disk,
                log,
                said: Vec::new(),
            }
        }

        fn publish(&mut self, event: AgentEvent) {
            self.said.push(event.clone());
            self.log.publish(event);
        }

        fn append(&mut self, message: Message) -> crabtalk_domain::storage::Position {
            let appended = self.disk.append(&[Record::Message(Arc::new(message))]);
            let appended = futures_util::FutureExt::now_or_never(appended);
            appended.expect("waits for nothing").expect("in memory")
        }

        /// Thinks, says, calls two tools; the results come in reverse.
        fn step(&mut self, step: usize) {
            let piece = |what: &str| format!("{what}{step} ").repeat(2_000);
            let thinking = [piece("t"), piece("u")];
            let text = [piece("a"), piece("ä"), piece("c")];
            for event in thinking.iter().cloned().map(AgentEvent::Thinking) {
                self.publish(event);
            }
            for event in text.iter().cloned().map(AgentEvent::Text) {
                self.publish(event);
            }
            let ids = [format!("{step}x"), format!("{step}y")];
            let mut message = Message::assistant(text.concat());
            message.thinking.push(crabtalk_domain::Thinking {
                text: thinking.concat(),
                signature: String::new(),
            });
            let call = |id: &String| ToolCall {
                id: id.clone(),
                name: "tool".into(),
                arguments: piece("args"),
            };
            message.tool_calls = ids.iter().map(call).collect();
            let info = |call: &ToolCall| ToolCallInfo {
                call_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            };
            let calls = message.tool_calls.iter().map(info).collect();
            let at = self.append(message);
            self.log.answer_stored(at);
            self.publish(AgentEvent::ToolStart(calls));
            for id in ids.iter().rev() {
                let output = piece(id);
                let image = Image::new(ImageType::Png, piece(id).as_bytes()).expect("small");
                let message = Message::tool(id, output.clone(), false);
                let at = self.append(message.with_images(vec![image.clone()]));
                self.log.result_stored(id, at);
                self.publish(AgentEvent::ToolResult {
                    call_id: id.clone(),
                    output,
                    duration_ms: 7,
                    is_error: false,
                    images: vec![image],
                });
            }
            self.publish(AgentEvent::ToolsComplete);
        }
    }

    /// Texts put together, everything else as it is.
    fn merged(events: impl IntoIterator<Item = AgentEvent>) -> Vec<AgentEvent> {
        let mut out: Vec<AgentEvent> = Vec::new();
        for event in events {
            match (out.last_mut(), event) {
                (Some(AgentEvent::Text(text)), AgentEvent::Text(more)) => text.push_str(&more),
                (Some(AgentEvent::Thinking(text)), AgentEvent::Thinking(more)) => {
                    text.push_str(&more);
                }
                (_, event) => out.push(event),
            }
        }
        out
    }

    #[tokio::test]
    async fn a_long_run_is_replayed_whole_from_bounded_memory() {
        let mut long = Long::new().await;
        long.publish(start());
        for step in 0..60 {
            long.step(step);
            assert!(
                long.log.bytes() <= MAX_BYTES + 200_000,
                "{}",
                long.log.bytes()
            );
        }
        long.publish(AgentEvent::Compacted {
            tokens_before: 2,
            tokens_after: 1,
            title: String::new(),
            failed: String::new(),
        });
        long.step(60);
        long.publish(AgentEvent::End(End::default()));
        let said: usize = long
            .said
            .iter()
            .map(super::super::entry::Entry::weight)
            .sum();
        assert!(said > MAX_BYTES, "{said}");
        for after in [0, 3, 12, 300] {
            let mut reader = long.log.subscribe(after);
            let (mut seen, mut events) = (after, Vec::new());
            while let Some(next) = reader.next().await.expect("not refused") {
                assert!(next.seq > seen, "{} after {seen} of {}", next.seq, long.key);
                seen = next.seq;
                events.push(next.event);
            }
            let want = merged(long.said.iter().skip(after as usize).cloned());
            assert!(merged(events) == want, "the replay after {after} differs");
        }
    }
}

#[tokio::test]
async fn an_answer_is_the_text_of_the_last_step_without_notices() {
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
