//! Finds components by the port files in `run/`.
//!
//! The folder is watched by the kernel (inotify), which wakes nobody while nothing
//! happens; where there is no such watch it is looked at every two seconds. A
//! library for this would bring a thread of its own and as much code as here.
//!
//! Invariants: whatever lies there is read within bounds and waited for by nobody
//! else; a folder that is removed and made again is watched again.

use super::Mcps;
use anyhow::Context;
use crabtalk_component::{MAX_PORT_FILE_BYTES, PortFile};
use crabtalk_config::{Config, Home};
use crabtalk_mcp::Found;
use crabtalk_runtime::Runtime;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Port files that are looked at; a machine has a few.
const MAX_FILES: usize = 512;

/// How long after a change it is looked: a file that is written in pieces has its
/// last by then.
const AFTER: Duration = Duration::from_millis(50);

/// How often it is looked whatever the watch says: a folder may have been
/// replaced without a sign.
const AT_LEAST: Duration = Duration::from_secs(60);

/// How often it is looked where nothing can be watched.
const WITHOUT_WATCH: Duration = Duration::from_secs(2);

/// Keeps the list of components as it is in the folder, and tells of them. Never
/// resolves but with an error.
pub(crate) async fn work(
    mcps: Arc<Mcps>,
    config: Arc<Config>,
    home: Home,
    runtime: Runtime,
) -> anyhow::Result<()> {
    mcps.configure(&config).await;
    tokio::select! {
        () = mcps.tell(&runtime) => Ok(()),
        watched = watch(&mcps, &home) => watched,
    }
}

async fn watch(mcps: &Mcps, home: &Home) -> anyhow::Result<()> {
    let changes = Changes::new();
    loop {
        changes.on(&home.run_dir());
        let folder = home.clone();
        let found = tokio::task::spawn_blocking(move || scan(&folder)).await;
        let found = found.context("the folder of port files could not be looked at")?;
        mcps.servers.discover(found).await;
        tokio::select! {
            () = changes.next() => {}
            () = mcps.look.notified() => {}
            () = tokio::time::sleep(AT_LEAST) => {}
        }
        tokio::time::sleep(AFTER).await;
        changes.forget();
    }
}

/// The port files that are there, by name. Blocks.
fn scan(home: &Home) -> Vec<Found> {
    let entries = std::fs::read_dir(home.run_dir())
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let component = name.strip_suffix(".port")?.to_owned();
        (!component.is_empty()).then_some((component, entry.path()))
    });
    let mut found: Vec<Found> = names
        .take(MAX_FILES)
        .map(|(name, path)| Found {
            says: read(&path),
            name,
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn read(path: &Path) -> Result<PortFile, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("its port file {}: {why}", path.display());
    // What another place says may change without a sign in this folder.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(wrong(&"is a link, not a regular file"));
    }
    let bytes = crabtalk_files::read(path, MAX_PORT_FILE_BYTES);
    let bytes = bytes.map_err(|e| wrong(&e))?;
    PortFile::parse(&bytes).map_err(|e| wrong(&e))
}

/// Changes in the folder.
#[cfg(target_os = "linux")]
struct Changes(Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>);

#[cfg(target_os = "linux")]
impl Changes {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe, for descriptors that are not their owner's; this one is"
    )]
    fn new() -> Self {
        use rustix::fs::inotify::{CreateFlags, init};
        let made = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(std::io::Error::from)
            .and_then(tokio::io::unix::AsyncFd::new);
        if let Err(error) = &made {
            tracing::warn!(%error, "the folder of port files cannot be watched; it is looked at every two seconds");
        }
        Self(made.ok())
    }

    /// Watches the folder; again if it is another one by now.
    fn on(&self, folder: &Path) {
        use rustix::fs::inotify::{WatchFlags, add_watch};
        let Some(watch) = &self.0 else {
            return;
        };
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO;
        if let Err(error) = add_watch(watch.get_ref(), folder, flags) {
            tracing::debug!(%error, folder = %folder.display(), "cannot be watched");
        }
    }

    /// Resolves when something has changed.
    async fn next(&self) {
        match &self.0 {
            Some(watch) => drop(watch.readable().await),
            None => tokio::time::sleep(WITHOUT_WATCH).await,
        }
    }

    /// What has happened is seen by the next look.
    fn forget(&self) {
        let Some(watch) = &self.0 else {
            return;
        };
        let mut buffer = [0; 4096];
        while rustix::io::read(watch.get_ref(), &mut buffer).is_ok_and(|read| read > 0) {}
        if let Some(Ok(mut ready)) = futures_util::FutureExt::now_or_never(watch.readable()) {
            ready.clear_ready();
        }
    }
}

/// Where nothing can be watched, time passes.
#[cfg(not(target_os = "linux"))]
struct Changes;

#[cfg(not(target_os = "linux"))]
impl Changes {
    fn new() -> Self {
        Self
    }

    fn on(&self, _: &Path) {}

    async fn next(&self) {
        tokio::time::sleep(WITHOUT_WATCH).await;
    }

    fn forget(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_half_written_is_no_component() {
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
