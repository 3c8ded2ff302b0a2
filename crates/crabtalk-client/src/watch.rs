//! What happens in all runs, over lost connections (WIRE-8).
//!
//! Invariant: each event is given once and none is left out, or it is said how
//! many are.

use crate::again::Again;
use crate::client::Client;
use crate::endpoint::Answers;
use crate::error::Error;
use crate::news::News;
use crabtalk_proto::{AgentEventKind, AgentEventMsg, FrameError, SubscribeEvents};
use futures_util::StreamExt;
use futures_util::stream::unfold;

/// What one hears of all runs.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchNews {
    /// Something happened. Its `missed` says how many events were lost before
    /// it because it was read too slowly.
    Event(Box<AgentEventMsg>),
    /// The connection is lost; another one is being tried.
    Lost {
        /// What happened to it.
        why: String,
    },
    /// Connected again to the same daemon.
    Back {
        /// How many events are missing; `None` if the daemon is too old to
        /// know.
        missed: Option<u64>,
    },
    /// Connected to a daemon that was started since. How many events of the
    /// one before are missing is not known.
    Restarted {
        /// How many events of this one are missing.
        missed: u64,
    },
}

impl Client {
    /// Follows what happens in all runs, over lost connections.
    pub fn watch(&self, request: SubscribeEvents) -> Watch {
        let watching = Watching::new(self.clone(), request);
        News::of(unfold(watching, async |mut watching| {
            let news = watching.next().await?;
            Some((news, watching))
        }))
    }
}

/// News of all runs, from [`Client::watch`]. It ends only with an error.
pub type Watch = News<WatchNews>;

struct Watching {
    client: Client,
    /// What is asked for, with the place to take up from.
    request: SubscribeEvents,
    answers: Option<Answers>,
    /// Attempts since the connection was lost.
    again: Option<Again>,
    /// Whether the next event is the first one of a connection.
    first: bool,
    /// Whether there was a connection before.
    known: bool,
    ready: Option<WatchNews>,
    over: bool,
}

impl Watching {
    fn new(client: Client, mut request: SubscribeEvents) -> Self {
        let known = !request.life.is_empty();
        request.after.get_or_insert(0);
        Self {
            client,
            request,
            answers: None,
            again: None,
            first: true,
            known,
            ready: None,
            over: false,
        }
    }

    async fn next(&mut self) -> Option<Result<WatchNews, Error>> {
        loop {
            if let Some(ready) = self.ready.take() {
                return Some(Ok(ready));
            }
            if self.over {
                return None;
            }
            let Some(answers) = &mut self.answers else {
                match self.open().await {
                    Ok(()) => continue,
                    Err(error) => return self.fail(error),
                }
            };
            let why = match answers.next().await {
                Some(message) => match message.and_then(AgentEventMsg::try_from) {
                    Ok(event) => match self.take(event) {
                        Some(news) => return Some(Ok(news)),
                        None => continue,
                    },
                    Err(error) => Error::from(error),
                },
                None => Error::Broken(FrameError::Closed),
            };
            let is_broken = matches!(why, Error::Broken(_));
            if !(is_broken || self.known && why.may_pass()) {
                return self.fail(why);
            }
            self.answers = None;
            self.first = true;
            // Attempts go on where nothing came of the last connection.
            if self.again.is_none() {
                self.again = Some(Again::new(self.client.patience()));
                let why = why.to_string();
                return Some(Ok(WatchNews::Lost { why }));
            }
            if let Some(again) = &mut self.again
                && let Err(error) = again.after(why).await
            {
                return self.fail(error);
            }
        }
    }

    fn fail(&mut self, error: Error) -> Option<Result<WatchNews, Error>> {
        self.over = true;
        Some(Err(error))
    }

    async fn open(&mut self) -> Result<(), Error> {
        match (self.client.connect().await, &mut self.again) {
            (Ok(connection), _) => {
                self.answers = Some(connection.into_answers(self.request.clone().into()));
                Ok(())
            }
            (Err(error), None) => Err(error),
            (Err(error), Some(again)) => again.after(error).await,
        }
    }

    /// Takes an event in: what is to be told of it.
    fn take(&mut self, event: AgentEventMsg) -> Option<WatchNews> {
        let was_known = std::mem::replace(&mut self.known, true);
        let is_first = std::mem::take(&mut self.first);
        self.again = None;
        if event.kind == i32::from(AgentEventKind::Subscribed) {
            let same = event.life == self.request.life;
            self.request.after = Some(event.seq);
            self.request.life = event.life;
            return was_known.then_some(if same {
                WatchNews::Back {
                    missed: Some(event.missed),
                }
            } else {
                WatchNews::Restarted {
                    missed: event.missed,
                }
            });
        }
        if event.seq > 0 {
            self.request.after = Some(event.seq);
        }
        // An older daemon begins without a word, and numbers nothing.
        if is_first && was_known {
            self.ready = Some(WatchNews::Event(Box::new(event)));
            return Some(WatchNews::Back { missed: None });
        }
        Some(WatchNews::Event(Box::new(event)))
    }
}

#[cfg(test)]
mod tests;
