//! Whose server it is.
//!
//! Invariants: one team works in a server at a time, since signals and hooks are the
//! server's; windows of another team are ignored; a working team holds a lock in its own
//! folder, so that a finished team blocks no other.

use super::Tmux;
use crate::terminal::error::Error;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Says where the team is that works in the server.
pub(crate) const OWNER: &str = "@nexus_owner";

/// Held by it, in its folder.
const LOCK: &str = "tmux.lock";

impl Tmux {
    pub(crate) fn team(&self) -> &str {
        &self.team
    }

    /// Says to other teams that this one works, for as long as the file is open. `None`
    /// where it is said already.
    pub(crate) fn hold(&self) -> Result<Option<File>, Error> {
        let path = self.state.join(LOCK);
        let failed = Error::write(&path);
        crabtalk_files::create_folder(&self.state).map_err(&failed)?;
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(&failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Makes the server this team's, unless another one works in it.
    pub(crate) async fn claim(&self) -> Result<(), Error> {
        let said = self.run(&["show-options", "-gqv", OWNER]).await?;
        let owner = Path::new(said.trim_end_matches('\n'));
        if owner != self.state && works(owner) {
            return Err(Error::Missing(format!(
                "another NEXUS, the one of {}, has its agents in this tmux server; give this team \
                 another server: `[tmux] socket = \"/some/place\"` in nexus.toml",
                owner.display()
            )));
        }
        let own = self.state.display().to_string();
        self.run(&["set-option", "-g", OWNER, &own]).await.map(drop)
    }
}

/// Whether the team of a folder works now.
fn works(state: &Path) -> bool {
    let lock = File::open(state.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}
