//! What tmux does when a window rings: it counts. A flag of tmux's says only that a
//! window rang, not how often, and none is set on a viewed window.
//!
//! Invariants: only index 77 of the hook is ours, so that what a user hooked stays and
//! goes on working; the hook is global, since one of a session would hide the user's own.

use super::Tmux;
use super::team::OWNER;
use crate::terminal::error::Error;

const HOOK: &str = "alert-bell[77]";

const COUNT: &str = "set-option -wF @nexus_bell \"#{e|+:#{@nexus_bell},1}\"";

impl Tmux {
    pub(crate) async fn set_hooks(&self) -> Result<(), Error> {
        self.run(&["set-hook", "-g", HOOK, COUNT]).await.map(drop)
    }

    /// Takes away what was set in the server.
    pub(crate) async fn unset_hooks(&self) -> Result<(), Error> {
        self.run(&["set-option", "-gu", OWNER]).await?;
        self.run(&["set-hook", "-gu", HOOK]).await.map(drop)
    }
}
