//! What the gate has to know of the disk: where links lead, what globs yield,
//! and what a repository's configuration says.
//!
//! Absent on purpose: files themselves. Whoever composes the daemon says how
//! they are looked at, and may block while it does.

use crabtalk_domain::BoxFuture;
use std::ffi::OsString;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A view of the disk.
pub trait Disk: Send + Sync {
    /// Follows the links of a path; its last names may not exist yet. `None`
    /// where it cannot be told where it leads: a link that leads nowhere, or
    /// through `/proc`, which is another folder for every process.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// The names in a folder, none if there is no such folder. `None` if they
    /// cannot be told, or are more than `most`.
    fn names(&self, _folder: &Path, _most: usize) -> Option<Vec<OsString>> {
        Some(Vec::new())
    }

    /// Does work that asks this disk where it may wait and holds up nobody. An
    /// error says why it was not done in time; it may be done later.
    fn wait_for<'a>(
        &'a self,
        _of: &'a str,
        work: Box<dyn FnOnce() + Send>,
    ) -> BoxFuture<'a, Result<(), String>> {
        work();
        Box::pin(ready(Ok(())))
    }

    /// What a file holds.
    fn read(&self, _file: &Path, _most: u64) -> Content {
        Content::Absent
    }
}

/// Asks a disk something for somebody, where it may wait.
pub(crate) async fn ask<T: Send + 'static>(
    disk: &Arc<dyn Disk>,
    of: &str,
    question: impl FnOnce(&dyn Disk) -> T + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = oneshot::channel();
    let asked = Arc::clone(disk);
    let work = move || {
        // Whoever asked may not wait any more.
        let _ = tell.send(question(&*asked));
    };
    disk.wait_for(of, Box::new(work)).await?;
    told.await
        .map_err(|_| "looking at the disk failed; the daemon's log says why".to_owned())
}

/// What there is by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Absent,
    /// A file.
    File(Vec<u8>),
    /// A folder.
    Folder,
    /// Something else, or a file that cannot be read or is too long.
    Unclear,
}

impl<F: Fn(&Path) -> Option<PathBuf> + Send + Sync> Disk for F {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        self(path)
    }
}
