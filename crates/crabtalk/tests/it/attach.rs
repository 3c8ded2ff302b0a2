//! Several clients on one conversation, and resumed streams.

use crate::rig::{ModelServer, TestEnv, chunks, end_of, kinds, stream_to_end, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    AttachMsg, Client, ClientError, ListActiveConversationsMsg, Ping, StreamEvent, StreamMsg,
};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::{Stream, StreamExt};

fn hello() -> StreamMsg {
    StreamMsg {
        content: "hello".into(),
        ..StreamMsg::default()
    }
}

/// Reads up to the first text.
async fn to_text(
    events: &mut (impl Stream<Item = Result<StreamEvent, ClientError>> + Unpin),
) -> Vec<StreamEvent> {
    let mut seen = Vec::new();
    within("some text", async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            let is_text = matches!(event.event, Some(Event::Chunk(_)));
            seen.push(event);
            if is_text {
                return;
            }
        }
    })
    .await;
    seen
}

/// A server whose only answer stalls in the middle until released.
async fn halting() -> ModelServer {
    let reply = openai::pieces(&["first ", "second"]).held_after(2);
    ModelServer::start(Script::openai([reply])).await
}

#[tokio::test]
async fn two_clients_see_the_same_run() {
    let model = halting().await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let (mut asking, mut attached) = (env.connect().await, env.connect().await);
    let mut asked = std::pin::pin!(asking.stream(hello()));
    let mut begun = to_text(&mut asked).await;
    let mut other = std::pin::pin!(attached.attach(AttachMsg::default()));
    let mut seen = to_text(&mut other).await;

    let mut third = env.connect().await;
    third.ping(Ping {}).await.unwrap();
    let active = third
        .list_active_conversations(ListActiveConversationsMsg::default())
        .await
        .unwrap();
    assert!(active.conversations[0].running, "{active:?}");

    model.release().await;
    let rest = async {
        begun.extend(asked.map(Result::unwrap).collect::<Vec<_>>().await);
        seen.extend(other.map(Result::unwrap).collect::<Vec<_>>().await);
    };
    within("both ends", rest).await;
    assert_eq!(chunks(&begun), "first second");
    assert_eq!(chunks(&seen), "first second");
    assert_eq!(end_of(&begun), end_of(&seen));
    assert_eq!(kinds(&begun), "Start TextStart Chunk TextEnd End");
    let block = begun.iter().find_map(|event| match &event.event {
        Some(Event::TextStart(block)) => Some(block),
        _ => None,
    });
    assert_eq!(block.map(|block| block.agent.as_str()), Some("crab"));
    // Readers other than the sender get the user's message.
    assert_eq!(
        kinds(&seen),
        "Start UserMessage TextStart Chunk TextEnd End"
    );
    let starts = |events: &[StreamEvent]| events.first().cloned();
    assert_eq!(starts(&begun), starts(&seen));
    // Attaching to a finished run returns its end.
    let mut late = env.connect().await;
    let late: Vec<_> = late
        .attach(AttachMsg::default())
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(end_of(&late).code, 0);
}

#[tokio::test]
async fn attach_resumes_a_run_after_an_event_and_after_its_end() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let events = stream_to_end(&env, hello()).await;
    let (first, last) = (&events[0], events.last().unwrap());
    let Some(Event::End(end)) = &last.event else {
        panic!("{last:?}")
    };
    assert_eq!(end.run, 1);
    let attach = |run, after| AttachMsg {
        run: Some(run),
        after: Some(after),
        only_run: true,
        ..AttachMsg::default()
    };
    let told = async |request| {
        let mut connection = env.connect().await;
        connection.attach(request).collect::<Vec<_>>().await
    };
    let rest = told(attach(1, first.seq + 1)).await;
    let rest: Vec<_> = rest.into_iter().map(Result::unwrap).collect();
    assert!(rest[0].seq > first.seq + 1 && rest.len() > 2, "{rest:?}");
    assert_eq!(rest.last(), Some(last));
    let none = told(attach(7, 1)).await;
    assert_eq!(none[0].as_ref().unwrap_err().code(), Some(404), "{none:?}");
    // After a restart only the end remains.
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    let rest = told(attach(1, first.seq)).await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let Some(Event::End(again)) = &rest[0].as_ref().unwrap().event else {
        panic!("{rest:?}")
    };
    assert_eq!((again.run, again.code), (1, 0));
    // Later runs do not change that.
    stream_to_end(&env, hello()).await;
    assert_eq!(told(attach(1, first.seq)).await.len(), 1);
    let runs = crate::rig::entries(&env, "", "").await;
    let runs: Vec<u64> = runs.iter().map(|entry| entry.run).collect();
    assert_eq!(runs, [1, 1, 2, 2]);
    let mut bad = attach(1, 1);
    bad.run = None;
    let refused = told(bad).await;
    assert_eq!(refused[0].as_ref().unwrap_err().code(), Some(400));
}
