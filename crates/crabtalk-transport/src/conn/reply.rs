//! Sends a reply as fast as its client reads.
//!
//! Invariants: a reply is pulled by [`WRITE_BUFFER`] bytes at most, and meanwhile
//! [`READ_AHEAD`] bytes of the next request are read at most; a client that goes away drops
//! its reply at once.

use super::{Connection, Ended};
use crate::half::{Input, ReadHalf, poll_input};
use bytes::Buf;
use crabtalk_proto::{
    Reply, ServerMessage, Status, StreamEnd, StreamEvent, TooLarge, code, codec, server_message,
    stream_event,
};
use futures_core::Stream;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Bytes taken from a client while a reply of its earlier request still goes
/// out: room for pipelined requests, no room for a flood.
const READ_AHEAD: usize = 64 * 1024;

/// Bytes of a reply that wait for their client: one write's worth. A single
/// message may exceed it, and nothing is added before that one is out.
pub(super) const WRITE_BUFFER: usize = 64 * 1024;

impl<R: ReadHalf, W: AsyncWrite + Unpin> Connection<R, W> {
    /// Sends a reply to its end, or drops it when the client has gone.
    pub(super) async fn answer(&mut self, mut reply: Reply) -> Result<(), Ended> {
        let mut progress = Progress {
            done: false,
            yielded: false,
            hangup: None,
        };
        poll_fn(|cx| self.poll_answer(&mut reply, &mut progress, cx)).await
    }

    fn poll_answer(
        &mut self,
        reply: &mut Reply,
        progress: &mut Progress<R::Hangup>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Ended>> {
        // First, so that a request whose client has left at once is begun all
        // the same.
        self.fill(reply, &mut progress.done, cx);
        if self.poll_late(cx).is_ready() {
            return Poll::Ready(Err(Ended::Late));
        }
        if let Poll::Ready(status) = self.poll_cut(cx) {
            *reply = Reply::Done;
            return Poll::Ready(Err(Ended::Cut(status)));
        }
        if !progress.done && self.poll_gone(&mut progress.hangup, cx).is_ready() {
            return Poll::Ready(Err(Ended::Gone));
        }
        loop {
            if self.output.is_empty() {
                if !progress.done {
                    return Poll::Pending;
                }
                return Pin::new(&mut self.writer).poll_flush(cx).map_err(ended_by);
            }
            // What feeds a reply hands over one piece at a time. Letting it run
            // once more before the write makes one write of many pieces.
            let full = self.output.len() >= WRITE_BUFFER;
            if !progress.yielded && !progress.done && !full {
                progress.yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let written = ready!(Pin::new(&mut self.writer).poll_write(cx, &self.output))
                .map_err(ended_by)?;
            if written == 0 {
                return Poll::Ready(Err(Ended::Gone));
            }
            self.output.advance(written);
            if self.output.is_empty() {
                self.output.clear();
                progress.yielded = false;
                self.fill(reply, &mut progress.done, cx);
            }
        }
    }

    /// Encodes what is ready of a reply, as far as there is room.
    fn fill(&mut self, reply: &mut Reply, done: &mut bool, cx: &mut Context<'_>) {
        while !*done && self.output.len() < WRITE_BUFFER {
            match Pin::new(&mut *reply).poll_next(cx) {
                Poll::Ready(Some(message)) => {
                    if let Err(error) = codec::encode(&message, &mut self.output) {
                        let instead = too_large(&message, error);
                        codec::encode(&instead, &mut self.output).expect("a short message fits");
                        *done = true;
                    }
                }
                Poll::Ready(None) => *done = true,
                Poll::Pending => return,
            }
            if *done {
                // Whatever the reply holds ends here, not when its last byte
                // has been read.
                *reply = Reply::Done;
            }
        }
    }

    /// Ready when nobody will read the reply. Takes in what the client sends
    /// meanwhile, within bounds.
    fn poll_gone(&mut self, hangup: &mut Option<R::Hangup>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(hangup) = hangup {
                return Pin::new(hangup).poll(cx);
            }
            let crowded = self.place.hold(self.input.len()).is_err();
            if self.ended || crowded || self.input.len() >= READ_AHEAD {
                *hangup = Some(self.reader.hangup());
                continue;
            }
            match ready!(poll_input(&mut self.reader, &mut self.input, cx)) {
                Ok(Input::Bytes) => {}
                Ok(Input::End) => self.ended = true,
                Err(_) => return Poll::Ready(()),
            }
        }
    }
}

/// How far a reply has got.
struct Progress<H> {
    /// Everything of it is in the buffer.
    done: bool,
    /// The source has had its turn since the buffer was last empty.
    yielded: bool,
    hangup: Option<H>,
}

fn ended_by(error: io::Error) -> Ended {
    let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    if gone.contains(&error.kind()) {
        Ended::Gone
    } else {
        Ended::Write(error)
    }
}

/// What goes out in place of a message above the limit. A run that has started
/// must still end with an End (WIRE-6).
fn too_large(message: &ServerMessage, error: TooLarge) -> ServerMessage {
    let text = format!("the reply cannot be sent: {error}");
    match &message.msg {
        Some(server_message::Msg::Stream(event))
            if !matches!(event.event, Some(stream_event::Event::Start(_))) =>
        {
            let end = StreamEnd {
                error: text,
                code: code::INTERNAL,
                ..StreamEnd::default()
            };
            StreamEvent {
                event: Some(stream_event::Event::End(end)),
                seq: event.seq,
            }
            .into()
        }
        _ => Status::internal(text).into(),
    }
}
