//! Several clients on one conversation, and the end of a run by a third.

use crate::rig::{ModelServer, TestEnv, chunks, end_of, kinds, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    AttachMsg, Client, ClientError, KillMsg, ListActiveConversationsMsg, Ping, StreamEvent,
    StreamMsg,
};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use futures_util::{Stream, StreamExt};

fn hello() -> StreamMsg {
    StreamMsg {
        content: "hello".into(),
        ..StreamMsg::default()
    }
}

/// Reads up to the first piece of text.
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

/// A server whose only answer stops in the middle until it is released.
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
    // The other one comes late, and sees it from the beginning.
    let mut other = std::pin::pin!(attached.attach(AttachMsg::default()));
    let mut seen = to_text(&mut other).await;

    // Nothing waits for a run of somebody else.
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
    // Whoever did not send it is told what was said.
    assert_eq!(
        kinds(&seen),
        "Start UserMessage TextStart Chunk TextEnd End"
    );
    let starts = |events: &[StreamEvent]| events.first().cloned();
    assert_eq!(starts(&begun), starts(&seen));
    // Over: what is left to tell is its end.
    let mut late = env.connect().await;
    let late: Vec<_> = late
        .attach(AttachMsg::default())
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(end_of(&late).code, 0);
}

#[tokio::test]
async fn a_run_goes_on_without_the_client_that_began_it() {
    let model = halting().await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let mut asking = env.connect().await;
    {
        let mut asked = std::pin::pin!(asking.stream(hello()));
        to_text(&mut asked).await;
    }
    drop(asking);
    let mut attached = env.connect().await;
    let mut events = std::pin::pin!(attached.attach(AttachMsg::default()));
    let mut seen = to_text(&mut events).await;
    model.release().await;
    seen.extend(events.map(Result::unwrap).collect::<Vec<_>>().await);
    assert_eq!(chunks(&seen), "first second");
    let history = crate::rig::entries(&env, "crab", "user").await;
    assert_eq!(history[1].content, "first second");
}

#[tokio::test]
async fn a_kill_from_another_connection_ends_the_run_with_499() {
    let model = halting().await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let mut asking = env.connect().await;
    let mut asked = std::pin::pin!(asking.stream(hello()));
    let mut seen = to_text(&mut asked).await;
    let mut other = env.connect().await;
    other.kill(KillMsg::default()).await.unwrap();
    seen.extend(asked.map(Result::unwrap).collect::<Vec<_>>().await);
    let end = end_of(&seen);
    assert_eq!((end.code, end.error.as_str()), (499, "cancelled"));
    // The question stays, the partial answer does not.
    let history = crate::rig::entries(&env, "crab", "user").await;
    assert_eq!(history.len(), 1, "{history:?}");
    let again = other.kill(KillMsg::default()).await.unwrap_err();
    assert_eq!(again.code(), Some(404));
}

#[tokio::test]
async fn a_failed_run_says_why_in_the_history_and_after_a_restart() {
    let refusal = Reply::error(400, "invalid_request_error", "no such temperature");
    let model = ModelServer::start(Script::openai([refusal])).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let events: Vec<_> = connection.stream(hello()).collect().await;
    let events: Vec<StreamEvent> = events.into_iter().map(Result::unwrap).collect();
    let end = end_of(&events);
    assert!(end.error.contains("no such temperature"), "{end:?}");
    drop(connection);
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    let history = env.run(&["history"]).await.ok();
    assert!(history.contains("--- run 1: "), "{history}");
    assert!(history.contains("no such temperature"), "{history}");
    let mut connection = env.connect().await;
    let told: Vec<_> = connection.attach(AttachMsg::default()).collect().await;
    let told: Vec<StreamEvent> = told.into_iter().map(Result::unwrap).collect();
    let again = end_of(&told);
    assert_eq!((again.code, again.error), (end.code, end.error));
}
