use super::*;
use crate::tests::{Fake, cut, stay};
use crabtalk_proto::client_message::Msg;
use crabtalk_proto::{
    Status, StreamChunk, StreamEnd, StreamStart, TextEndEvent, TextStartEvent, ToolsCompleteEvent,
    UserMessageEvent,
};
use futures_util::StreamExt;
use std::time::Duration;

fn at(seq: u64, event: Event) -> StreamEvent {
    StreamEvent {
        event: Some(event),
        seq,
    }
}

fn start(run: u64) -> StreamEvent {
    let start = StreamStart {
        run,
        ..StreamStart::default()
    };
    at(1, Event::Start(start))
}

fn text_start(seq: u64) -> StreamEvent {
    at(seq, Event::TextStart(TextStartEvent::default()))
}

fn chunk(seq: u64, content: &str) -> StreamEvent {
    let content = content.into();
    at(seq, Event::Chunk(StreamChunk { content }))
}

fn text_end(seq: u64) -> StreamEvent {
    at(seq, Event::TextEnd(TextEndEvent::default()))
}

fn end(seq: u64, run: u64) -> StreamEvent {
    let end = StreamEnd {
        run,
        ..StreamEnd::default()
    };
    at(seq, Event::End(end))
}

fn user(seq: u64) -> StreamEvent {
    at(seq, Event::UserMessage(UserMessageEvent::default()))
}

/// Describes each item in one token; texts are unchanged.
async fn told(run: Run) -> String {
    let words: Vec<String> = run
        .map(|news| match news {
            Ok(RunNews::Event(event)) => match event.event {
                Some(Event::Chunk(chunk)) => format!("{}:{}", event.seq, chunk.content),
                Some(Event::Start(_)) => "start".into(),
                Some(Event::End(_)) => "end".into(),
                Some(Event::UserMessage(_)) => "user".into(),
                _ => format!("{}.", event.seq),
            },
            Ok(RunNews::Lost { .. }) => "LOST".into(),
            Ok(RunNews::Back) => "BACK".into(),
            Ok(RunNews::Missing { behind }) => format!("MISSING behind {behind}"),
            Err(error) => format!("{error}"),
        })
        .collect()
        .await;
    words.join(" ")
}

fn hello() -> StreamMsg {
    StreamMsg {
        agent: "crab".into(),
        content: "hello".into(),
        sender: Some("me".into()),
        ..StreamMsg::default()
    }
}

#[tokio::test]
async fn text_is_resumed_wherever_it_was_cut() {
    let whole = [
        start(7),
        text_start(3),
        chunk(4, "héllo "),
        chunk(5, "wörld"),
        text_end(6),
        text_start(7),
        chunk(8, "more"),
        text_end(9),
        end(10, 7),
    ];
    let want = "start 3. 4:héllo 5:wörld 6. 7. 8:more 9. end";
    for cut_at in 1..whole.len() {
        let (before, after) = whole.split_at(cut_at);
        // The daemon replays from the requested event, with merged texts.
        let anchor = before.iter().rev();
        let anchor = anchor.map(|event| match event.event {
            Some(Event::Chunk(_)) => None,
            _ => Some(event.seq),
        });
        let anchor = anchor.flatten().next().unwrap();
        let mut replay: Vec<StreamEvent> = Vec::new();
        for event in whole.iter().filter(|event| event.seq > anchor) {
            match (replay.last_mut(), &event.event) {
                (
                    Some(StreamEvent {
                        event: Some(Event::Chunk(merged)),
                        seq,
                    }),
                    Some(Event::Chunk(chunk)),
                ) => {
                    merged.content.push_str(&chunk.content);
                    *seq = event.seq;
                }
                _ => replay.push(event.clone()),
            }
        }
        assert!(after.len() <= replay.len() + 1);
        let mut fake = Fake::turns([cut(before.iter().cloned()), stay(replay)]).await;
        let told = told(fake.client().stream(hello())).await;
        let calm = told.replace("LOST BACK ", "");
        assert_ne!(calm, told);
        // A replay may split the text differently.
        let text = |told: &str| told.replace("4:", "").replace("5:", "").replace(' ', "");
        assert_eq!(text(&calm), text(want), "cut at {cut_at}: {told}");
        assert!(matches!(fake.heard().await, Msg::Stream(_)));
        let Msg::Attach(again) = fake.heard().await else {
            panic!("it attaches")
        };
        assert_eq!(
            (again.agent.as_str(), again.sender.as_str()),
            ("crab", "me")
        );
        assert_eq!((again.run, again.after), (Some(7), Some(anchor)));
        assert!(again.only_run);
    }
}

#[tokio::test]
async fn unanswered_message_is_resent_with_the_same_id() {
    let nothing: [StreamEvent; 0] = [];
    let mut fake = Fake::turns([cut(nothing), stay([start(1), user(2), end(3, 1)])]).await;
    let told = told(fake.client().stream(hello())).await;
    assert_eq!(told, "LOST BACK start end");
    let (Msg::Stream(first), Msg::Stream(second)) = (fake.heard().await, fake.heard().await) else {
        panic!("both are the message")
    };
    assert_eq!(first, second);
    assert_eq!(first.request_id.map(|id| id.len()), Some(32));
}

#[tokio::test]
async fn message_is_sent_again_after_a_broken_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("daemon.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let client = Client::new(crate::Endpoint::of_home(folder.path()), "test");
    let mut run = client.stream(hello());
    let dies = async { drop(listener.accept().await.unwrap()) };
    let (news, ()) = tokio::join!(run.next(), dies);
    assert!(matches!(news, Some(Ok(RunNews::Lost { .. }))), "{news:?}");
}

#[tokio::test]
async fn end_from_the_log_reports_a_gap() {
    let fake = Fake::turns([
        cut([start(4), text_start(3), chunk(4, "he")]),
        stay([end(0, 4)]),
    ])
    .await;
    let told = told(fake.client().stream(hello())).await;
    assert_eq!(told, "start 3. 4:he LOST BACK MISSING behind 4 end");
}

#[tokio::test]
async fn unknown_run_after_a_loss_is_run_gone() {
    let gone = crabtalk_proto::ServerMessage::from(Status::not_found("the last one is 9"));
    let fake = Fake::turns([cut([start(4)]), stay([gone])]).await;
    let told = told(fake.client().stream(hello())).await;
    assert_eq!(
        told,
        "start LOST BACK the daemon no longer has the events of run 4: the last one is 9"
    );
}

#[tokio::test]
async fn first_refusal_ends_the_stream() {
    let busy = crabtalk_proto::ServerMessage::from(Status::too_many("32 runs wait"));
    let mut fake = Fake::turns([stay([busy])]).await;
    let mut run = fake.client().stream(hello());
    let error = run.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(429));
    assert_eq!(error.to_string(), "32 runs wait");
    assert_eq!(error.advice(), Some("try again later"));
    assert!(run.next().await.is_none());
    fake.heard().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_end_after_the_patience() {
    let nothing: [StreamEvent; 0] = [];
    let flaps = std::iter::repeat_with(|| cut(nothing.clone())).take(1_000);
    let turns = std::iter::once(cut([start(1)])).chain(flaps);
    let fake = Fake::turns(turns).await;
    let client = fake.client().with_patience(Duration::from_millis(300));
    let told = told(client.attach(AttachMsg::default())).await;
    let lost = "lost the connection to the daemon, and reconnecting failed for 0 s: the \
                connection to the daemon ended (the peer closed the connection)";
    assert_eq!(told, format!("start LOST BACK {lost}"));
}

#[tokio::test]
async fn own_user_message_is_skipped() {
    let events = [
        start(2),
        user(2),
        at(3, Event::ToolsComplete(ToolsCompleteEvent {})),
        end(4, 2),
    ];
    let fake = Fake::turns([stay(events.clone()), stay(events)]).await;
    let client = fake.client();
    let attached = told(client.attach(AttachMsg::default())).await;
    assert_eq!(attached, "start user 3. end");
    assert_eq!(told(client.stream(hello())).await, "start 3. end");
}

#[tokio::test]
async fn end_of_a_finished_run_is_not_a_gap() {
    let fake = Fake::turns([stay([end(0, 4)])]).await;
    let told = told(fake.client().attach(AttachMsg::default())).await;
    assert_eq!(told, "end");
}
