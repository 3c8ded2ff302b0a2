//! Conversions between the envelopes and their messages.

use crate::error::ClientError;
use crate::message::*;
use crate::operation::operations;
use crate::status::Status;
use bytes::Bytes;

/// A request that is answered by one message.
pub trait Request: Into<ClientMessage> + Send {
    /// The answer.
    type Response: TryFrom<ServerMessage, Error = ClientError> + Send;
}

macro_rules! wrap_requests {
    (
        one {$($(#[$one_doc:meta])* $one:ident: $one_variant:ident($one_request:ty) -> $one_response:ty, $one_role:ident;)*}
        many {$($(#[$many_doc:meta])* $many:ident: $many_variant:ident($many_request:ty) -> $many_item:ty, $many_role:ident;)*}
    ) => {
        $(impl From<$one_request> for ClientMessage {
            fn from(request: $one_request) -> Self {
                Self { msg: Some(client_message::Msg::$one_variant(request)) }
            }
        }

        impl Request for $one_request {
            type Response = $one_response;
        })*
        $(impl From<$many_request> for ClientMessage {
            fn from(request: $many_request) -> Self {
                Self { msg: Some(client_message::Msg::$many_variant(request)) }
            }
        })*

        impl ClientMessage {
            /// The name of the operation, for logs; `None` for an unknown variant.
            pub fn operation(&self) -> Option<&'static str> {
                Some(match self.msg.as_ref()? {
                    $(client_message::Msg::$one_variant(_) => stringify!($one),)*
                    $(client_message::Msg::$many_variant(_) => stringify!($many),)*
                })
            }
        }
    };
}
operations!(wrap_requests);

/// Unwraps a member of the envelope; some are boxed.
macro_rules! held {
    ($member:ident) => {
        $member
    };
    ($member:ident boxed) => {
        *$member
    };
}

macro_rules! wrap_responses {
    ($($variant:ident($response:ty) $($boxed:ident)?;)*) => {$(
        impl From<$response> for ServerMessage {
            fn from(response: $response) -> Self {
                Self { msg: Some(server_message::Msg::$variant(response.into())) }
            }
        }

        impl TryFrom<ServerMessage> for $response {
            type Error = ClientError;

            #[allow(clippy::wildcard_enum_match_arm, reason = "any other answer is unexpected")]
            fn try_from(message: ServerMessage) -> Result<Self, ClientError> {
                match message.msg {
                    Some(server_message::Msg::$variant(response)) => Ok(held!(response $($boxed)?)),
                    Some(server_message::Msg::Error(error)) => Err(Status::from(error).into()),
                    _ => Err(ClientError::Unexpected(stringify!($variant))),
                }
            }
        }
    )*};
}

// `build.rs` writes one call with every member of the envelope.
include!(concat!(env!("OUT_DIR"), "/answers.rs"));

/// An operation without a result is answered by a Pong.
impl From<()> for ServerMessage {
    fn from((): ()) -> Self {
        Pong::default().into()
    }
}

impl TryFrom<ServerMessage> for () {
    type Error = ClientError;

    fn try_from(message: ServerMessage) -> Result<Self, ClientError> {
        Pong::try_from(message).map(drop)
    }
}

impl From<Status> for ServerMessage {
    fn from(status: Status) -> Self {
        Self {
            msg: Some(server_message::Msg::Error(status.into())),
        }
    }
}

impl<T: Into<ServerMessage>> From<Result<T, Status>> for ServerMessage {
    fn from(result: Result<T, Status>) -> Self {
        result.map_or_else(Into::into, Into::into)
    }
}

impl From<stream_event::Event> for StreamEvent {
    fn from(event: stream_event::Event) -> Self {
        Self {
            event: Some(event),
            ..Self::default()
        }
    }
}

impl ServerMessage {
    /// Whether this message ends its reply: an error, or the End of a run. Replies of a
    /// single message are not recognised.
    pub fn ends_stream(&self) -> bool {
        match &self.msg {
            Some(server_message::Msg::Error(_)) => true,
            Some(server_message::Msg::Stream(event)) => event.is_end(),
            _ => false,
        }
    }
}

impl StreamEvent {
    /// Whether the message is the End of its run.
    pub fn is_end(&self) -> bool {
        matches!(self.event, Some(stream_event::Event::End(_)))
    }
}
