//! Splits a byte stream into the frames of `application/vnd.amazon.eventstream`.
//! Invariants: the result does not depend on how the network split the
//! bytes; both checksums are verified before a frame is used; no frame
//! exceeds [`MAX_EVENT_BYTES`]; exceptions are returned as errors.

use crate::decode::Broken;
use crate::sse::{Event, MAX_EVENT_BYTES};
use serde_json::{Value, json};

/// Lengths of the frame and of its headers, and their checksum.
const PRELUDE_BYTES: usize = 12;
/// The checksum at the end of a frame.
const TRAILER_BYTES: usize = 4;

/// The evaluated headers of a frame.
#[derive(Default)]
struct Headers<'a> {
    message_type: &'a [u8],
    event_type: &'a [u8],
    /// The type of an exception, or the code of an error.
    error_type: &'a [u8],
    error_message: &'a [u8],
}

/// The decoder. Call `push`, then `next` until it returns `None`.
#[derive(Default)]
pub(crate) struct Frames {
    buf: Vec<u8>,
    /// The offset of the next frame.
    at: usize,
}

impl Frames {
    /// Appends received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buf.drain(..self.at);
        self.at = 0;
        self.buf.extend_from_slice(bytes);
    }

    /// The next complete event: its type and its JSON.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Broken> {
        let rest = &self.buf[self.at..];
        if rest.len() < PRELUDE_BYTES {
            return Ok(None);
        }
        let (total, headers) = (number(&rest[0..4]), number(&rest[4..8]));
        if crc32fast::hash(&rest[..8]) as usize != number(&rest[8..PRELUDE_BYTES]) {
            return Err(Broken::Nonsense(
                "not an event stream: the checksum of a frame's prelude is wrong".into(),
            ));
        }
        if total > MAX_EVENT_BYTES {
            return Err(Broken::TooLong);
        }
        let overhead = PRELUDE_BYTES + TRAILER_BYTES;
        if total < overhead || headers > total - overhead {
            return Err(Broken::Nonsense("a frame with impossible lengths".into()));
        }
        if rest.len() < total {
            return Ok(None);
        }
        let frame = &self.buf[self.at..self.at + total];
        self.at += total;
        let (checked, sum) = frame.split_at(total - TRAILER_BYTES);
        if crc32fast::hash(checked) as usize != number(sum) {
            return Err(Broken::Nonsense("a frame with a wrong checksum".into()));
        }
        let (headers, payload) = checked[PRELUDE_BYTES..].split_at(headers);
        let headers = read_headers(headers)
            .ok_or_else(|| Broken::Nonsense("a frame with invalid headers".into()))?;
        match headers.message_type {
            b"exception" | b"error" => Err(Broken::Reported(report(&headers, payload))),
            _ => Ok(Some(Event {
                name: headers.event_type.to_vec(),
                data: payload.to_vec(),
            })),
        }
    }
}

/// A big-endian number of four bytes.
fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn read_headers(mut rest: &[u8]) -> Option<Headers<'_>> {
    let mut headers = Headers::default();
    while !rest.is_empty() {
        let name = take(&mut rest, 1).map(number)?;
        let name = take(&mut rest, name)?;
        let kind = take(&mut rest, 1).map(number)?;
        let length = match kind {
            // True and false.
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            // A long or a timestamp.
            5 | 8 => 8,
            // Bytes and text.
            6 | 7 => take(&mut rest, 2).map(number)?,
            // A UUID.
            9 => 16,
            _ => return None,
        };
        let value = take(&mut rest, length)?;
        match name {
            b":message-type" => headers.message_type = value,
            b":event-type" => headers.event_type = value,
            b":exception-type" | b":error-code" => headers.error_type = value,
            b":error-message" => headers.error_message = value,
            _ => {}
        }
    }
    Some(headers)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// Converts an exception to the form of other errors.
fn report(headers: &Headers<'_>, payload: &[u8]) -> Value {
    let said: Value = serde_json::from_slice(payload).unwrap_or_default();
    let message = said["message"]
        .as_str()
        .or_else(|| said["Message"].as_str())
        .map(str::to_owned)
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| String::from_utf8_lossy(headers.error_message).into_owned());
    let class = String::from_utf8_lossy(headers.error_type);
    let message = if message.is_empty() {
        class.clone().into_owned()
    } else {
        message
    };
    json!({"type": class, "message": message})
}
