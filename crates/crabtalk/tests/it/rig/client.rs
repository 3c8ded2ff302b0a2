//! Helpers for protocol clients in tests.

use super::TestEnv;
use super::wait::within;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    AskUserEvent, Client, ClientError, GetHistoryMsg, HistoryEntry, StreamEnd, StreamEvent,
    StreamMsg,
};
use futures_util::{Stream, StreamExt};

/// Runs an agent; returns all events, up to End.
pub(crate) async fn stream_to_end(env: &TestEnv, request: StreamMsg) -> Vec<StreamEvent> {
    let mut connection = env.connect().await;
    let events = connection.stream(request);
    within("the end of a run", events.map(Result::unwrap).collect()).await
}

/// The End of a stream, which must be its last event.
#[track_caller]
pub(crate) fn end_of(events: &[StreamEvent]) -> StreamEnd {
    match events.last().and_then(|event| event.event.clone()) {
        Some(Event::End(end)) => end,
        other => panic!("the last event is not an End: {other:?}"),
    }
}

/// The text of a stream.
pub(crate) fn chunks(events: &[StreamEvent]) -> String {
    let text = events.iter().filter_map(|event| match &event.event {
        Some(Event::Chunk(chunk)) => Some(chunk.content.as_str()),
        _ => None,
    });
    text.collect()
}

/// The kinds of a stream's events, without repetitions. `ToolProgress` is omitted, since it
/// depends on a command's duration.
pub(crate) fn kinds(events: &[StreamEvent]) -> String {
    let mut kinds: Vec<String> = events
        .iter()
        .filter(|event| !matches!(event.event, Some(Event::ToolProgress(_))))
        .map(|event| {
            let name = format!("{:?}", event.event.as_ref().unwrap());
            name.split('(').next().unwrap().to_owned()
        })
        .collect();
    kinds.dedup();
    kinds.join(" ")
}

/// Reads a stream up to the next ask.
pub(crate) async fn asked(
    events: &mut (impl Stream<Item = Result<StreamEvent, ClientError>> + Unpin),
) -> AskUserEvent {
    let find = async {
        loop {
            let event = events.next().await.expect("an ask before the end");
            match event.unwrap().event {
                Some(Event::AskUser(ask)) => return *ask,
                Some(Event::End(end)) => panic!("ended without an ask: {end:?}"),
                _ => {}
            }
        }
    };
    within("an ask", find).await
}

/// Reads the whole history of a conversation.
pub(crate) async fn entries(env: &TestEnv, agent: &str, sender: &str) -> Vec<HistoryEntry> {
    let request = GetHistoryMsg {
        agent: agent.into(),
        sender: sender.into(),
        ..GetHistoryMsg::default()
    };
    let page = env.connect().await.get_history(request).await.unwrap();
    assert!(!page.more);
    page.entries
}
