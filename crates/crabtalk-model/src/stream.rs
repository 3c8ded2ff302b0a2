//! A streamed answer: converts the body to events, and events to chunks.
//! Invariants: it advances only when polled; it ends with one
//! `Stop` or one error; a finished answer returns its connection to the pool, an
//! unfinished one closes it.

use crate::bedrock::Frames;
use crate::decode::{Broken, Chunks, Decode};
use crate::failure::Peer;
use crate::http::Body;
use crate::sse::{self, Event};
use crabtalk_domain::model::{Chunk, Error, ErrorKind, StopReason};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Largest answer accepted from a server that does not stream.
const MAX_WHOLE_BYTES: usize = sse::MAX_EVENT_BYTES;

/// Time for usage and terminator after the stop reason; some servers then neither send them nor close.
const TRAILER_TIME: Duration = Duration::from_secs(5);

/// Bytes of a body that are quoted when it is not an event stream.
const MAX_OPENING_BYTES: usize = 300;

/// The framing of a body.
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

    /// The next complete event; always `None` for a document.
    fn next(&mut self) -> Result<Option<Event>, Broken> {
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
    shape: Shape,
    decoder: Box<dyn Decode>,
    out: Chunks,
    /// The timeout between two bytes.
    limit: Duration,
    silence: Pin<Box<Sleep>>,
    peer: Arc<Peer>,
    received: u64,
    /// The beginning of the body, until the first event.
    opening: Option<Vec<u8>>,
    error: Option<Error>,
}

impl Answer {
    pub(crate) fn new(
        body: Body,
        streams: bool,
        decoder: Box<dyn Decode>,
        idle_timeout: Duration,
        peer: Arc<Peer>,
    ) -> Self {
        let shape = match decoder.is_framed() {
            _ if !streams => Shape::Whole(Vec::new()),
            true => Shape::Frames(Frames::default()),
            false => Shape::Events(sse::Decoder::default()),
        };
        Self {
            body: Some(body),
            shape,
            decoder,
            out: Chunks::default(),
            limit: idle_timeout,
            silence: Box::pin(sleep(idle_timeout)),
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
            match body.poll_data(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.silence.as_mut().reset(Instant::now() + self.limit);
                    self.received += bytes.len() as u64;
                    self.take_in(&bytes);
                }
                Poll::Ready(Some(Err(reason))) => self.ended(Some(&reason)),
                Poll::Ready(None) => self.ended(None),
                Poll::Pending => match self.silence.as_mut().poll(cx) {
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
            if let Err(broken) = self.decoder.event(&event.name, &event.data, &mut self.out) {
                // An invalid event at the end means that the answer was cut.
                if at_end && matches!(broken, Broken::Json(_)) {
                    return;
                }
                let error = explain(&self.peer, broken, &event.data);
                return self.fail_with(error);
            }
            self.opening = None;
            if self.decoder.is_done() {
                return self.complete();
            }
        }
        if matches!(self.decoder.stop(), Ok(Some(_))) {
            self.limit = self.limit.min(TRAILER_TIME);
            self.silence.as_mut().reset(Instant::now() + self.limit);
        }
    }

    /// Handles the end of the body, regular or not.
    fn ended(&mut self, reason: Option<&str>) {
        if let Shape::Whole(whole) = &mut self.shape {
            let whole = std::mem::take(whole);
            if let Err(broken) = self.decoder.whole(&whole, &mut self.out) {
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
        match self.decoder.stop() {
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
            "the answer is incomplete: the connection ended after {} bytes{why}",
            self.received
        );
        match &self.opening {
            Some(opening) if !opening.is_empty() => format!(
                "{cut}; the response is not an event stream: check base_url. It begins with: {}",
                self.peer.quote_bytes(opening)
            ),
            Some(_) | None => cut,
        }
    }

    fn stalled(&mut self) {
        match self.decoder.stop() {
            Ok(Some(_)) => {
                self.push_stop();
                self.body = None;
            }
            Ok(None) | Err(_) => {
                let limit = self.limit;
                self.fail(
                    ErrorKind::Stalled,
                    &format!("the answer stalled: no data for {limit:?}"),
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
        match self.decoder.stop() {
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

/// Explains a decoder's error, with a quote of the input.
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
            let message = format!("sent an invalid answer ({reason}): {came}");
            peer.error(ErrorKind::Malformed, &message)
        }
    }
}
