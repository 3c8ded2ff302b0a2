use super::*;
use crate::{ErrorMsg, code};
use futures_util::FutureExt;

struct Echo;

impl Server for Echo {
    fn version(&self) -> &str {
        "1.2.3"
    }

    fn role(&self) -> Role {
        Role::Admin
    }

    async fn ping(&self, _: Ping) -> Result<(), Status> {
        Ok(())
    }

    async fn get_agent(&self, request: GetAgentMsg) -> Result<AgentInfo, Status> {
        match request.name.as_str() {
            "crab" => Ok(AgentInfo {
                name: request.name,
                ..AgentInfo::default()
            }),
            name => Err(Status::not_found(format!("no agent {name}"))),
        }
    }

    fn stream(
        self: Arc<Self>,
        request: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        let chunk = |content: &str| {
            Ok(stream_event::Event::Chunk(StreamChunk {
                content: content.into(),
            })
            .into())
        };
        let items = vec![
            chunk(&request.content),
            Err(Status::new(code::PROVIDER, "gone")),
            chunk("never sent"),
        ];
        futures_util::stream::iter(items)
    }
}

fn answers(message: impl Into<ClientMessage>) -> Vec<server_message::Msg> {
    let reply = Arc::new(Echo).dispatch(message.into());
    let messages: Vec<_> = reply.collect().now_or_never().expect("ready at once");
    messages
        .into_iter()
        .map(|message| message.msg.expect("known"))
        .collect()
}

/// A gateway to another protocol may keep only the reply.
#[test]
fn reply_outlives_server_and_request() {
    struct Front {
        reply: Pin<Box<dyn Stream<Item = ServerMessage> + Send + 'static>>,
    }
    let front = {
        let server = Arc::new(Echo);
        let reply = Arc::clone(&server).dispatch(Ping {}.into());
        drop(server);
        Front {
            reply: Box::pin(reply),
        }
    };
    let said: Vec<_> = front.reply.collect().now_or_never().expect("ready at once");
    assert_eq!(said, [Pong::default().into()]);
}

fn error(code: u32, message: &str) -> server_message::Msg {
    server_message::Msg::Error(ErrorMsg {
        code,
        message: message.into(),
    })
}

#[test]
fn request_is_answered_by_its_method() {
    assert_eq!(
        answers(Ping {}),
        [server_message::Msg::Pong(Pong::default())]
    );
    let info = AgentInfo {
        name: "crab".into(),
        ..AgentInfo::default()
    };
    assert_eq!(
        answers(GetAgentMsg {
            name: "crab".into()
        }),
        [server_message::Msg::AgentInfo(info.into())]
    );
}

#[test]
fn error_becomes_a_message_with_its_code() {
    assert_eq!(
        answers(GetAgentMsg { name: "x".into() }),
        [error(404, "no agent x")]
    );
}

#[test]
fn error_ends_a_stream() {
    let chunk = stream_event::Event::Chunk(StreamChunk {
        content: "hi".into(),
    });
    assert_eq!(
        answers(StreamMsg {
            content: "hi".into(),
            ..StreamMsg::default()
        }),
        [
            server_message::Msg::Stream(chunk.into()),
            error(502, "gone")
        ]
    );
}

#[test]
fn missing_operation_is_501() {
    assert_eq!(
        answers(ReloadMsg {}),
        [error(501, "daemon 1.2.3 has no `reload`")]
    );
    assert_eq!(
        answers(SubscribeEvents::default()),
        [error(501, "daemon 1.2.3 has no `subscribe_events`")]
    );
    assert_eq!(
        answers(Bytes::new()),
        [error(501, "daemon 1.2.3 has no `extension`")]
    );
}

#[test]
fn unknown_request_names_the_version() {
    let [server_message::Msg::Error(error)] = &answers(ClientMessage { msg: None })[..] else {
        panic!("one error")
    };
    assert_eq!(error.code, 400);
    assert!(error.message.contains("1.2.3"), "{}", error.message);
}

#[test]
fn frequent_messages_are_small() {
    let (event, message) = (size_of::<StreamEvent>(), size_of::<ServerMessage>());
    assert!(event <= 208 && message <= 216, "{event} {message}");
}
