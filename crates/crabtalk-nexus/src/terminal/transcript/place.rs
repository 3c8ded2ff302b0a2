//! Finds the transcript file of an agent.
//!
//! Invariants: searching a folder with many files has bounded cost; a file older than
//! the agent's start is not used for a new session, nor one of a session
//! in another folder.

use super::tail::Tail;
use super::{Form, Reader, Record};
use crate::terminal::tmux::windows::real;
use regex_lite::Regex;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders searched at each `*` in a folder name, latest first.
const FOLDERS: usize = 8;

/// Files that are read, latest first.
const FILES: usize = 32;

/// Names read from one folder.
const NAMES: usize = 16 << 10;

/// A transcript that may be an agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) session: String,
}

/// Files of a pattern that changed since a time, latest first, whose
/// session runs in `folder` or does not name its folder.
pub(crate) fn candidates(
    pattern: &str,
    form: Form,
    since: SystemTime,
    folder: &Path,
) -> Vec<Found> {
    let mut found = Vec::new();
    for (path, _) in files(pattern).into_iter().filter(|(_, at)| *at >= since) {
        let Some((session, of)) = head(&path, form) else {
            continue;
        };
        if of.is_empty() || Path::new(&of) == folder {
            found.push(Found { path, session });
        }
    }
    found
}

/// The latest file of a session.
pub(crate) fn of_session(pattern: &str, form: Form, session: &str) -> Option<Found> {
    let named = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.contains(session))
    };
    let all = files(pattern);
    let by_name = all.iter().filter(|(path, _)| named(path));
    let others = all.iter().filter(|(path, _)| !named(path));
    by_name.chain(others).find_map(|(path, _)| {
        let (of, _) = head(path, form)?;
        (of == session).then(|| Found {
            path: path.clone(),
            session: of,
        })
    })
}

/// The session and folder in the first lines.
fn head(path: &Path, form: Form) -> Option<(String, String)> {
    let reader = Reader::new(form);
    let (lines, _) = Tail::new(path, 0).step();
    lines.iter().find_map(|line| {
        let mut records = reader.read(line).into_iter();
        records.find_map(|record| {
            let Record::Head { session, folder } = record else {
                return None;
            };
            Some((session, folder))
        })
    })
}

/// The latest files that match a pattern.
fn files(pattern: &str) -> Vec<(PathBuf, SystemTime)> {
    let path = Path::new(pattern);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let mut folders = vec![PathBuf::new()];
    for part in folder.components() {
        let part = part.as_os_str().to_string_lossy();
        if part.contains('*') {
            let all = folders.iter().flat_map(|folder| entries(folder, &part));
            folders = latest(all.filter(|(path, _)| path.is_dir()).collect(), FOLDERS);
        } else {
            for folder in &mut folders {
                folder.push(part.as_ref());
            }
        }
    }
    let name = name.to_string_lossy();
    let all = folders.iter().flat_map(|folder| entries(folder, &name));
    let mut all: Vec<_> = all.filter(|(path, _)| path.is_file()).collect();
    all.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
    all.truncate(FILES);
    // Two paths of one file count once.
    let real = |(path, at): (PathBuf, SystemTime)| (real(&path), at);
    all.into_iter().map(real).collect()
}

fn latest(mut all: Vec<(PathBuf, SystemTime)>, count: usize) -> Vec<PathBuf> {
    all.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
    all.into_iter().take(count).map(|(path, _)| path).collect()
}

fn entries(folder: &Path, pattern: &str) -> Vec<(PathBuf, SystemTime)> {
    let Ok(all) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let pattern = regex_lite::escape(pattern).replace(r"\*", ".*");
    let pattern = Regex::new(&format!("^{pattern}$")).expect("it is escaped");
    let named = all
        .take(NAMES)
        .flatten()
        .filter(|entry| pattern.is_match(&entry.file_name().to_string_lossy()));
    let dated = named.filter_map(|entry| {
        let at = entry.metadata().and_then(|metadata| metadata.modified());
        Some((entry.path(), at.ok()?))
    });
    dated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_of_this_folder_is_found() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join("2026/11");
        std::fs::create_dir_all(&day).unwrap();
        let write = |name: &str, cwd: &str| {
            let head = serde_json::json!({"type": "session", "id": name, "cwd": cwd});
            std::fs::write(day.join(format!("{name}.jsonl")), format!("{head}\n")).unwrap();
        };
        write("a", "/w");
        write("b", "/elsewhere");
        std::fs::write(day.join("c.jsonl"), "torn").unwrap();
        let pattern = format!("{}/*/*/*.jsonl", home.path().display());
        let folder = Path::new("/w");
        let begin = SystemTime::UNIX_EPOCH;
        let found = candidates(&pattern, Form::Pi, begin, folder);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].session, "a");
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert!(candidates(&pattern, Form::Pi, later, folder).is_empty());
        let other = of_session(&pattern, Form::Pi, "b").unwrap();
        assert!(other.path.ends_with("b.jsonl"));
        assert!(of_session(&pattern, Form::Pi, "z").is_none());
    }
}
