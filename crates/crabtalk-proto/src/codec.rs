//! Frames: `[u32 big-endian length][payload]` (WIRE-1).
//!
//! Invariants: memory follows the received bytes, not the declared length; a message above [`MAX_FRAME`] never becomes a frame; a payload
//! that does not decode is consumed, so that the next frame can be read.

use bytes::{Buf, BufMut, BytesMut};
use prost::Message;
use std::io;

/// Longest payload in bytes (WIRE-1).
pub const MAX_FRAME: usize = 16 * 1024 * 1024;

/// Bytes of the length that precedes every payload.
pub const HEADER: usize = 4;

/// A failure to read or write a message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer closed the connection between frames, or within a length.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer closed within a frame.
    #[error("the connection ended within a frame: received {got} of {declared} bytes")]
    Truncated {
        /// The declared length of the payload.
        declared: usize,
        /// The received bytes of the payload.
        got: usize,
    },
    /// The frame is above the limit; nothing after it can be read.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The payload is not a valid message. The connection remains usable.
    #[error("malformed frame: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// The connection failed; the last bytes may or may not have arrived.
    #[error("the connection failed")]
    Io(#[from] io::Error),
}

/// A payload longer than the limit, which is [`MAX_FRAME`] at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {declared} bytes exceeds the limit of {limit} bytes")]
pub struct TooLarge {
    /// Its length in bytes.
    pub declared: usize,
    /// The limit in bytes.
    pub limit: usize,
}

fn check_length(declared: usize, limit: usize) -> Result<usize, TooLarge> {
    let limit = limit.min(MAX_FRAME);
    if declared > limit {
        Err(TooLarge { declared, limit })
    } else {
        Ok(declared)
    }
}

/// Appends a message as a frame. A message above the limit does not change `buffer`.
pub fn encode<M: Message>(message: &M, buffer: &mut BytesMut) -> Result<(), TooLarge> {
    let length = check_length(message.encoded_len(), MAX_FRAME)?;
    buffer.reserve(HEADER + length);
    buffer.put_u32(u32::try_from(length).expect("MAX_FRAME fits in 32 bits"));
    message.encode_raw(buffer);
    Ok(())
}

/// Takes the payload of the first frame out of `buffer`; `None` until it is
/// complete. A payload above `limit` bytes is refused as soon as its length is
/// known.
pub fn split_frame(buffer: &mut BytesMut, limit: usize) -> Result<Option<BytesMut>, TooLarge> {
    let Some(declared) = declared_length(buffer) else {
        return Ok(None);
    };
    let length = check_length(declared, limit)?;
    if buffer.len() - HEADER < length {
        return Ok(None);
    }
    buffer.advance(HEADER);
    Ok(Some(buffer.split_to(length)))
}

/// Takes the first message out of `buffer`; `None` until it is complete. After
/// [`FrameError::Malformed`] the next frame can be read.
pub fn decode<M: Message + Default>(buffer: &mut BytesMut) -> Result<Option<M>, FrameError> {
    decode_within(buffer, MAX_FRAME)
}

/// [`decode`] with a limit of `limit` bytes per frame.
pub fn decode_within<M: Message + Default>(
    buffer: &mut BytesMut,
    limit: usize,
) -> Result<Option<M>, FrameError> {
    match split_frame(buffer, limit)? {
        Some(payload) => Ok(Some(M::decode(payload)?)),
        None => Ok(None),
    }
}

/// The error for an end of input after the unread bytes `rest`.
pub fn end_of_file(rest: &[u8]) -> FrameError {
    match declared_length(rest) {
        None => FrameError::Closed,
        Some(declared) => FrameError::Truncated {
            declared,
            got: rest.len() - HEADER,
        },
    }
}

fn declared_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<HEADER>()?;
    Some(u32::from_be_bytes(*header) as usize)
}

#[cfg(test)]
mod tests;
