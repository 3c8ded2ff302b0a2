//! The client's side: two transport primitives, and a typed method for each operation.
//!
//! Invariant: the exclusive borrow allows one request at a time (WIRE-4).

use crate::error::ClientError;
use crate::message::*;
use crate::operation::operations;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use std::future::Future;

macro_rules! client_trait {
    (
        one {$($(#[$one_doc:meta])* $one:ident: $one_variant:ident($one_request:ty) -> $one_response:ty, $one_role:ident;)*}
        many {$($(#[$many_doc:meta])* $many:ident: $many_variant:ident($many_request:ty) -> $many_item:ty, $many_role:ident;)*}
    ) => {
        /// A client of the protocol. A connection implements the first two methods.
        pub trait Client: Send {
            /// Sends a message and returns its answer. An [`ErrorMsg`] is returned as an answer;
            /// the typed methods turn it into [`ClientError::Refused`].
            fn request(
                &mut self,
                message: ClientMessage,
            ) -> impl Future<Output = Result<ServerMessage, ClientError>> + Send;

            /// Sends a message and returns all answers, up to an error message, an End, or the end of
            /// the connection.
            fn request_stream(
                &mut self,
                message: ClientMessage,
            ) -> impl Stream<Item = Result<ServerMessage, ClientError>> + Send;

            $(
                $(#[$one_doc])*
                fn $one(
                    &mut self,
                    request: $one_request,
                ) -> impl Future<Output = Result<$one_response, ClientError>> + Send {
                    async move { self.request(request.into()).await?.try_into() }
                }
            )*

            $(
                $(#[$many_doc])*
                fn $many(
                    &mut self,
                    request: $many_request,
                ) -> impl Stream<Item = Result<$many_item, ClientError>> + Send {
                    items(self.request_stream(request.into()))
                }
            )*
        }
    };
}
operations!(client_trait);

/// The typed items of a reply, up to and including its last message or error.
fn items<T>(
    messages: impl Stream<Item = Result<ServerMessage, ClientError>> + Send,
) -> impl Stream<Item = Result<T, ClientError>> + Send
where
    T: TryFrom<ServerMessage, Error = ClientError> + Send,
{
    let state = Some(Box::pin(messages));
    futures_util::stream::unfold(state, async |state| {
        let mut messages = state?;
        let message = messages.next().await?;
        let last = message.as_ref().map_or(true, ServerMessage::ends_stream);
        let item = message.and_then(T::try_from);
        let rest = if last || item.is_err() {
            None
        } else {
            Some(messages)
        };
        Some((item, rest))
    })
}

#[cfg(test)]
mod tests;
