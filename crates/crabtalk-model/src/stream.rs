//! An answer on its way in: body to events to chunks.
//! Invariants: polling it is the only thing that moves it; it ends with one
//! `Stop` or one error; a finished answer gives its connection back, an
//! unfinished one closes it.

use crate::bedrock::Frames;
use crate::decode::{Broken, Chunks, Decode};
use crate::failure::Peer;
use crate::http::Body;
use crate::random::Random;
use crate::sse::{self, Event};
use crate::template::Template;
use bytes::Bytes;
use crabtalk_domain::model::{Chunk, Error, ErrorKind, StopReason};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Largest answer accepted from a server that does not stream.
const MAX_WHOLE_BYTES: usize = sse::MAX_EVENT_BYTES;

/// How long figures and terminator may follow the reason for which an answer
/// stopped; some servers then neither send them nor close.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Taken in at a time, however much has come: reading it takes a fraction of a
/// millisecond, after which others may have their turn.
const PIECE_BYTES: usize = 16 << 10;

/// Taken in at a time of a body that says nothing, before others have their
/// turn.
const TURN_BYTES: usize = 64 << 10;

/// Kept of a body to tell what came instead of events.
const MAX_OPENING_BYTES: usize = 300;

/// A format's reader.
pub(crate) struct Format {
    decoder: Box<dyn Decode>,
    template: Template,
}

impl Format {
    pub(crate) fn of<D: Decode + Default + 'static>() -> Self {
        Self {
            decoder: Box::new(D::default()),
            template: Template::default(),
        }
    }

    /// Takes in an event, on the short way if there is one.
    pub(crate) fn read(&mut self, event: &Event<'_>, out: &mut Chunks) -> Result<(), Broken> {
        let data = event.data;
        if let Some(chunk) = self.template.apply(data) {
            self.template.hit();
            out.push(chunk);
            return Ok(());
        }
        let before = out.len();
        self.parse(event, out)?;
        if out.len() == before + 1
            && let Some(chunk) = out.last()
            && self.decoder.is_amid()
        {
            self.template.learn(data, chunk);
        }
        Ok(())
    }

    /// Takes in an event by reading it.
    pub(crate) fn parse(&mut self, event: &Event<'_>, out: &mut Chunks) -> Result<(), Broken> {
        self.decoder.event(event.name, event.data, out)
    }
}

/// What a body consists of.
enum Shape {
    Events(sse::Decoder),
    /// Bedrock's binary framing.
    Frames(Frames),
    /// One JSON document, from servers that do not stream.
    Whole(Vec<u8>),
}

impl Shape {
    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(events) => events.push(bytes),
            Self::Frames(frames) => frames.push(bytes),
            Self::Whole(whole) => whole.extend_from_slice(bytes),
        }
    }

    /// The next whole event; never one of a document.
    fn next(&mut self) -> Result<Option<Event<'_>>, Broken> {
        match self {
            Self::Events(events) => events.next().map_err(|sse::TooLong| Broken::TooLong),
            Self::Frames(frames) => frames.next(),
            Self::Whole(_) => Ok(None),
        }
    }
}

/// One answer of one provider.
pub(crate) struct Answer {
    /// `None` once the answer ended.
    body: Option<Body>,
    /// What has come and was not taken in yet.
    ahead: Bytes,
    shape: Shape,
    format: Format,
    out: Chunks,
    silence: Silence,
    peer: Arc<Peer>,
    received: u64,
    /// How the body begins, as long as no event was understood.
    opening: Option<Vec<u8>>,
    error: Option<Error>,
}

impl Answer {
    pub(crate) fn new(
        body: Body,
        streams: bool,
        format: Format,
        idle_timeout: Duration,
        peer: Arc<Peer>,
        random: Arc<Random>,
    ) -> Self {
        let shape = match format.decoder.is_framed() {
            _ if !streams => Shape::Whole(Vec::new()),
            true => Shape::Frames(Frames::default()),
            false => Shape::Events(sse::Decoder::new()),
        };
        Self {
            body: Some(body),
            ahead: Bytes::new(),
            shape,
            format,
            out: Chunks::new(random),
            silence: Silence::new(idle_timeout),
            peer,
            received: 0,
            opening: Some(Vec::new()),
            error: None,
        }
    }

    /// The next chunk; `None` after the end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, Error>>> {
        let mut taken_in = 0;
        loop {
            if let Some(chunk) = self.out.pop() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if let Some(error) = self.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(None);
            };
            if taken_in > TURN_BYTES {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !self.ahead.is_empty() {
                let piece = self.ahead.split_to(PIECE_BYTES.min(self.ahead.len()));
                taken_in += piece.len();
                self.take_in(&piece);
                continue;
            }
            match body.poll_data(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.silence.broken();
                    self.received += bytes.len() as u64;
                    self.ahead = bytes;
                }
                Poll::Ready(Some(Err(reason))) => self.ended(Some(&reason)),
                Poll::Ready(None) => self.ended(None),
                Poll::Pending => match self.silence.poll_too_long(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => self.stalled(),
                },
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) {
        self.shape.push(bytes);
        if let Shape::Whole(whole) = &self.shape {
            if whole.len() > MAX_WHOLE_BYTES {
                let message = format!("sent an answer of more than {} MiB", MAX_WHOLE_BYTES >> 20);
                self.fail(ErrorKind::Malformed, &message);
            }
            return;
        }
        if let Some(opening) = &mut self.opening {
            let room = MAX_OPENING_BYTES.saturating_sub(opening.len());
            opening.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
        self.read_events(false);
    }

    fn read_events(&mut self, at_end: bool) {
        loop {
            let event = match self.shape.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(broken) => {
                    let opening = self.opening.take().unwrap_or_default();
                    return self.fail_with(explain(&self.peer, broken, &opening));
                }
            };
            if let Err(broken) = self.format.read(&event, &mut self.out) {
                // Half an event at the end is a cut, whatever else is wrong.
                if at_end && matches!(broken, Broken::Json(_)) {
                    return;
                }
                let error = explain(&self.peer, broken, event.data);
                return self.fail_with(error);
            }
            self.opening = None;
            if self.format.decoder.is_done() {
                return self.complete();
            }
        }
        if matches!(self.format.decoder.stop(), Ok(Some(_))) {
            self.silence.hurry();
        }
    }

    /// The body ended, properly or not.
    fn ended(&mut self, reason: Option<&str>) {
        if let Shape::Whole(whole) = &mut self.shape {
            let whole = std::mem::take(whole);
            if let Err(broken) = self.format.decoder.whole(&whole, &mut self.out) {
                let error = explain(&self.peer, broken, &whole);
                return self.fail_with(error);
            }
        } else {
            if let Shape::Events(events) = &mut self.shape {
                events.finish();
            }
            self.read_events(true);
        }
        if self.body.is_none() {
            return;
        }
        match self.format.decoder.stop() {
            Ok(None) => {
                let cut = self.describe_cut(reason);
                self.fail(ErrorKind::Malformed, &cut);
            }
            Ok(Some(_)) | Err(_) => self.complete(),
        }
    }

    fn describe_cut(&self, reason: Option<&str>) -> String {
        let why = reason.map_or(String::new(), |r| format!(" ({})", self.peer.quote(r)));
        let cut = format!(
            "the answer was cut: the connection ended after {} bytes without the end of the \
             answer{why}",
            self.received
        );
        match &self.opening {
            Some(opening) if !opening.is_empty() => format!(
                "{cut}; this is no event stream, is base_url right? It began: {}",
                self.peer.quote_bytes(opening)
            ),
            Some(_) | None => cut,
        }
    }

    fn stalled(&mut self) {
        match self.format.decoder.stop() {
            Ok(Some(_)) => {
                // Whatever else it had to say, the connection is not waited for.
                self.push_stop();
                self.body = None;
            }
            Ok(None) | Err(_) => {
                let limit = self.silence.limit;
                self.fail(
                    ErrorKind::Stalled,
                    &format!("the answer stalled: silence for {limit:?}"),
                );
            }
        }
    }

    fn complete(&mut self) {
        self.push_stop();
        if let Some(body) = self.body.take() {
            body.keep();
        }
    }

    fn push_stop(&mut self) {
        match self.format.decoder.stop() {
            Ok(stop) => self.out.push(Chunk::Stop(stop.unwrap_or(StopReason::Done))),
            Err(broken) => self.error = Some(explain(&self.peer, broken, b"the end of the answer")),
        }
    }

    fn fail(&mut self, kind: ErrorKind, message: &str) {
        self.fail_with(self.peer.error(kind, message));
    }

    fn fail_with(&mut self, error: Error) {
        self.error = Some(error);
        self.body = None;
    }
}

/// What a decoder did not understand, with what came.
fn explain(peer: &Peer, broken: Broken, came: &[u8]) -> Error {
    match broken {
        Broken::Reported(error) => peer.in_stream(&error),
        Broken::TooLong => {
            let message = format!(
                "sent an event of more than {} MiB",
                sse::MAX_EVENT_BYTES >> 20
            );
            peer.error(ErrorKind::Malformed, &message)
        }
        Broken::Json(reason) | Broken::Nonsense(reason) => {
            let came = peer.quote_bytes(came);
            let message =
                format!("sent an answer that makes no sense ({reason}); this came: {came}");
            peer.error(ErrorKind::Malformed, &message)
        }
    }
}

/// Watches for silence without touching the timer at every chunk.
struct Silence {
    limit: Duration,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Silence {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: Instant::now(),
            timer: Box::pin(sleep(limit)),
        }
    }

    fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Waits no longer than [`LAST_WORDS`] from now on.
    fn hurry(&mut self) {
        if self.limit > LAST_WORDS {
            self.limit = LAST_WORDS;
            self.timer.as_mut().reset(Instant::now() + LAST_WORDS);
        }
    }

    fn poll_too_long(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let due = self.since + self.limit;
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
