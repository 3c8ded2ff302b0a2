//! `config/search.toml`: folders and exclusions.

use serde::Deserialize;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use toml_edit::DocumentMut;

/// Largest settings file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Absolute paths of the searched folders.
    pub folders: Vec<PathBuf>,
    /// Names that are excluded: `["*.log", "drafts"]`.
    pub skip: Vec<String>,
    /// Whether to index files that look like secrets.
    pub secrets: bool,
    /// Maximum size of an indexed file; larger files are usually data.
    pub max_file_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            skip: Vec::new(),
            secrets: false,
            max_file_bytes: 2 * 1024 * 1024,
        }
    }
}

/// The reason why the settings cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {why}", path.display())]
pub struct SettingsError {
    path: PathBuf,
    why: String,
}

impl Settings {
    /// Reads a file; a missing file means the defaults.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        toml::from_str(&text(path)?).map_err(|e| failed(path, e))
    }

    /// Adds or removes a folder, preserving comments; returns whether the file changed.
    pub fn change(path: &Path, folder: &Path, add: bool) -> Result<bool, SettingsError> {
        let mut document: DocumentMut = text(path)?.parse().map_err(|e| failed(path, e))?;
        let folder = folder.to_str().ok_or_else(|| {
            failed(
                path,
                format!("the path `{}` is not UTF-8", folder.display()),
            )
        })?;
        let list = document
            .entry("folders")
            .or_insert(toml_edit::value(toml_edit::Array::new()));
        let list = list.as_array_mut();
        let list = list.ok_or_else(|| failed(path, "`folders` is not a list"))?;
        let at = list.iter().position(|one| one.as_str() == Some(folder));
        match (at, add) {
            (Some(_), true) | (None, false) => return Ok(false),
            (None, true) => list.push(folder),
            (Some(at), false) => {
                list.remove(at);
            }
        }
        write(path, &document.to_string()).map_err(|e| failed(path, e))?;
        Ok(true)
    }
}

fn failed(path: &Path, why: impl ToString) -> SettingsError {
    SettingsError {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

fn text(path: &Path) -> Result<String, SettingsError> {
    let mut text = String::new();
    match std::fs::File::open(path) {
        Ok(file) => {
            let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
            read.map_err(|e| failed(path, e))?;
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(failed(path, e)),
    }
    Ok(text)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    let mut file = tempfile::Builder::new()
        .prefix(".tmp")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_added_and_removed_and_comments_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("search.toml");
        assert_eq!(Settings::read(&path).expect("none"), Settings::default());
        let change = |name: &str, add| Settings::change(&path, Path::new(name), add);
        assert!(change("/a \"b\"", true).expect("written"));
        assert!(!change("/a \"b\"", true).expect("there already"));
        let text = std::fs::read_to_string(&path).expect("there");
        std::fs::write(&path, format!("# mine\n{text}secrets = true # yes\n")).expect("written");
        assert!(change("/c", true).expect("written"));
        assert!(change("/a \"b\"", false).expect("written"));
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(text.starts_with("# mine\n") && text.ends_with("secrets = true # yes\n"));
        let settings = Settings::read(&path).expect("read");
        assert_eq!(
            (settings.folders, settings.secrets),
            (vec!["/c".into()], true)
        );
        std::fs::write(&path, "folders = 1").expect("written");
        assert!(Settings::read(&path).is_err() && change("/d", true).is_err());
    }
}
