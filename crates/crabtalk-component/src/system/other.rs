//! Elsewhere: what the standard library has for all systems.

use anyhow::Context;
use std::fs::DirBuilder;

/// What lies in a person's own folder is theirs alone by what it inherits.
pub(crate) fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder
}

pub(crate) fn user_id() -> u32 {
    0
}

/// Resolves when the system asks the process to end: Ctrl-C.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    tokio::signal::ctrl_c()
        .await
        .context("cannot watch for Ctrl-C")
}

pub(crate) fn own_uid() -> Option<u32> {
    None
}
