//! What is followed over lost connections, as a stream of its news.

use crate::error::Error;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// News of a run, or of all runs. Dropping it leaves them alone.
pub struct News<T>(Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>);

impl<T> News<T> {
    pub(crate) fn of(news: impl Stream<Item = Result<T, Error>> + Send + 'static) -> Self {
        Self(Box::pin(news))
    }
}

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
