//! Removes unfinished files after a crash.
//!
//! Invariants: only temporary names of this program are removed, in its own folders; the
//! time does not grow with the number of conversations.

use crabtalk_config::Home;
use std::path::PathBuf;

/// Cleans the folders of the home, before any write of the lock's holder.
pub(crate) fn sweep(home: &Home) {
    for folder in folders(home) {
        crabtalk_files::sweep(&folder);
    }
}

/// The folders with atomically replaced files, except those of runs' changes, whose
/// number grows with the conversations; unfinished files there are removed with them.
fn folders(home: &Home) -> Vec<PathBuf> {
    let (config, state) = (home.config_dir(), home.state_dir());
    vec![
        config,
        home.agents_dir(),
        home.memory_dir(),
        home.memory_dir().join("entries"),
        state.join("changes/settings/git"),
        state.join("changes/settings/git/info"),
        state.join("changes/settings/git-sha256"),
        state.join("changes/settings/git-sha256/info"),
        state.join(crate::mcp::LOGINS),
        state.join("tls"),
        state,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn temporary_files_are_removed_and_others_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path(), None).unwrap().create().unwrap();
        let folders = folders(&home);
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(".crabtalk-AbC123.tmp"), "half").unwrap();
            fs::write(folder.join("kept.tmp"), "whole").unwrap();
        }
        sweep(&home);
        for folder in &folders {
            assert!(!folder.join(".crabtalk-AbC123.tmp").exists(), "{folder:?}");
            assert!(folder.join("kept.tmp").exists(), "{folder:?}");
        }
    }
}
