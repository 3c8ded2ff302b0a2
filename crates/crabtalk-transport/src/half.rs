//! The reading half of a connection, and how it tells that the peer has gone.

use bytes::BytesMut;
use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes read at a time. On the stack, so that a connection that waits holds
/// no buffer.
const CHUNK: usize = 8 * 1024;

/// The reading half of a connection.
///
/// The end of the file says only that the peer sends no more; it may still
/// wait for its answer, as `nc` does. So a half can tell the two apart.
pub trait ReadHalf: AsyncRead + Unpin + Send {
    /// Resolves when the peer has closed its reading side too.
    type Hangup: Future<Output = ()> + Unpin + Send;

    /// Watches for that. Asked once the half itself is no longer read: at the
    /// end of the file, or when enough was read ahead.
    fn hangup(&self) -> Self::Hangup;
}

/// What one read gave.
pub(crate) enum Input {
    Bytes,
    End,
}

/// Reads what has come, appending it to `buffer`.
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
