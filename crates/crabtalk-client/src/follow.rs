//! The reconnect loop behind [`Run`](crate::Run) and [`Watch`](crate::Watch).

use crate::client::Client;
use crate::endpoint::Answers;
use crate::error::Error;
use crabtalk_proto::{ClientError, ClientMessage, FrameError, ServerMessage};
use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// First pause between two attempts, doubling up to [`LONGEST_PAUSE`]. Most outages are shorter.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A stream of events that survives lost connections. Dropping it has no effect on the daemon.
pub struct News<T>(Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>);

impl<T> Stream for News<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<T> fmt::Debug for News<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("News")
    }
}

/// A stream of answers that can be resumed on another connection.
pub(crate) trait Follow: Send + 'static {
    type Message: TryFrom<ServerMessage, Error = ClientError> + Send;
    type News: Send;

    /// The request that continues after the last answer.
    fn request(&self) -> ClientMessage;

    /// Appends the news in an answer; returns whether it was the last answer.
    fn take(&mut self, message: Self::Message, news: &mut VecDeque<Self::News>) -> bool;

    /// Records that the connection is lost.
    fn lost(&mut self, why: String) -> Self::News;

    /// Records that another connection is open and the request was sent.
    fn reconnected(&mut self) -> Option<Self::News> {
        None
    }

    /// Explains the error that ends the stream.
    fn explain(&self, error: Error) -> Error {
        error
    }
}

pub(crate) fn follow<F: Follow>(client: Client, follow: F) -> News<F::News> {
    let following = Following {
        client,
        follow,
        answers: None,
        retry: None,
        is_lost: false,
        begun: false,
        ready: VecDeque::new(),
        over: false,
    };
    News(Box::pin(unfold(following, async |mut following| {
        let news = following.next().await?;
        Some((news, following))
    })))
}

struct Following<F: Follow> {
    client: Client,
    follow: F,
    answers: Option<Answers>,
    /// Attempts since the connection was lost, until the next answer.
    retry: Option<Retry>,
    /// Whether a loss was reported and no connection opened since.
    is_lost: bool,
    /// Whether an answer arrived or the connection was lost: from then on temporary refusals are retried.
    begun: bool,
    ready: VecDeque<F::News>,
    over: bool,
}

impl<F: Follow> Following<F> {
    async fn next(&mut self) -> Option<Result<F::News, Error>> {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return Some(Ok(news));
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.step().await {
                self.over = true;
                return Some(Err(self.follow.explain(error)));
            }
        }
    }

    async fn step(&mut self) -> Result<(), Error> {
        let Some(answers) = &mut self.answers else {
            return self.open().await;
        };
        let closed = || Err(ClientError::Connection(FrameError::Closed));
        let answer = answers.next().await.unwrap_or_else(closed);
        match answer.and_then(F::Message::try_from) {
            Ok(message) => {
                (self.begun, self.retry) = (true, None);
                self.over = self.follow.take(message, &mut self.ready);
                Ok(())
            }
            Err(error) => self.lose(error.into()).await,
        }
    }

    async fn open(&mut self) -> Result<(), Error> {
        match (self.client.connect().await, &mut self.retry) {
            (Ok(connection), _) => {
                self.answers = Some(connection.into_answers(self.follow.request()));
                if std::mem::take(&mut self.is_lost) {
                    self.ready.extend(self.follow.reconnected());
                }
                Ok(())
            }
            (Err(error), Some(retry)) => retry.after(error).await,
            (Err(error), None) => self.lose(error).await,
        }
    }

    async fn lose(&mut self, error: Error) -> Result<(), Error> {
        let is_broken = matches!(error, Error::Broken(_));
        if !(is_broken || self.begun && error.may_pass()) {
            return Err(error);
        }
        (self.answers, self.begun) = (None, true);
        match &mut self.retry {
            // Without an answer since the last loss, the attempts continue their backoff.
            Some(retry) => retry.after(error).await,
            None => {
                self.retry = Some(Retry::new(self.client.patience()));
                self.is_lost = true;
                let lost = self.follow.lost(error.to_string());
                self.ready.push_back(lost);
                Ok(())
            }
        }
    }
}

/// The backoff since a connection was lost.
struct Retry {
    lost_at: Instant,
    patience: Duration,
    pause: Duration,
}

impl Retry {
    fn new(patience: Duration) -> Self {
        Self {
            lost_at: Instant::now(),
            patience,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits before the next attempt. Fails if the error is permanent or the time for attempts is over.
    async fn after(&mut self, error: Error) -> Result<(), Error> {
        if !error.may_pass() {
            return Err(error);
        }
        if self.lost_at.elapsed() + self.pause > self.patience {
            return Err(Error::Lost {
                secs: self.patience.as_secs(),
                why: error.to_string(),
            });
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
