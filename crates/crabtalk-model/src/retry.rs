//! Retries and fallbacks (MODEL-3).
//! Invariants: no retry after the first content; a permanent
//! error ends the attempts with a model; the fallback follows after all attempts with the model.

use crate::config::ModelConfig;
use crate::provider::{Opened, Provider, Shared};
use crabtalk_domain::BoxStream;
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Request};
use futures_util::stream::{self, PollNext, StreamExt, TryStreamExt};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Upper limit of the first backoff, which is random in its upper half; each next limit doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Longest pause that a provider may request; beyond it, its attempts end.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Minimum pause that is reported to the reader.
const TOLD_WAIT: Duration = Duration::from_secs(1);

/// Maximum unread notices; the plan waits for room.
const MAX_NOTICES: usize = 4;

/// Receives notices until an answer begins.
type Tell = mpsc::Sender<String>;

/// A model to try.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) provider: Arc<Provider>,
    pub(crate) model: Arc<ModelConfig>,
}

/// The models to try; independent of later changes of the registry.
pub(crate) struct Plan {
    /// Models in order; an error for each name that is not configured.
    pub(crate) candidates: Vec<Result<Candidate, Error>>,
    pub(crate) request: Request,
    pub(crate) shared: Arc<Shared>,
    /// Names of the configured models, for error messages.
    pub(crate) known: String,
}

/// An answer whose first content has arrived.
struct StartedAnswer {
    chunks: VecDeque<Chunk>,
    source: Opened,
}

impl Plan {
    async fn run(&self, tell: &Tell) -> Result<StartedAnswer, Error> {
        let mut failed: Option<Error> = None;
        for (at, candidate) in self.candidates.iter().enumerate() {
            let error = match candidate {
                Ok(candidate) => match self.ask(candidate, tell).await {
                    Ok(begun) => return Ok(begun),
                    Err(error) => error,
                },
                Err(error) => error.clone(),
            };
            tracing::warn!(kind = ?error.kind, error = %error, "a model request failed");
            // Another model would not fix an overlong history or an exhausted budget.
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
                // The receiver is gone if the answer was dropped.
                let _ = tell
                    .send(format!("{}; trying {next} instead", failed.message))
                    .await;
            }
        }
        Err(failed.unwrap_or_else(|| {
            Error::new(
                ErrorKind::NotConfigured,
                "no model is configured; see [provider.NAME]",
            )
        }))
    }

    /// Calls one model, with retries.
    async fn ask(&self, candidate: &Candidate, tell: &Tell) -> Result<StartedAnswer, Error> {
        let retries = candidate.provider.config.max_retries;
        let mut backoff = FIRST_BACKOFF;
        let mut attempt = 0;
        loop {
            let error = match self.attempt(candidate).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            if !error.kind.is_transient() {
                return Err(error);
            }
            let asked = asked_for(error.kind);
            if asked.is_some_and(|asked| asked > MAX_RETRY_AFTER) {
                let message = format!(
                    "{}; that is longer than the maximum wait of {}s",
                    error.message,
                    MAX_RETRY_AFTER.as_secs()
                );
                return Err(Error::new(error.kind, message));
            }
            let wait = match asked {
                Some(asked) => asked.max(FIRST_BACKOFF / 2),
                None => backoff.mul_f64(0.5 + fastrand::f64() / 2.0),
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
            tracing::debug!(?wait, error = %error, "retrying");
            if wait >= TOLD_WAIT {
                let secs = wait.as_secs_f64().ceil();
                let _ = tell
                    .send(format!("{}; retrying in {secs} s", error.message))
                    .await;
            }
            sleep(wait).await;
            attempt += 1;
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Calls a model once and waits for the first content.
    async fn attempt(&self, candidate: &Candidate) -> Result<StartedAnswer, Error> {
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
                // Only the last usage counts; a server may repeat it without end.
                chunks.pop_back();
                tokio::task::yield_now().await;
            }
            chunks.push_back(chunk);
            if is_content {
                return Ok(StartedAnswer { chunks, source });
            }
        }
        Err(provider.error(ErrorKind::Malformed, "the answer ended without any content"))
    }
}

/// The pause that the provider requested.
fn asked_for(kind: ErrorKind) -> Option<Duration> {
    if let ErrorKind::RateLimited { retry_after } | ErrorKind::Provider { retry_after } = kind {
        retry_after
    } else {
        None
    }
}

/// Notices about the attempts, then the chunks of an answer. Work begins at the first
/// poll.
pub(crate) fn reply(plan: Plan) -> BoxStream<'static, Result<Chunk, Error>> {
    let (tell, mut told) = mpsc::channel(MAX_NOTICES);
    let notices = stream::poll_fn(move |cx| told.poll_recv(cx));
    let opening = async move {
        let begun = plan.run(&tell).await;
        drop(tell);
        // Deliver the last notice before the answer.
        tokio::task::yield_now().await;
        begun
    };
    let answer = stream::once(opening).map_ok(|mut begun| {
        let first = stream::iter(begun.chunks.into_iter().map(Ok));
        first.chain(stream::poll_fn(move |cx| begun.source.poll_chunk(cx)))
    });
    Box::pin(stream::select_with_strategy(
        notices.map(|what| Ok(Chunk::Notice(what))),
        answer.try_flatten(),
        |(): &mut ()| PollNext::Left,
    ))
}
