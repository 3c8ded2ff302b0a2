//! Removes what a crash left half written.
//!
//! Invariants: only names that the program itself gives to unfinished files are
//! touched, in its own folders, before anything writes there; what the start
//! waits for does not grow with the conversations.

use crabtalk_config::Home;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How far the clock of files may be behind that of the process.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// How long a component takes to write its port file, generously: it may do so
/// while the daemon starts.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);

/// Whether a component that crashed left this in place of a port file.
fn is_port_file_left(name: &std::ffi::OsStr) -> bool {
    let temporary = name.to_str().is_some_and(|name| name.starts_with(".tmp"));
    temporary || crabtalk_files::is_left_over(name)
}

/// For the holder of the home's lock, before it begins its work.
pub(crate) fn sweep(home: &Home) {
    for folder in folders(home) {
        crabtalk_files::sweep(&folder);
    }
    let recent = SystemTime::now() - WRITTEN_WITHIN;
    for item in entries(&home.run_dir()) {
        let name = item.file_name();
        let is_older = || item.metadata()?.modified().map(|at| at < recent);
        if is_port_file_left(&name) && is_older().unwrap_or(false) {
            let _ = std::fs::remove_file(item.path());
        }
    }
}

/// Every folder in which files are replaced whole, but for those of which there may
/// be many, and the list's: see [`sweep_the_many`].
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

/// Sweeps what is left among the changes of runs, of which
/// there may be one for each of a hundred thousand conversations: for when the
/// daemon serves. What is younger than the daemon may be its own.
pub(crate) fn sweep_the_many(home: &Home, started: SystemTime) {
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
            // It is in nobody's way.
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
    fn what_was_left_half_written_goes_and_nothing_else_does() {
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
    fn what_a_killed_component_left_of_its_port_file_goes_and_one_that_writes_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path(), None).unwrap().create().unwrap();
        let run = home.run_dir();
        fs::create_dir_all(&run).unwrap();
        let names = [
            ".tmpAbC123",
            ".crabtalk-AbC123.tmp",
            ".tmpDeF456",
            "dice.port",
            "notes.tmp",
        ];
        for (name, age) in names.iter().zip([120, 120, 0, 120, 120]) {
            let file = fs::File::create(run.join(name)).unwrap();
            let at = SystemTime::now() - Duration::from_secs(age);
            file.set_modified(at).unwrap();
        }
        sweep(&home);
        let left = names.map(|name| run.join(name).exists());
        assert_eq!(left, [false, false, true, true, true]);
    }

    #[test]
    fn the_many_are_swept_while_the_daemon_serves_and_what_it_writes_stays() {
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
            assert!(old.exists(), "the start does not look there");
            sweep_the_many(&home, started);
            assert!(!old.exists() && young.exists() && whole.exists());
        }
    }
}
