//! Removes unfinished files that a crash left.
//!
//! Invariants: only the program's own temporary names are removed, in its own folders;
//! the start's part does not grow with the conversations.

use crabtalk_config::Home;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Greatest lag of file times behind the process's clock.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// Sweeps the folders of the home, for the holder of its lock and before any write.
pub(crate) fn sweep(home: &Home) {
    for folder in folders(home) {
        crabtalk_files::sweep(&folder);
    }
}

/// The folders with atomically replaced files, without those of [`sweep_changes`].
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

/// Sweeps the changes of runs, whose number grows with the conversations, while the daemon
/// serves. Files younger than the daemon may be in use.
pub(crate) fn sweep_changes(home: &Home, started: SystemTime) {
    let before = started - CLOCKS_APART;
    // The indexes of earlier versions.
    let _ = std::fs::remove_dir_all(home.sessions_dir().join(".index"));
    let _ = std::fs::remove_dir_all(home.state_dir().join("recall"));
    for conversation in entries(&home.state_dir().join("changes")) {
        for run in entries(&conversation.path()) {
            sweep_older(&run.path(), before);
            sweep_older(&run.path().join("objects"), before);
        }
    }
}

fn sweep_older(folder: &Path, before: SystemTime) {
    for file in entries(folder) {
        let is_older = || file.metadata()?.modified().map(|at| at < before);
        if crabtalk_files::is_left_over(&file.file_name()) && is_older().unwrap_or(false) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().flatten()
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

    #[test]
    fn changes_are_swept_except_young_files() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path(), None).unwrap().create().unwrap();
        let started = SystemTime::now();
        for folder in ["state/changes/3c6a/3", "state/changes/3c6a/3/objects"] {
            let folder = home.root().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let names = [".crabtalk-AbC123.tmp", ".crabtalk-DeF456.tmp", "1-2.idx"];
            let [old, young, whole] = names.map(|name| folder.join(name));
            for (path, age) in [(&old, 60), (&young, 0), (&whole, 60)] {
                let file = fs::File::create(path).unwrap();
                file.set_modified(started - Duration::from_secs(age))
                    .unwrap();
            }
            sweep(&home);
            assert!(old.exists(), "the start skips changes");
            sweep_changes(&home, started);
            assert!(!old.exists() && young.exists() && whole.exists());
        }
    }
}
