//! The port through which the gate resolves links.

use crabtalk_domain::BoxFuture;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Access to the disk, implemented by the daemon.
pub trait Disk: Send + Sync {
    /// Resolves the links of a path, whose last names may not exist yet. `None` if the
    /// target is unknown: a dangling link, or a path through `/proc`, which differs per
    /// process.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// Whether `PATH` finds this program below the run's folder or a temporary folder, where
    /// a sandboxed command may have replaced it.
    fn is_replaceable(&self, _program: &str, _cwd: &Path) -> bool {
        false
    }

    /// Runs blocking work that uses this disk without delaying other tasks. An error says
    /// why the work did not finish; it may still run later.
    fn wait_for<'a>(
        &'a self,
        _of: &'a str,
        work: Box<dyn FnOnce() + Send>,
    ) -> BoxFuture<'a, Result<(), String>> {
        work();
        Box::pin(ready(Ok(())))
    }

    /// Whether an owner's runs in this folder default to mode `auto`: the sandbox is complete
    /// on this machine, and the folder is a work tree or trusted.
    fn is_contained<'a>(&'a self, _folder: &'a Path) -> BoxFuture<'a, bool> {
        Box::pin(ready(false))
    }
}

/// Evaluates a question about the disk on a thread that may block.
pub async fn ask<T: Send + 'static>(
    disk: &Arc<dyn Disk>,
    of: &str,
    question: impl FnOnce(&dyn Disk) -> T + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = oneshot::channel();
    let asked = Arc::clone(disk);
    let work = move || {
        // The receiver is dropped if the call was cancelled.
        let _ = tell.send(question(&*asked));
    };
    disk.wait_for(of, Box::new(work)).await?;
    told.await
        .map_err(|_| "reading the disk failed; the daemon's log says why".to_owned())
}

impl<F: Fn(&Path) -> Option<PathBuf> + Send + Sync> Disk for F {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        self(path)
    }
}
