//! User id, private folders and signals.

use anyhow::Context;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use tokio::signal::unix::{SignalKind, signal};

/// Makes folders private.
pub(crate) fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder.mode(0o700)
}

/// The user id.
pub(crate) fn user_id() -> u32 {
    let home = std::env::home_dir().and_then(|home| std::fs::metadata(home).ok());
    home.map_or(0, |meta| meta.uid())
}

/// Resolves on SIGTERM or Ctrl-C.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    tokio::select! {
        _ = terminate.recv() => {}
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot watch for SIGINT")?,
    }
    Ok(())
}
