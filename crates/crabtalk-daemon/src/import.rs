//! Imports record files of earlier versions into the records, once.
//!
//! Invariants: the content of a file and a record of its import are committed together,
//! then the file is moved to `state/old`. A crash or a failed move imports nothing
//! twice.

mod audit;
mod crons;
mod events;
mod ledger;

use crabtalk_config::Home;
use crabtalk_store::Records;
use std::path::{Path, PathBuf};

/// Largest file to import.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Imports all old files. A failed import is logged and repeated at the next start.
pub(crate) async fn old_files(home: &Home, records: &Records) {
    let state = home.state_dir();
    let imports = [
        ("audit", audit::import(&state, records).await),
        ("ledger", ledger::import(&state, records).await),
        ("events", events::import(&state, records).await),
        ("cron", crons::import(&state, records).await),
    ];
    for (subject, imported) in imports {
        if let Err(error) = imported {
            let error = format!("{error:#}");
            tracing::error!(
                subject,
                error,
                "files of a former version were not imported"
            );
        }
    }
}

/// Moves a file or folder of the state to a free name in `state/old`.
fn put_aside(state: &Path, name: &str) -> anyhow::Result<()> {
    let old = state.join("old");
    crabtalk_files::create_folder(&old)?;
    Ok(std::fs::rename(state.join(name), free_name(&old, name))?)
}

fn free_name(old: &Path, name: &str) -> PathBuf {
    let plain = old.join(name);
    let numbered = (1_u32..).map(|n| old.join(format!("{name}.{n}")));
    let mut names = std::iter::once(plain.clone()).chain(numbered);
    names.find(|path| !path.exists()).unwrap_or(plain)
}
