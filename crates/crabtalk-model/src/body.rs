//! Request bodies in pieces, those of a long history kept between requests.
//! Invariants: whatever is kept is what writing it again would give; it ends
//! before a message that answers no call, so that no group of results is torn.

use crate::sight::Sight;
use bytes::Bytes;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Message, Role};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes that make a piece. Less is copied into every request.
const PIECE_BYTES: usize = 32 * 1024;

/// A request's body. Cheap to clone, so that it can be sent again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pieces: VecDeque<Bytes>,
}

impl Body {
    /// The bytes in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece)
    }
}

#[cfg(test)]
impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        let pieces = VecDeque::from([bytes.into()]);
        Self { pieces }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// A body in the making.
pub(crate) struct Writer {
    body: Body,
    /// What was written since the last piece.
    pub(crate) out: Vec<u8>,
}

impl Writer {
    /// With room for a short conversation.
    pub(crate) fn new() -> Self {
        Self {
            body: Body::default(),
            out: Vec::with_capacity(4096),
        }
    }

    pub(crate) fn finish(mut self) -> Body {
        self.end_piece();
        self.body
    }

    /// Appends bytes that others share.
    pub(crate) fn piece(&mut self, piece: Bytes) {
        self.end_piece();
        self.body.pieces.push_back(piece);
    }

    fn end_piece(&mut self) {
        if !self.out.is_empty() {
            let mut piece = std::mem::take(&mut self.out);
            // It is kept until the answer begins, in case it is sent again.
            piece.shrink_to_fit();
            self.body.pieces.push_back(piece.into());
        }
    }
}

/// How a format writes messages.
pub(crate) trait Script<'a> {
    /// Appends a message, the `at`th of the request. `open` is whose turn it
    /// follows and is set to whose it is: the model's (`true`) or not, or
    /// whatever else a format has to know of what it follows.
    fn message(
        &mut self,
        out: &mut Vec<u8>,
        open: &mut Option<bool>,
        at: usize,
        message: &'a Message,
    );

    /// Appends what has to follow a group of results.
    fn settle(&mut self, _out: &mut Vec<u8>) {}
}

/// What makes the bytes of the same messages differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Form {
    format: u32,
    sight: u64,
}

/// What is kept of a history, in two runs: what is injected lies between.
#[derive(Default)]
struct Kept {
    before: Run,
    after: Run,
}

/// Pieces of messages that follow each other.
#[derive(Default)]
struct Run {
    form: Form,
    from: usize,
    upto: usize,
    /// The last message, to tell histories apart that went different ways.
    last: Option<Arc<Message>>,
    opened: Option<bool>,
    ended: Option<bool>,
    pieces: Vec<Bytes>,
    /// What is too little for a piece yet.
    rest: Vec<u8>,
}

impl Run {
    /// Whether it is kept of this history in this form.
    fn is_of(&self, history: &[Arc<Message>], new: &Self) -> bool {
        let same = |last| {
            let message = history.get(self.upto - 1);
            message.is_some_and(|message| Arc::ptr_eq(message, last))
        };
        (self.form, self.from, self.opened) == (new.form, new.from, new.opened)
            && self.last.as_ref().is_none_or(same)
    }
}

/// Writes the messages of one request.
struct Pen<'a, 'w, S> {
    writer: &'w mut Writer,
    script: S,
    open: Option<bool>,
    history: &'a [Arc<Message>],
    form: Form,
}

/// Writes all messages, and answers whose turn the last one was. `format`
/// numbers the bytes that `script` gives for them. Those from the `volatile`th
/// of the request on, and the one before what is injected, may be other bytes
/// in the next request.
pub(crate) fn push_messages<'a>(
    writer: &mut Writer,
    request: &'a Request,
    sight: &Sight<'_>,
    format: u32,
    volatile: usize,
    script: impl Script<'a>,
) -> Option<bool> {
    let history = &request.history;
    let injected = request.injected.len();
    let stable = request.injected_at.min(history.len());
    let mut pen = Pen {
        writer,
        script,
        open: None,
        history,
        form: Form {
            format,
            sight: sight.form(),
        },
    };
    history.derived().with(|kept: &mut Kept| {
        let limit = volatile.min(stable.saturating_sub(1));
        pen.run(&mut kept.before, 0, limit, 0);
        pen.each(&history[limit..stable], limit);
        for (at, message) in request.injected.iter().enumerate() {
            pen.message(stable + at, message);
        }
        let limit = volatile.saturating_sub(injected);
        let limit = limit.min(history.len()).max(stable);
        pen.run(&mut kept.after, stable, limit, injected);
        pen.each(&history[limit..], limit + injected);
    });
    if let Some(closing) = &request.closing {
        pen.message(history.len() + injected, closing);
    }
    pen.script.settle(&mut pen.writer.out);
    pen.open
}

impl<'a, S: Script<'a>> Pen<'a, '_, S> {
    fn message(&mut self, at: usize, message: &'a Message) {
        if message.role != Role::Tool {
            self.script.settle(&mut self.writer.out);
        }
        let out = &mut self.writer.out;
        self.script.message(out, &mut self.open, at, message);
    }

    fn each(&mut self, messages: &'a [Arc<Message>], at: usize) {
        for (place, message) in messages.iter().enumerate() {
            self.message(at + place, message);
        }
    }

    /// Writes messages of the history, from what is kept as far as possible,
    /// and keeps the rest if it is long; `shift` is how many messages come
    /// before that are not of the history.
    fn run(&mut self, run: &mut Run, from: usize, upto: usize, shift: usize) {
        let history = self.history;
        let new = Run {
            form: self.form,
            from,
            upto: from,
            opened: self.open,
            ..Run::default()
        };
        if !run.is_of(history, &new) {
            *run = new;
        }
        let is_result = |at: usize| history.get(at).is_none_or(|m| m.role == Role::Tool);
        if run.upto > upto || is_result(from) {
            return self.each(&history[from..upto], from + shift);
        }
        self.script.settle(&mut self.writer.out);
        let first = run.upto;
        if first > from {
            self.open = run.ended;
        }
        for piece in &run.pieces {
            self.writer.piece(piece.clone());
        }
        let mut whole = run.rest.len();
        for (place, message) in history[first..upto].iter().enumerate() {
            let at = first + place;
            if message.role != Role::Tool {
                self.script.settle(&mut run.rest);
            }
            let open = &mut self.open;
            self.script
                .message(&mut run.rest, open, at + shift, message);
            if is_result(at + 1) {
                continue;
            }
            self.script.settle(&mut run.rest);
            if run.rest.len() >= PIECE_BYTES {
                let mut piece = std::mem::take(&mut run.rest);
                piece.shrink_to_fit();
                run.pieces.push(piece.into());
                self.writer.piece(run.pieces[run.pieces.len() - 1].clone());
            }
            whole = run.rest.len();
            run.upto = at + 1;
            run.last = Some(Arc::clone(message));
            run.ended = self.open;
        }
        self.writer.out.extend_from_slice(&run.rest);
        run.rest.truncate(whole);
    }
}

#[cfg(test)]
mod tests;
