//! The port itself.

use crate::backend::answer::{Answered, Compressed, Failure, Launch, Look, Mark, Probe};
use crate::backend::answer::{Submission, Submitted};
use crate::backend::event::Event;
use crate::backend::prompt::{Prompt, Reply};
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;

/// The future result of a call.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// What an agent tells. It ends when the agent's backend is of no use any more;
/// after [`crate::backend::What::Died`] it goes on, since a launch may follow.
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// One agent, driven.
///
/// What holds for every call:
///
/// - A call may be dropped at any await. Text that it has typed by then
///   stays typed, and a repeated call must tolerate it.
/// - A call says what it did, not what it hopes: [`Backend::submit`] answers
///   when the text is on its way, and [`crate::backend::What::Seen`] tells that it
///   arrived.
/// - NEXUS makes one call to an agent at a time, except [`Backend::stop`],
///   [`Backend::cancel`], [`Backend::probe`] and [`Backend::look`], which may
///   come while another one has not answered.
/// - No call waits for a model or a person. Longer than half a minute is a
///   [`Failure::Timeout`].
/// - A program that a call starts ends with its agent, with everything below
///   it, unless NEXUS was killed: then it goes on, and [`Launch::Adopt`] finds it.
pub trait Backend: Send + Sync {
    /// What this agent tells, in the order in which it happened. It is taken
    /// once, before the first launch, and polled by NEXUS from then on; what has
    /// to run for it runs while it is polled, or in tasks that the backend owns
    /// and ends when it is dropped. An event waits in a bounded queue, where
    /// [`crate::backend::What::Progress`] may be merged or left out and nothing else.
    fn events(&self) -> Events;

    /// Brings the agent to where it takes messages. It answers when the agent
    /// is started or found; one [`crate::backend::What::Ready`] follows when it takes
    /// input, or [`crate::backend::What::Died`]. No screen before the composer
    /// (a question of trust, a welcome page) may be taken for ready.
    ///
    /// [`Launch::Adopt`] types nothing. If the agent does not run it fails
    /// with [`Failure::NotRunning`].
    fn launch(&self, launch: Launch) -> Call<'_, ()>;

    /// Where the transcript ends now, so that a later look knows what is
    /// behind. NEXUS keeps it on disk before it submits.
    fn mark(&self) -> Call<'_, Mark>;

    /// Gives the agent a message, exactly this text less control characters
    /// other than newline and tab, as one user turn. Where the text is one that
    /// opens a completion the backend sees to it that it is submitted once.
    ///
    /// With [`Submission::again`] it looks into the transcript behind the mark
    /// first, and answers [`Submitted::AlreadyThere`] if the turn is there: this
    /// is how a supervisor that was killed in mid-delivery neither loses nor
    /// doubles a message. What an earlier try left in the composer is taken
    /// away first. Either way one [`crate::backend::What::Seen`] with this id is told
    /// when the turn is in the transcript, never because the screen changed. The
    /// [`crate::backend::What::TurnEnded`] of that turn follows in any case, with its
    /// output: when it ends, or at once if it ended while no NEXUS was there.
    fn submit(&self, message: Submission) -> Call<'_, Submitted>;

    /// Answers a prompt. A compare-and-swap: the answer counts only while this very
    /// prompt is the one that waits; otherwise nothing is typed and it answers
    /// [`Answered::Stale`]. Afterwards the prompt is gone, or the call fails, as where
    /// "always" is not offered. A reason reaches the model where the agent has a way for
    /// it.
    fn reply<'a>(&'a self, prompt: &'a Prompt, reply: &'a Reply) -> Call<'a, Answered>;

    /// Looks at everything there is to see, and types nothing.
    fn probe(&self) -> Call<'_, Probe>;

    /// Makes the context small. It answers when that is done and the agent takes
    /// input again. A failure means that the agent has its context as before. A
    /// supervisor that was killed meanwhile calls it again.
    fn compress(&self) -> Call<'_, Compressed>;

    /// Ends the turn in flight and nothing else; whether there was one, whose
    /// [`crate::backend::What::TurnEnded`] follows then.
    fn cancel(&self) -> Call<'_, bool>;

    /// Ends the agent: by SIGTERM, then SIGKILL, with everything below it. It answers
    /// when nothing of it is left, and no [`crate::backend::What::Died`] follows. For a
    /// conversation of the daemon: its run ends, the conversation stays.
    fn stop(&self) -> Call<'_, ()>;

    /// The screen or history, and the command that attaches to it.
    fn look(&self) -> Call<'_, Look>;
}
