//! Tests of reconnecting.

use super::patient;
use crate::tests::Fake;
use crabtalk_client::RunNews;
use crabtalk_proto::{AttachMsg, StreamEnd, StreamStart, stream_event};
use futures_util::StreamExt;
use std::time::Duration;

#[tokio::test]
async fn chat_reconnects_after_hours() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("chat");
    let client = patient(at.context.client().await.unwrap());
    let mut run = client.attach(AttachMsg::default());
    let start = StreamStart {
        run: 1,
        ..StreamStart::default()
    };
    fake.send(stream_event::Event::Start(start)).await;
    assert!(matches!(run.next().await, Some(Ok(RunNews::Event(_)))));
    fake.stop().await;
    assert!(matches!(run.next().await, Some(Ok(RunNews::Lost { .. }))));
    tokio::time::pause();
    let morning = async {
        tokio::time::sleep(Duration::from_secs(8 * 3600)).await;
        fake.start_again().await;
        let end = stream_event::Event::End(StreamEnd::default());
        fake.send(end).await;
    };
    let (news, ()) = futures_util::join!(run.next(), morning);
    assert_eq!(news.unwrap().unwrap(), RunNews::Back);
    let end = run.next().await.unwrap().unwrap();
    assert!(matches!(end, RunNews::Missing { .. }), "{end:?}");
}
