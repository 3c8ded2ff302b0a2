//! Discovers components by the port files in `run/`, once a second.
//!
//! Invariant: the number and size of the files that are read are bounded.

use super::Mcps;
use anyhow::Context;
use crabtalk_component::{MAX_PORT_FILE_BYTES, PortFile};
use crabtalk_config::{Config, Home};
use crabtalk_mcp::FoundPort;
use crabtalk_runtime::Runtime;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of port files to read; a machine has a few.
const MAX_FILES: usize = 512;

/// Interval between two reads of the folder.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Keeps the list of components equal to the folder's content, and publishes changes.
/// Resolves only with an error.
pub(crate) async fn work(
    mcps: Arc<Mcps>,
    config: Arc<Config>,
    home: Home,
    runtime: Runtime,
) -> anyhow::Result<()> {
    mcps.configure(&config).await;
    tokio::select! {
        () = mcps.tell(&runtime) => Ok(()),
        discovered = discover(&mcps, &home) => discovered,
    }
}

async fn discover(mcps: &Mcps, home: &Home) -> anyhow::Result<()> {
    loop {
        let folder = home.clone();
        let found = tokio::task::spawn_blocking(move || scan(&folder)).await;
        let found = found.context("the folder of port files could not be read")?;
        mcps.servers.discover(found).await;
        tokio::select! {
            () = mcps.look.notified() => {}
            () = tokio::time::sleep(READ_EVERY) => {}
        }
    }
}

/// The port files by name. Blocks.
fn scan(home: &Home) -> Vec<FoundPort> {
    let entries = std::fs::read_dir(home.run_dir())
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let component = name.strip_suffix(".port")?.to_owned();
        (!component.is_empty()).then_some((component, entry.path()))
    });
    let mut found: Vec<FoundPort> = names
        .take(MAX_FILES)
        .map(|(name, path)| FoundPort {
            says: read(&path),
            name,
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn read(path: &Path) -> Result<PortFile, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("its port file {}: {why}", path.display());
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(wrong(&"is a link, not a regular file"));
    }
    let bytes = crabtalk_files::read(path, MAX_PORT_FILE_BYTES);
    let bytes = bytes.map_err(|e| wrong(&e))?;
    PortFile::parse(&bytes).map_err(|e| wrong(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_port_files_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path(), None).unwrap().create().unwrap();
        std::fs::create_dir_all(home.run_dir()).unwrap();
        for name in [
            ".tmpAbC123",
            ".crabtalk-AbC123.tmp",
            "dice.port.tmp",
            ".port",
            "dice.port",
        ] {
            std::fs::write(home.run_dir().join(name), "4711\nabc\n").unwrap();
        }
        let found: Vec<String> = scan(&home).into_iter().map(|found| found.name).collect();
        assert_eq!(found, ["dice"]);
    }
}
