//! What of an answer is read: so many bytes and values, and then the reason in its place.
//!
//! Invariants: a call whose answer is too much ends with that as its answer; of a stream
//! whose events are no answers nothing is invented.

use crate::http::{Body, HttpError};
use crate::values::{self, Values};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

/// Longest answer that is no stream: the longest frame of our own protocol.
pub(crate) const MAX_BODY: usize = 16 << 20;

/// Longest event of a stream, as for an answer that is none.
pub(crate) const MAX_EVENT: usize = MAX_BODY;

/// How much is shown of what is no message.
const MAX_SHOWN: usize = 200;

pub(crate) type Events = futures_util::stream::BoxStream<'static, Result<Sse, SseError>>;

/// Ends a stream of events in which one does not end, or has more values than are read.
pub(crate) fn bounded(body: Body) -> impl Stream<Item = Result<Bytes, HttpError>> + Send {
    let (mut length, mut line) = (0usize, 0usize);
    let mut values = Values::default();
    body.map(move |bytes| {
        let bytes = bytes?;
        for byte in bytes.iter() {
            values.add(*byte);
            match byte {
                b'\n' if line == 0 => (length, values) = (0, Values::default()),
                b'\n' => line = 0,
                b'\r' => {}
                _ => line += 1,
            }
            if matches!(byte, b'\n' | b'\r') {
                values.end_line();
            }
            if values.are_too_many() {
                return Err(HttpError::TooMuch(values::too_many()));
            }
            length += 1;
        }
        if length > MAX_EVENT {
            let why = format!("its answer has more than {MAX_EVENT} bytes");
            return Err(HttpError::TooMuch(why));
        }
        Ok(bytes)
    })
}

/// Ends the stream of an answer that is too much with the reason, as the answer: the
/// library would ask for the rest of it again, and say nothing of it in the end.
pub(crate) fn answered(events: Events, id: RequestId) -> Events {
    let told = events.scan(false, move |is_over, event| {
        let error = match &event {
            Err(SseError::Body(error)) => error.downcast_ref::<HttpError>(),
            Ok(_) | Err(_) => None,
        };
        let event = match error {
            _ if *is_over => None,
            Some(HttpError::TooMuch(why)) => {
                *is_over = true;
                let message = too_much(why.clone(), id.clone());
                let data = serde_json::to_string(&message).unwrap_or_default();
                Some(Ok(Sse::default().data(data)))
            }
            Some(_) | None => Some(event),
        };
        std::future::ready(event)
    });
    told.boxed()
}

/// What stands for an answer that is too much.
pub(crate) fn too_much(why: String, id: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
    ServerJsonRpcMessage::error(error, Some(id))
}

/// Takes an answer that is no stream, up to its bound.
pub(crate) async fn read(mut body: Body) -> Result<Vec<u8>, HttpError> {
    let mut whole = Vec::new();
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        if whole.len() + bytes.len() > MAX_BODY {
            let why = format!("its answer has more than {MAX_BODY} bytes");
            return Err(HttpError::TooMuch(why));
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

/// What a whole answer says.
pub(crate) enum Said {
    Message(Box<ServerJsonRpcMessage>),
    /// It has more values than are read.
    TooMuch(String),
    /// It is no message; why, and how it begins.
    Nonsense(String),
}

/// Reads an answer that is no stream.
pub(crate) fn said(text: &[u8]) -> Said {
    if values::has_too_many(text) {
        return Said::TooMuch(values::too_many());
    }
    match serde_json::from_slice(text) {
        Ok(message) => Said::Message(Box::new(message)),
        Err(why) => {
            let shown = String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN)]);
            Said::Nonsense(format!(
                "its answer is no message of the protocol ({why}): {shown:?}"
            ))
        }
    }
}
