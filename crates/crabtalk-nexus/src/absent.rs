//! An agent that cannot be driven here, and says why each time it is asked.
//!
//! So one that lacks its program or its tmux costs the others nothing.

use crate::backend::{
    Answered, Backend, Call, Compressed, Compression, Events, Failure, Launch, Look, Mark, Probe,
    Prompt, Submission, Submitted,
};

/// An agent that cannot be driven.
#[derive(Debug, Clone)]
pub struct Absent(String);

impl Absent {
    /// With the reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn no<T: Send + 'static>(&self) -> Call<'_, T> {
        let why = Failure::Missing(self.0.clone());
        Box::pin(async move { Err(why) })
    }
}

impl Backend for Absent {
    fn events(&self) -> Events {
        Box::pin(futures_util::stream::pending())
    }

    fn launch(&self, _: Launch) -> Call<'_, ()> {
        self.no()
    }

    fn mark(&self) -> Call<'_, Mark> {
        self.no()
    }

    fn submit(&self, _: Submission) -> Call<'_, Submitted> {
        self.no()
    }

    fn allow<'a>(&'a self, _: &'a Prompt) -> Call<'a, Answered> {
        self.no()
    }

    fn deny<'a>(&'a self, _: &'a Prompt, _: &'a str) -> Call<'a, Answered> {
        self.no()
    }

    fn answer<'a>(&'a self, _: &'a Prompt, _: &'a str) -> Call<'a, Answered> {
        self.no()
    }

    fn probe(&self) -> Call<'_, Probe> {
        self.no()
    }

    fn nudge<'a>(&'a self, _: &'a str) -> Call<'a, Answered> {
        self.no()
    }

    fn compress<'a>(&'a self, _: Compression, _: Option<&'a Mark>) -> Call<'a, Compressed> {
        self.no()
    }

    fn cancel(&self) -> Call<'_, ()> {
        self.no()
    }

    fn stop(&self) -> Call<'_, ()> {
        // Nothing of it runs.
        Box::pin(async { Ok(()) })
    }

    fn look(&self) -> Call<'_, Look> {
        self.no()
    }
}
