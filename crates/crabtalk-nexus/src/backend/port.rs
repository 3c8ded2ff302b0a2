//! The port to an agent.

use crate::backend::answer::{Answered, Compressed, Failure, Launch, Look, Mark, Probe};
use crate::backend::answer::{Submission, Submitted};
use crate::backend::event::Event;
use crate::backend::prompt::{Prompt, Reply};
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;

/// The future result of a call.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// The events of an agent. The stream ends when the backend can no longer be used;
/// it continues after [`crate::backend::What::Died`], since a launch may follow.
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// Drives one agent.
///
/// Rules for every call:
///
/// - A call may be dropped at any await. Text that was typed by then
///   stays typed, and a repeated call must tolerate it.
/// - A call reports what it did: [`Backend::submit`] returns
///   when the text is sent, and [`crate::backend::What::Seen`] reports that it
///   arrived.
/// - NEXUS makes one call to an agent at a time, except [`Backend::stop`],
///   [`Backend::cancel`], [`Backend::probe`] and [`Backend::look`], which may
///   overlap another call.
/// - No call waits for a person, and only [`Backend::compress`] waits for a model, for minutes at
///   most. Other calls fail after half a minute with [`Failure::Timeout`].
/// - Programs that a call starts end with their agent, including descendants. If NEXUS was
///   killed, they continue, and [`Launch::Adopt`] finds them.
pub trait Backend: Send + Sync {
    /// The agent's events, in order. NEXUS calls this
    /// once, before the first launch, and polls the stream from then on. The backend works while the
    /// stream is polled, or in tasks that it owns
    /// and ends on drop. Events wait in a bounded queue, in which only
    /// [`crate::backend::What::Progress`] may be merged or omitted.
    fn events(&self) -> Events;

    /// Starts the agent. Returns when it is started or found;
    /// one [`crate::backend::What::Ready`] follows when it accepts
    /// input, or [`crate::backend::What::Died`]. A screen before the composer
    /// (a question of trust, a welcome page) must not count as ready.
    ///
    /// [`Launch::Adopt`] types nothing, and fails with [`Failure::NotRunning`] if the agent
    /// does not run.
    fn launch(&self, launch: Launch) -> Call<'_, ()>;

    /// The current end of the transcript, so that later entries can be found.
    /// NEXUS writes it to disk before it submits.
    fn mark(&self) -> Call<'_, Mark>;

    /// Gives the agent a message as one user turn: exactly this text without control characters
    /// other than newline and tab. If the text would open a completion, the
    /// backend ensures that it is submitted once.
    ///
    /// With [`Submission::again`] it first searches the transcript after the mark
    /// and returns [`Submitted::AlreadyThere`] if it finds the turn, so that a supervisor killed during
    /// a delivery neither loses nor duplicates a message. It also removes text that an
    /// earlier attempt left in the composer.
    /// In both cases one [`crate::backend::What::Seen`] with this id follows
    /// when the turn is in the transcript, never because the screen changed. The
    /// [`crate::backend::What::TurnEnded`] of that turn always follows with its
    /// output: when it ends, or at once if it ended while NEXUS was not running.
    fn submit(&self, message: Submission) -> Call<'_, Submitted>;

    /// Answers a prompt. A compare-and-swap: if this
    /// prompt is not the open one, nothing is typed and the result is
    /// [`Answered::Stale`]. On success the prompt is closed; the call fails, for example, if
    /// "always" is not offered. A reason is passed to the model if the agent supports
    /// that.
    fn reply<'a>(&'a self, prompt: &'a Prompt, reply: &'a Reply) -> Call<'a, Answered>;

    /// Observes the agent without typing.
    fn probe(&self) -> Call<'_, Probe>;

    /// Compresses the context. Returns when the agent accepts
    /// input again. After a failure the agent has its former context. A
    /// supervisor that was killed during the call repeats it.
    fn compress(&self) -> Call<'_, Compressed>;

    /// Cancels the turn in flight; returns whether there was one, whose
    /// [`crate::backend::What::TurnEnded`] follows.
    fn cancel(&self) -> Call<'_, bool>;

    /// Ends the agent and its descendants by SIGTERM, then SIGKILL. Returns
    /// when they have ended; no [`crate::backend::What::Died`] follows. For a
    /// conversation of the daemon, the run ends and the conversation stays.
    fn stop(&self) -> Call<'_, ()>;

    /// The screen or history, and the command that attaches to it.
    fn look(&self) -> Call<'_, Look>;
}
