//! Who somebody is, folders for their owner alone, and signals.

use anyhow::Context;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use tokio::signal::unix::{SignalKind, signal};

/// Makes folders for their owner alone.
pub(crate) fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder.mode(0o700)
}

/// The number of the user whose home this is.
pub(crate) fn user_id() -> u32 {
    let home = std::env::home_dir().and_then(|home| std::fs::metadata(home).ok());
    home.map_or(0, |meta| meta.uid())
}

/// Resolves when the system asks the process to end: SIGTERM, or Ctrl-C.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    tokio::select! {
        _ = terminate.recv() => {}
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot watch for SIGINT")?,
    }
    Ok(())
}

/// Whose this process is, where the system tells without help.
#[cfg(target_os = "linux")]
pub(crate) fn own_uid() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|meta| meta.uid())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn own_uid() -> Option<u32> {
    None
}
