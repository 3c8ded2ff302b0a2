//! Retries and fallbacks (MODEL-3).
//! Invariants: nothing is tried again after the first content; permanent
//! errors end a model's turn at once; a model's turn precedes its fallback's.

use crate::config::ModelConfig;
use crate::provider::{Opened, Provider, Shared};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Request};
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::sleep;

/// The first wait is drawn from the upper half of this; each next one doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// No wait grows beyond it, however many retries are configured.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A provider that wants a longer pause is not waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Shorter waits are not reported.
const TOLD_WAIT: Duration = Duration::from_secs(1);

/// Notices until an answer begins: a few lines for each attempt,
/// whose number is bounded.
pub(crate) type News = Arc<Mutex<VecDeque<String>>>;

/// A model to try.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) provider: Arc<Provider>,
    pub(crate) model: Arc<ModelConfig>,
}

/// Everything an answer needs; independent of later changes of the registry.
pub(crate) struct Plan {
    /// In order; an error for each name that is not configured.
    pub(crate) candidates: Vec<Result<Candidate, Error>>,
    pub(crate) request: Request,
    pub(crate) shared: Arc<Shared>,
    /// Names of the configured models, for messages.
    pub(crate) known: String,
    /// Notices about the attempts.
    pub(crate) news: News,
}

/// An answer whose first content is there.
pub(crate) struct Begun {
    chunks: VecDeque<Chunk>,
    source: Opened,
}

impl Plan {
    async fn run(self) -> Result<Begun, Error> {
        let mut failed: Option<Error> = None;
        for (at, candidate) in self.candidates.iter().enumerate() {
            let error = match candidate {
                Ok(candidate) => match self.ask(candidate).await {
                    Ok(begun) => return Ok(begun),
                    Err(error) => error,
                },
                Err(error) => error.clone(),
            };
            tracing::warn!(kind = ?error.kind, error = %error, "a model gave no answer");
            // Another model would not make the history shorter or the day longer.
            let is_final = matches!(error.kind, ErrorKind::TooLong | ErrorKind::Budget);
            failed = Some(match failed {
                Some(first) => {
                    let message = format!("{}; then {}", first.message, error.message);
                    Error::new(if is_final { error.kind } else { first.kind }, message)
                }
                None => error,
            });
            if is_final {
                break;
            }
            if let (Some(failed), Some(Ok(next))) = (&failed, self.candidates.get(at + 1)) {
                let next = &next.model.name;
                self.tell(format!("{}; {next} is asked instead", failed.message));
            }
        }
        Err(failed.unwrap_or_else(|| {
            Error::new(
                ErrorKind::NotConfigured,
                "no model is configured; see [provider.NAME]",
            )
        }))
    }

    fn tell(&self, what: String) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.push_back(what);
    }

    /// Asks one model, again while that may help.
    async fn ask(&self, candidate: &Candidate) -> Result<Begun, Error> {
        let retries = candidate.provider.config.max_retries;
        let mut backoff = FIRST_BACKOFF;
        let mut attempt = 0;
        loop {
            let error = match self.attempt(candidate).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            let wait = match wait_for(error.kind) {
                Wait::Never => return Err(error),
                Wait::TooLong(asked) => {
                    let message = format!(
                        "{}; that is longer than the {}s that are waited for",
                        error.message,
                        MAX_RETRY_AFTER.as_secs()
                    );
                    tracing::debug!(?asked, "not waiting");
                    return Err(Error::new(error.kind, message));
                }
                Wait::Exactly(asked) => asked,
                Wait::Backoff => backoff.mul_f64(0.5 + fastrand::f64() / 2.0),
            };
            if attempt == retries {
                let attempts = retries + 1;
                let note = if attempts > 1 {
                    format!(" ({attempts} attempts)")
                } else {
                    String::new()
                };
                return Err(Error::new(error.kind, format!("{}{note}", error.message)));
            }
            tracing::debug!(?wait, error = %error, "trying again");
            if wait >= TOLD_WAIT {
                let secs = wait.as_secs_f64().ceil();
                self.tell(format!("{}; again in {secs} s", error.message));
            }
            sleep(wait).await;
            attempt += 1;
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Calls once and waits for the first content.
    async fn attempt(&self, candidate: &Candidate) -> Result<Begun, Error> {
        let Candidate { provider, model } = candidate;
        let mut source = provider
            .open(&self.shared, model, &self.request, &self.known)
            .await?;
        let mut chunks = VecDeque::from([Chunk::Answering {
            provider: provider.config.name.clone(),
            model: model.name.clone(),
        }]);
        while let Some(chunk) = poll_fn(|cx| source.poll_chunk(cx)).await {
            let chunk = chunk?;
            let is_content = !matches!(chunk, Chunk::Usage(_) | Chunk::Answering { .. });
            if matches!(chunks.back(), Some(Chunk::Usage(_))) && !is_content {
                // The last figures count; a server may send them for ever.
                chunks.pop_back();
                tokio::task::yield_now().await;
            }
            chunks.push_back(chunk);
            if is_content {
                return Ok(Begun { chunks, source });
            }
        }
        Err(provider.error(ErrorKind::Malformed, "the answer ended before it began"))
    }
}

enum Wait {
    Never,
    Backoff,
    Exactly(Duration),
    TooLong(Duration),
}

fn wait_for(kind: ErrorKind) -> Wait {
    if !kind.is_transient() {
        return Wait::Never;
    }
    let asked = if let ErrorKind::RateLimited { retry_after }
    | ErrorKind::Provider { retry_after } = kind
    {
        retry_after
    } else {
        None
    };
    match asked {
        None => Wait::Backoff,
        Some(asked) if asked > MAX_RETRY_AFTER => Wait::TooLong(asked),
        Some(asked) => Wait::Exactly(asked.max(FIRST_BACKOFF / 2)),
    }
}

/// The next thing to tell.
fn told(news: &News) -> Option<String> {
    let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
    news.pop_front()
}

/// The stream that a caller holds.
pub(crate) enum Reply {
    /// No answer yet.
    Opening(BoxFuture<'static, Result<Begun, Error>>, News),
    /// An answer streams.
    Speaking(Begun),
    Over,
}

impl Reply {
    /// Makes the plan a stream. Nothing happens before it is polled.
    pub(crate) fn new(plan: Plan) -> Self {
        let news = Arc::clone(&plan.news);
        Self::Opening(Box::pin(plan.run()), news)
    }
}

impl Stream for Reply {
    type Item = Result<Chunk, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match this {
                Self::Opening(opening, news) => {
                    let polled = match told(news) {
                        Some(what) => return Poll::Ready(Some(Ok(Chunk::Notice(what)))),
                        None => opening.as_mut().poll(cx),
                    };
                    let news = Arc::clone(news);
                    match polled {
                        Poll::Pending => {
                            let what = told(&news).map(|what| Ok(Chunk::Notice(what)));
                            return what.map_or(Poll::Pending, |what| Poll::Ready(Some(what)));
                        }
                        Poll::Ready(Ok(mut begun)) => {
                            let all: Vec<String> = std::iter::from_fn(|| told(&news)).collect();
                            for what in all.into_iter().rev() {
                                begun.chunks.push_front(Chunk::Notice(what));
                            }
                            *this = Self::Speaking(begun);
                        }
                        Poll::Ready(Err(error)) => {
                            *this = Self::Over;
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                Self::Speaking(begun) => {
                    if let Some(chunk) = begun.chunks.pop_front() {
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                    let item = std::task::ready!(begun.source.poll_chunk(cx));
                    if !matches!(item, Some(Ok(_))) {
                        *this = Self::Over;
                    }
                    return Poll::Ready(item);
                }
                Self::Over => return Poll::Ready(None),
            }
        }
    }
}
