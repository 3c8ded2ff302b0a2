//! One run, followed to its end over lost connections (WIRE-7).
//!
//! Invariants: each event is given once and none is left out, or
//! [`RunNews::Missing`] says behind which one; nothing of another run is given;
//! the message that begins a run is sent again only while it cannot run twice
//! (CONV-9).

use crate::again::Again;
use crate::client::Client;
use crate::endpoint::Answers;
use crate::error::Error;
use crate::news::News;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AttachMsg, ClientMessage, FrameError, StreamEvent, StreamMsg, code};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use std::hash::{BuildHasher, RandomState};

/// What one hears of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunNews {
    /// Something happened in it. After the End nothing follows.
    Event(Box<StreamEvent>),
    /// The connection is lost; another one is being tried.
    Lost {
        /// What happened to it.
        why: String,
    },
    /// Connected again.
    Back,
    /// The events between this one and the next that is given cannot be told
    /// any more. What was said in them is in the history.
    Missing {
        /// `seq` of the last event that was given.
        behind: u64,
    },
}

impl Client {
    /// Runs an agent and follows the run to its end, over lost connections.
    /// The message gets a `request_id` if it has none, so that it never runs
    /// twice.
    pub fn stream(&self, request: StreamMsg) -> Run {
        follow(self.clone(), Begin::stream(request))
    }

    /// Follows the run in flight of a conversation to its end, over lost
    /// connections.
    pub fn attach(&self, request: AttachMsg) -> Run {
        follow(self.clone(), Begin::Attach(request))
    }
}

/// How a run is asked for at first.
pub(crate) enum Begin {
    Stream(StreamMsg),
    Attach(AttachMsg),
}

impl Begin {
    /// With an id of its own, so that it may be sent again.
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

    /// Whose run it is, as the client names them.
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
/// leaves the run alone.
pub type Run = News<RunNews>;

fn follow(client: Client, begin: Begin) -> Run {
    News::of(unfold(Following::new(client, begin), async |mut run| {
        let news = run.next().await?;
        Some((news, run))
    }))
}

/// Up to where a run was given.
#[derive(Debug, Default)]
struct Place {
    /// The run, from its Start on.
    run: Option<u64>,
    /// The last event that was given.
    seen: u64,
    /// The last event before the text that is being given. A replay gives a
    /// text in other pieces, so it is asked for from its beginning.
    anchor: u64,
    /// Bytes that were given of that text.
    given: usize,
    /// Whether that text is reasoning.
    thinking: bool,
    /// Bytes of a replayed text that were given before.
    skip: usize,
}

impl Place {
    /// Everything up to here was given: prepares for a replay from the anchor.
    fn rewind(&mut self) {
        self.skip = self.given;
    }

    /// Takes an event at its place: what is new of it.
    fn take(&mut self, mut event: StreamEvent) -> Option<StreamEvent> {
        if let Some(Event::Start(start)) = &event.event {
            // Of the run that was attached to, or of the next one.
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

/// A run on its way to its end.
struct Following {
    client: Client,
    begin: Begin,
    answers: Option<Answers>,
    /// Attempts since the last event, once the connection was lost.
    again: Option<Again>,
    /// Whether it ever was.
    was_lost: bool,
    /// Whether that was said, and not yet that it is back.
    said_lost: bool,
    place: Place,
    /// What is given next: of one event at most two.
    ready: Option<RunNews>,
    /// Whether the daemon numbers events and knows attaching.
    resumes: bool,
    over: bool,
}

impl Following {
    fn new(client: Client, begin: Begin) -> Self {
        let mut place = Place::default();
        if let Begin::Attach(request) = &begin {
            place.run = request.run;
            place.seen = request.after.unwrap_or_default();
            place.anchor = place.seen;
        }
        Self {
            client,
            begin,
            answers: None,
            again: None,
            was_lost: false,
            said_lost: false,
            place,
            ready: None,
            resumes: false,
            over: false,
        }
    }

    async fn next(&mut self) -> Option<Result<RunNews, Error>> {
        loop {
            if let Some(ready) = self.ready.take() {
                return Some(Ok(ready));
            }
            if self.over {
                return None;
            }
            let Some(answers) = &mut self.answers else {
                match self.open().await {
                    Ok(None) => continue,
                    Ok(Some(news)) => return Some(Ok(news)),
                    Err(error) => return self.fail(error),
                }
            };
            let failed = match answers.next().await {
                Some(message) => match message.and_then(StreamEvent::try_from) {
                    Ok(event) => match self.take(event) {
                        Some(news) => return Some(Ok(news)),
                        None => continue,
                    },
                    Err(error) => Error::from(error),
                },
                None => Error::Broken(FrameError::Closed),
            };
            let is_broken = matches!(failed, Error::Broken(_));
            if !self.resumes || !(is_broken || self.was_lost && failed.may_pass()) {
                return self.fail(failed);
            }
            if let Some(news) = self.lose(failed).await {
                return Some(news);
            }
        }
    }

    /// The connection is lost. Where nothing came of it, attempts go on.
    async fn lose(&mut self, failed: Error) -> Option<Result<RunNews, Error>> {
        self.answers = None;
        self.place.rewind();
        self.was_lost = true;
        if let Some(again) = &mut self.again {
            return match again.after(failed).await {
                Ok(()) => None,
                Err(error) => self.fail(error),
            };
        }
        self.again = Some(Again::new(self.client.patience()));
        self.said_lost = true;
        let why = failed.to_string();
        Some(Ok(RunNews::Lost { why }))
    }

    fn fail(&mut self, error: Error) -> Option<Result<RunNews, Error>> {
        self.over = true;
        Some(Err(match (error, self.place.run) {
            (Error::Refused(status), Some(run))
                if self.was_lost && status.code == code::NOT_FOUND =>
            {
                Error::RunGone {
                    run,
                    why: status.message,
                }
            }
            (error, _) => error,
        }))
    }

    /// Connects, and asks for the run from its place on.
    async fn open(&mut self) -> Result<Option<RunNews>, Error> {
        let connection = match (self.client.connect().await, &mut self.again) {
            (Ok(connection), _) => connection,
            (Err(error), None) => return Err(error),
            (Err(error), Some(again)) => {
                again.after(error).await?;
                return Ok(None);
            }
        };
        self.resumes = connection.welcome().is_some();
        self.answers = Some(connection.into_answers(self.request()));
        Ok(std::mem::take(&mut self.said_lost).then_some(RunNews::Back))
    }

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

    /// Takes an event in: what is to be told of it.
    fn take(&mut self, event: StreamEvent) -> Option<RunNews> {
        // Those who said it know it.
        if self.begin.is_own() && matches!(event.event, Some(Event::UserMessage(_))) {
            return None;
        }
        self.again = None;
        let is_end = event.is_end();
        self.over = is_end;
        // An end from the log, which has no number: what was in between is
        // not told.
        let behind = self.place.seen;
        let missing = is_end && event.seq == 0 && self.was_lost && self.place.run.is_some();
        let event = self.place.take(event)?;
        let event = RunNews::Event(Box::new(event));
        if missing {
            self.ready = Some(event);
            return Some(RunNews::Missing { behind });
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests;
