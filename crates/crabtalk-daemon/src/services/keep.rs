//! Supervises one service: runs it and applies its policies.

use super::{Board, OnFailure, Service, State};
use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::time::Instant;

/// Pause before the first restart, doubling up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause: a persistent failure costs one start and one line of the log a minute.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A service that has run this long has recovered: the pause starts over.
const STEADY_AFTER: Duration = Duration::from_secs(120);

/// How a service's body ended.
enum Ending {
    /// It ended at shutdown.
    Stopped,
    Done,
    Failed(String),
}

/// Runs a service until the daemon stops, its work is done, or it stays off.
pub(super) async fn keep(mut service: Service, board: Board) {
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        let error = match run(&mut service, &board).await {
            Ending::Stopped => return board.is_now(State::Stopped),
            Ending::Done => return board.is_now(State::Done),
            Ending::Failed(error) => error,
        };
        board.failed(&error);
        let (name, owner) = (service.name, service.owner);
        match service.on_failure {
            OnFailure::Restart if !board.stop().is_cancelled() => {}
            OnFailure::EndDaemon => {
                tracing::error!(service = name, owner, %error, "a vital service failed; the daemon ends");
                board.is_now(State::Failed);
                return board.breaks(format!("the service {name:?} failed: {error}"));
            }
            OnFailure::StayOff | OnFailure::Restart => {
                tracing::error!(service = name, owner, %error, "a service failed and stays off");
                return board.is_now(State::Failed);
            }
        }
        if began.elapsed() >= STEADY_AFTER {
            pause = FIRST_PAUSE;
        }
        tracing::error!(service = name, owner, %error, restarts_in = ?pause, "a service failed");
        board.is_now(State::Pausing);
        tokio::select! {
            biased;
            () = board.stop().cancelled() => return board.is_now(State::Stopped),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        board.change(|row| row.restarts += 1);
        board.is_now(State::Running);
    }
}

/// Runs the body once.
async fn run(service: &mut Service, board: &Board) -> Ending {
    let token = board.stop().clone();
    let body = AssertUnwindSafe(async { (service.body)(token).await }).catch_unwind();
    let ended = match service.is_drained {
        true => body.await,
        false => tokio::select! {
            biased;
            () = board.stop().cancelled() => return Ending::Stopped,
            ended = body => ended,
        },
    };
    match ended {
        Err(panic) => Ending::Failed(format!("it panicked: {}", panic_text(&*panic))),
        Ok(Err(error)) => Ending::Failed(format!("{error:#}")),
        Ok(Ok(())) if board.stop().is_cancelled() => Ending::Stopped,
        Ok(Ok(())) if service.on_failure == OnFailure::StayOff => Ending::Done,
        Ok(Ok(())) => Ending::Failed("it returned before the daemon's end".into()),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}
