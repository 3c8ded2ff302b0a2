//! Checks folders that a client names.

use super::Session;
use crate::error::Error;
use crate::remote::Grant;
use std::path::PathBuf;
use std::sync::Arc;

impl Session {
    /// Resolves a working directory, which must exist and be absolute. Its links are followed
    /// here, once; links that appear later are refused.
    pub(super) async fn check_cwd(&self, cwd: Option<&str>) -> Result<Option<PathBuf>, Error> {
        let Some(cwd) = cwd else {
            return Ok(None);
        };
        if let Some(grant) = self.grant() {
            return self.granted_cwd(Arc::clone(grant), cwd).await.map(Some);
        }
        let resolved = self.resolve_folder("cwd", cwd).await?;
        resolved
            .map(Some)
            .map_err(|e| Error::Invalid(format!("the cwd {cwd:?} cannot be used: {e}")))
    }

    /// Like [`Session::check_cwd`], limited to a token's folders. An error reveals nothing
    /// about other folders.
    async fn granted_cwd(&self, grant: Arc<Grant>, cwd: &str) -> Result<PathBuf, Error> {
        let path = PathBuf::from(cwd);
        let found = self.look_at(cwd, move || {
            let resolved = path.is_absolute().then(|| path.canonicalize().ok())??;
            (grant.folder(&resolved) && resolved.is_dir()).then_some(resolved)
        });
        found.await?.ok_or_else(|| {
            Error::Forbidden(format!("{cwd:?} is not a folder within this token's reach"))
        })
    }

    /// Checks a folder, which must exist and be absolute.
    pub(super) async fn check_folder(&self, what: &str, folder: &str) -> Result<PathBuf, Error> {
        let _ = self.resolve_folder(what, folder).await?;
        Ok(PathBuf::from(folder))
    }

    /// Checks a folder and resolves its links.
    async fn resolve_folder(
        &self,
        what: &str,
        folder: &str,
    ) -> Result<std::io::Result<PathBuf>, Error> {
        let path = PathBuf::from(folder);
        if !path.is_absolute() {
            return Err(Error::Invalid(format!(
                "the {what} {folder:?} is not absolute"
            )));
        }
        let look = move || path.is_dir().then(|| path.canonicalize());
        let found = self.look_at(folder, look).await?;
        found.ok_or_else(|| Error::Invalid(format!("the {what} {folder:?} is not a folder")))
    }

    /// Accesses a client's path on a file thread, since the disk may hang.
    async fn look_at<T: Send + 'static>(
        &self,
        path: &str,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let files = &self.node.skills.files;
        let looked = files.look(path, look).await;
        looked.map_err(|why| Error::TimedOut(format!("{path:?}: {why}")))
    }
}
