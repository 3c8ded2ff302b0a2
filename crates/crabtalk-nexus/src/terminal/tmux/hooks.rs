//! What tmux does when a window rings or ends: it counts, and wakes
//! the waiting client.
//!
//! Invariants: only index [`INDEX`] of each hook is ours, so that what a user
//! hooked stays and goes on working; hooks are global, since one of a session
//! would hide the user's own.

use super::Tmux;
use super::team::OWNER;
use crate::terminal::error::Error;

/// Index of our hooks in the lists of hooks.
pub(crate) const INDEX: u32 = 77;

/// What wakes the control client.
pub(crate) const CHANNEL: &str = "nexus-77";

/// Set while a signal waits to be heard: two signals without a waiter take
/// each other away, so there is never a second one.
pub(crate) const WOKEN: &str = "@nexus_woken";

/// Wakes the control client, once until it has looked.
pub(crate) fn wake() -> String {
    format!(
        "if-shell -F \"#{{!=:#{{{WOKEN}}},1}}\" \"set-option -g {WOKEN} 1 ; wait-for -S {CHANNEL}\""
    )
}

/// The hooks, and what each counts. A flag of tmux's says only that a window
/// rang, not how often, and none is set on a viewed window.
const HOOKS: &[(&str, Option<&str>)] = &[
    ("alert-bell", Some("@nexus_bell")),
    ("pane-died", None),
    ("window-unlinked", None),
    ("client-attached", None),
    ("client-detached", None),
    ("client-session-changed", None),
    ("session-window-changed", None),
];

impl Tmux {
    pub(crate) async fn set_hooks(&self) -> Result<(), Error> {
        for (hook, counter) in HOOKS {
            let wake = wake();
            let command = match counter {
                Some(counter) => {
                    format!("set-option -wF {counter} \"#{{e|+:#{{{counter}}},1}}\" ; {wake}")
                }
                None => wake,
            };
            self.run(&["set-hook", "-g", &format!("{hook}[{INDEX}]"), &command])
                .await?;
        }
        Ok(())
    }

    /// Takes all of them away again.
    pub(crate) async fn unset_hooks(&self) -> Result<(), Error> {
        for option in [WOKEN, OWNER] {
            self.run(&["set-option", "-gu", option]).await?;
        }
        for (hook, _) in HOOKS {
            self.run(&["set-hook", "-gu", &format!("{hook}[{INDEX}]")])
                .await?;
        }
        Ok(())
    }
}
