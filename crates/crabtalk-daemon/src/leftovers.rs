//! Removes what a crash left half written.
//!
//! Invariant: only names that the program itself gives to unfinished files are
//! touched, in its own folders, before anything writes there.

use crabtalk_config::Home;
use std::path::PathBuf;

/// What the link to the socket is called before it takes its place; a number
/// follows.
const UNFINISHED_LINK: &str = ".crabtalk.sock.";

/// For the holder of the home's lock, before it begins its work.
pub(crate) fn sweep(home: &Home) {
    for folder in folders(home) {
        crabtalk_files::sweep(&folder);
    }
    for item in std::fs::read_dir(home.run_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = item.file_name();
        if name
            .to_str()
            .is_some_and(|name| name.starts_with(UNFINISHED_LINK))
        {
            // It leads to the same socket, and is in nobody's way.
            let _ = std::fs::remove_file(item.path());
        }
    }
}

/// Every folder in which files are replaced whole.
fn folders(home: &Home) -> Vec<PathBuf> {
    let (config, state) = (home.config_dir(), home.state_dir());
    let recall = state.join("recall");
    let indexes = std::fs::read_dir(&recall).into_iter().flatten().flatten();
    let indexes: Vec<PathBuf> = indexes.map(|index| index.path()).collect();
    let mut folders = vec![
        config,
        home.agents_dir(),
        home.memory_dir(),
        home.memory_dir().join("entries"),
        state.join("accepted"),
        state.join("ledger"),
        state,
        recall,
    ];
    folders.extend(indexes);
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_left_half_written_goes_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path(), None).unwrap().create().unwrap();
        fs::create_dir_all(home.state_dir().join("recall/0251b9716cc3dc26")).unwrap();
        fs::create_dir(home.state_dir().join("ledger")).unwrap();
        fs::create_dir(home.state_dir().join("accepted")).unwrap();
        fs::create_dir(home.memory_dir().join("entries")).unwrap();
        let folders = folders(&home);
        for folder in &folders {
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
