//! Reads answers over HTTP up to a limit.
//!
//! Invariant: a call whose answer is too long fails with the reason. Nothing is added to
//! an event stream that does not answer a call.

use crate::http::{Body, HttpError};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

/// Longest answer that is not a stream: the longest frame of our own protocol.
pub(crate) const MAX_BODY: usize = 16 << 20;

/// Longest event of a stream.
pub(crate) const MAX_EVENT: usize = MAX_BODY;

/// Maximum bytes shown of an answer that is not a message.
const MAX_SHOWN: usize = 200;

pub(crate) type Events = futures_util::stream::BoxStream<'static, Result<Sse, SseError>>;

/// Ends a stream at an event that is longer than the limit.
pub(crate) fn bounded(body: Body) -> impl Stream<Item = Result<Bytes, HttpError>> + Send {
    let (mut event, mut line) = (0usize, 0usize);
    body.map(move |bytes| {
        let bytes = bytes?;
        for byte in bytes.iter() {
            match byte {
                b'\n' if line == 0 => event = 0,
                b'\n' => line = 0,
                b'\r' => {}
                _ => line += 1,
            }
            event += 1;
            if event > MAX_EVENT {
                return Err(too_long());
            }
        }
        Ok(bytes)
    })
}

fn too_long() -> HttpError {
    HttpError::TooMuch(format!("its answer has more than {MAX_BODY} bytes"))
}

/// Replaces an answer that is too long by an error. The
/// library would otherwise request the rest again and report nothing.
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

/// The error in place of an answer that is too long.
pub(crate) fn too_much(why: String, id: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
    ServerJsonRpcMessage::error(error, Some(id))
}

/// Reads an answer that is not a stream.
pub(crate) async fn read(mut body: Body) -> Result<Vec<u8>, HttpError> {
    let mut whole = Vec::new();
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        if whole.len() + bytes.len() > MAX_BODY {
            return Err(too_long());
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

/// Parses an answer that is not a stream.
///
/// # Errors
/// The parser's error and the beginning of the answer.
pub(crate) fn message(text: &[u8]) -> Result<ServerJsonRpcMessage, String> {
    serde_json::from_slice(text).map_err(|why| {
        let shown = String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN)]);
        format!("its answer is not a message of the protocol ({why}): {shown:?}")
    })
}
