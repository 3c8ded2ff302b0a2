//! Reads long texts beside the runtime's thread: there it would keep everybody waiting.
//!
//! Invariant: whoever hands over a text waits for what it says before the next, so that
//! the order stays.

use tokio::task::{JoinError, spawn_blocking};

/// Longest text that is read at once: that takes a millisecond or two, and another
/// thread would take longer to wake than most texts are.
pub(crate) const MAX_AT_ONCE: usize = 256 << 10;

/// Reads a text, at once or beside.
pub(crate) async fn read<T: Send + 'static>(
    text: Vec<u8>,
    read: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, JoinError> {
    match text.len() > MAX_AT_ONCE {
        true => spawn_blocking(move || read(&text)).await,
        false => Ok(read(&text)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use futures_util::poll;
    use std::pin::pin;
    use tokio::task::yield_now;

    /// Whether something comes to its end though no other thread has time. Then they
    /// have, and what it comes to is told.
    pub(crate) fn without_threads<T>(work: impl Future<Output = T>) -> (bool, T) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let (go, held) = std::sync::mpsc::channel::<()>();
            let holds = spawn_blocking(move || held.recv());
            let mut work = pin!(work);
            for _ in 0..100 {
                if let std::task::Poll::Ready(done) = poll!(work.as_mut()) {
                    return (true, done);
                }
                yield_now().await;
            }
            drop(go);
            let done = work.await;
            let _ = holds.await;
            (false, done)
        })
    }

    #[test]
    fn a_long_text_is_read_beside_and_a_short_one_at_once() {
        let length = |text: Vec<u8>| without_threads(read(text, <[u8]>::len));
        let (at_once, read) = length(vec![b'x'; MAX_AT_ONCE]);
        assert!(at_once && read.expect("reads") == MAX_AT_ONCE);
        let (at_once, read) = length(vec![b'x'; MAX_AT_ONCE + 1]);
        assert!(!at_once && read.expect("reads") == MAX_AT_ONCE + 1);
    }
}
