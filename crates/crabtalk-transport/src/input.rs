//! Reads into a connection's buffer.

use bytes::BytesMut;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes per read. The chunk is on the stack, so that a waiting connection has no
/// buffer.
const CHUNK: usize = 8 * 1024;

/// The outcome of one read.
pub(crate) enum Input {
    Bytes,
    End,
}

/// Appends the available bytes to `buffer`.
pub(crate) fn poll_input<R: AsyncRead + Unpin>(
    reader: &mut R,
    buffer: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Input>> {
    let mut chunk = [MaybeUninit::<u8>::uninit(); CHUNK];
    let mut chunk = ReadBuf::uninit(&mut chunk);
    ready!(Pin::new(reader).poll_read(cx, &mut chunk))?;
    if chunk.filled().is_empty() {
        return Poll::Ready(Ok(Input::End));
    }
    buffer.extend_from_slice(chunk.filled());
    Poll::Ready(Ok(Input::Bytes))
}
