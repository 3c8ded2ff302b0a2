//! The server's side: one method per operation, and the dispatch to it.
//!
//! Invariant: every request gets an answer, possibly an error.

use crate::message::*;
use crate::operation::operations;
use crate::role::Role;
use crate::status::Status;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

macro_rules! server_trait {
    (
        one {$($(#[$one_doc:meta])* $one:ident: $one_variant:ident($one_request:ty) -> $one_response:ty, $one_role:ident;)*}
        many {$($(#[$many_doc:meta])* $many:ident: $many_variant:ident($many_request:ty) -> $many_item:ty, $many_role:ident;)*}
    ) => {
        /// Answers requests. An operation without an implementation is answered with 501, an
        /// operation above the role with 403. The future or stream of a method is dropped when
        /// the client closes.
        pub trait Server: Send + Sync + Sized + 'static {
            /// The daemon's version, for errors about unknown requests.
            fn version(&self) -> &str;

            /// The client's role.
            fn role(&self) -> Role;

            /// Refuses a request that the role allows but that names objects outside the client's
            /// reach.
            fn admit(&self, request: &client_message::Msg) -> Result<(), Status> {
                let _ = request;
                Ok(())
            }

            /// Runs before a request with a single answer: returns a number for
            /// [`Server::failed`], or refuses the request.
            fn before(
                &self,
                request: &client_message::Msg,
            ) -> impl Future<Output = Result<u64, Status>> + Send + 'static {
                let _ = request;
                ready(Ok(0))
            }

            /// Records the failure of a request to which `before` gave a number.
            fn failed(&self, operation: &'static str, number: u64, status: &Status) {
                let _ = (operation, number, status);
            }

            /// Records a request that is refused for the client's role or reach.
            fn refused(&self, operation: &'static str, status: &Status) {
                let _ = (operation, status);
            }

            /// Resolves when the client's access is revoked, with the reason for the client. Called once,
            /// after authentication.
            fn ended(&self) -> impl Future<Output = Status> + Send + 'static {
                pending()
            }

            $(
                $(#[$one_doc])*
                fn $one(
                    &self,
                    request: $one_request,
                ) -> impl Future<Output = Result<$one_response, Status>> + Send {
                    let _ = request;
                    ready(Err(not_built(stringify!($one), self.version())))
                }
            )*

            $(
                $(#[$many_doc])*
                ///
                /// An error item is the last.
                fn $many(
                    self: Arc<Self>,
                    request: $many_request,
                ) -> impl Stream<Item = Result<$many_item, Status>> + Send + 'static {
                    let _ = request;
                    let error = not_built(stringify!($many), self.version());
                    futures_util::stream::iter([Err(error)])
                }
            )*

            /// Routes a request to its method, if the client's role allows it.
            fn dispatch(self: Arc<Self>, message: ClientMessage) -> Reply {
                let Some(request) = message.msg else {
                    return Reply::one(ready(unknown(self.version()).into()));
                };
                let (operation, least) = match &request {
                    $(client_message::Msg::$one_variant(_) => (stringify!($one), Role::$one_role),)*
                    $(client_message::Msg::$many_variant(_) => (stringify!($many), Role::$many_role),)*
                };
                let allowed = self.role().check(operation, least);
                if let Err(status) = allowed.and_then(|()| self.admit(&request)) {
                    self.refused(operation, &status);
                    return Reply::one(ready(status.into()));
                }
                let before = self.before(&request);
                match request {
                    $(client_message::Msg::$one_variant(request) => {
                        Reply::one(async move {
                            let number = match before.await {
                                Ok(number) => number,
                                Err(status) => return status.into(),
                            };
                            let answer = self.$one(request).await;
                            if number > 0 && let Err(status) = &answer {
                                self.failed(operation, number, status);
                            }
                            answer.into()
                        })
                    })*
                    $(client_message::Msg::$many_variant(request) => {
                        Reply::many(self.$many(request).map(ServerMessage::from))
                    })*
                }
            }
        }
    };
}
operations!(server_trait);

fn not_built(operation: &str, version: &str) -> Status {
    Status::not_implemented(format!("daemon {version} has no `{operation}`"))
}

fn unknown(version: &str) -> Status {
    Status::bad_request(format!(
        "daemon {version} does not know this request, or the request was empty; a newer daemon may \
         know it"
    ))
}

/// The messages that answer one request. Dropping it cancels the request.
pub enum Reply {
    /// Exactly one message.
    One(Pin<Box<dyn Future<Output = ServerMessage> + Send>>),
    /// Any number; an error is the last.
    Many(Pin<Box<dyn Stream<Item = ServerMessage> + Send>>),
    /// The reply is complete.
    Done,
}

impl Reply {
    /// A reply of one message.
    pub fn one(message: impl Future<Output = ServerMessage> + Send + 'static) -> Self {
        Self::One(Box::pin(message))
    }

    /// A reply of many messages.
    pub fn many(messages: impl Stream<Item = ServerMessage> + Send + 'static) -> Self {
        Self::Many(Box::pin(messages))
    }
}

impl Stream for Reply {
    type Item = ServerMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerMessage>> {
        let (item, last) = match &mut *self {
            Self::One(message) => (Some(std::task::ready!(message.as_mut().poll(cx))), true),
            Self::Many(messages) => {
                let item = std::task::ready!(messages.as_mut().poll_next(cx));
                let last = match &item {
                    Some(ServerMessage {
                        msg: Some(server_message::Msg::Error(_)),
                    })
                    | None => true,
                    Some(_) => false,
                };
                (item, last)
            }
            Self::Done => (None, true),
        };
        if last {
            *self = Self::Done;
        }
        Poll::Ready(item)
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::One(_) => "Reply::One",
            Self::Many(_) => "Reply::Many",
            Self::Done => "Reply::Done",
        })
    }
}

#[cfg(test)]
mod tests;
