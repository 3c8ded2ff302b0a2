//! One run, followed to its end over lost connections (WIRE-7).
//!
//! Invariants: each event is returned once, and a gap is reported as
//! [`RunNews::Missing`]; events of other runs are not returned; the message that begins a run
//! carries a request id, so a retry does not run it twice (CONV-9).

use crate::client::Client;
use crate::error::Error;
use crate::follow::{Follow, News, follow};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AttachMsg, ClientMessage, StreamEvent, StreamMsg, code};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

/// News of one run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunNews {
    /// An event of the run. The End is the last one.
    Event(Box<StreamEvent>),
    /// The connection is lost; the client tries to reconnect.
    Lost {
        /// The reason.
        why: String,
    },
    /// The client is connected again.
    Back,
    /// Events after `behind` were lost. Their texts are in the history.
    Missing {
        /// `seq` of the last event before the gap.
        behind: u64,
    },
}

impl Client {
    /// Runs an agent and follows the run to its end, over lost connections.
    /// A message without a `request_id` gets one, so that a retry never runs it
    /// twice.
    pub fn stream(&self, request: StreamMsg) -> Run {
        follow(self.clone(), Following::new(Begin::stream(request)))
    }

    /// Follows the run in flight of a conversation to its end, over lost
    /// connections.
    pub fn attach(&self, request: AttachMsg) -> Run {
        follow(self.clone(), Following::new(Begin::Attach(request)))
    }
}

/// The first request for a run.
pub(crate) enum Begin {
    Stream(StreamMsg),
    Attach(AttachMsg),
}

impl Begin {
    /// Starts a run with a request id, so that the request may be sent again.
    pub(crate) fn stream(mut request: StreamMsg) -> Self {
        if request.request_id.as_deref().is_none_or(str::is_empty) {
            request.request_id = Some(new_request_id());
        }
        Self::Stream(request)
    }

    fn message(&self) -> ClientMessage {
        match self {
            Self::Stream(request) => request.clone().into(),
            Self::Attach(request) => request.clone().into(),
        }
    }

    /// The agent and sender of the run.
    fn pair(&self) -> (String, String) {
        match self {
            Self::Stream(request) => (
                request.agent.clone(),
                request.sender.clone().unwrap_or_default(),
            ),
            Self::Attach(request) => (request.agent.clone(), request.sender.clone()),
        }
    }

    fn is_own(&self) -> bool {
        matches!(self, Self::Stream(_))
    }
}

/// A random id for [`StreamMsg::request_id`], which events of the run carry.
pub fn new_request_id() -> String {
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

/// News of a run, from [`Client::stream`] or [`Client::attach`]. Dropping it
/// does not end the run.
pub type Run = News<RunNews>;

/// The position of the reader in a run.
#[derive(Debug, Default)]
struct ReadPosition {
    /// The run's number, once Start arrived.
    run: Option<u64>,
    /// `seq` of the last returned event.
    seen: u64,
    /// `seq` of the last event before the current text. A replay may split a text differently, so it is
    /// requested from the text's beginning.
    anchor: u64,
    /// Bytes of the current text that were returned.
    given: usize,
    /// Whether the current text is reasoning.
    thinking: bool,
    /// Bytes of a replayed text to skip, since they were returned before.
    skip: usize,
}

impl ReadPosition {
    /// Prepares for a replay from the anchor.
    fn rewind(&mut self) {
        self.skip = self.given;
    }

    /// Advances by an event and returns the part that is new.
    fn take(&mut self, mut event: StreamEvent) -> Option<StreamEvent> {
        if let Some(Event::Start(start)) = &event.event {
            // Start of the attached run or of the next one.
            *self = Self {
                run: Some(start.run).filter(|run| *run > 0),
                ..Self::default()
            };
        }
        let thinking = matches!(&event.event, Some(Event::Thinking(_)));
        let text = match &mut event.event {
            Some(Event::Chunk(chunk)) => &mut chunk.content,
            Some(Event::Thinking(chunk)) => &mut chunk.content,
            _ => {
                (self.anchor, self.given, self.skip) = (event.seq, 0, 0);
                self.seen = event.seq;
                return Some(event);
            }
        };
        if thinking != self.thinking {
            (self.anchor, self.given, self.skip) = (self.seen, 0, 0);
            self.thinking = thinking;
        }
        let again = text.floor_char_boundary(self.skip.min(text.len()));
        self.skip -= again;
        text.drain(..again);
        self.given += text.len();
        self.seen = self.seen.max(event.seq);
        (!text.is_empty()).then_some(event)
    }
}

struct Following {
    begin: Begin,
    place: ReadPosition,
    was_lost: bool,
}

impl Following {
    fn new(begin: Begin) -> Self {
        let mut place = ReadPosition::default();
        if let Begin::Attach(request) = &begin {
            place.run = request.run;
            place.seen = request.after.unwrap_or_default();
            place.anchor = place.seen;
        }
        Self {
            begin,
            place,
            was_lost: false,
        }
    }
}

impl Follow for Following {
    type Message = StreamEvent;
    type News = RunNews;

    fn request(&self) -> ClientMessage {
        let Some(run) = self.place.run.filter(|_| self.was_lost) else {
            return self.begin.message();
        };
        let (agent, sender) = self.begin.pair();
        AttachMsg {
            agent,
            sender,
            after: Some(self.place.anchor),
            run: Some(run),
            only_run: true,
        }
        .into()
    }

    fn take(&mut self, event: StreamEvent, news: &mut VecDeque<RunNews>) -> bool {
        // Skip the client's own message.
        if self.begin.is_own() && matches!(event.event, Some(Event::UserMessage(_))) {
            return false;
        }
        let is_end = event.is_end();
        // An End read from the log has no number: the events before it are lost.
        let is_gap = is_end && event.seq == 0 && self.was_lost && self.place.run.is_some();
        if is_gap {
            let behind = self.place.seen;
            news.push_back(RunNews::Missing { behind });
        }
        let event = self.place.take(event);
        news.extend(event.map(|event| RunNews::Event(Box::new(event))));
        is_end
    }

    fn lost(&mut self, why: String) -> RunNews {
        self.was_lost = true;
        self.place.rewind();
        RunNews::Lost { why }
    }

    fn reconnected(&mut self) -> Option<RunNews> {
        Some(RunNews::Back)
    }

    fn explain(&self, error: Error) -> Error {
        match (error, self.place.run) {
            (Error::Refused(status), Some(run))
                if self.was_lost && status.code == code::NOT_FOUND =>
            {
                Error::RunGone {
                    run,
                    why: status.message,
                }
            }
            (error, _) => error,
        }
    }
}

#[cfg(test)]
mod tests;
