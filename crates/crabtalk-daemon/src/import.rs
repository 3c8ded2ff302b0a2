//! Takes the record files of former versions over into the records, once.
//!
//! Invariant: a file is moved to `state/old` after its content is in the records,
//! and taking it over twice changes nothing.

mod audit;
mod crons;
mod events;
mod ledger;

use crabtalk_config::Home;
use crabtalk_store::Records;
use std::path::Path;

/// Largest file that is read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Takes over what there is. What fails is tried again at the next start.
pub(crate) async fn old_files(home: &Home, records: &Records) {
    let state = home.state_dir();
    if let Err(error) = audit::import(&state, records).await {
        tracing::error!(%error, "the files of the audit are not taken over yet");
    }
    if let Err(error) = ledger::import(&state, records).await {
        tracing::error!(%error, "the files of the ledger are not taken over yet");
    }
    if let Err(error) = events::import(&state, records).await {
        tracing::error!(%error, "waiting events are not taken over yet");
    }
    if let Err(error) = crons::import(&state, records).await {
        tracing::error!(%error, "the books of cron are not taken over yet");
    }
}

/// Moves a file or folder of the state to `state/old`.
fn put_aside(state: &Path, name: &str) -> anyhow::Result<()> {
    let old = state.join("old");
    crabtalk_files::create_folder(&old)?;
    Ok(std::fs::rename(state.join(name), old.join(name))?)
}
