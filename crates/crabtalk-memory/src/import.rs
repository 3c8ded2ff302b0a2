//! Imports existing Markdown notes into memory.
//!
//! Invariants: links are not followed, files are not overwritten, and skipped
//! files are reported.

use crate::entries::MAX_CONTENT_BYTES;
use crate::{Error, Memory, NewEntry, Viewer, Warning, entries};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of files read in one import.
const MAX_FILES: usize = 10_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 8;

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// Files and the names of their entries.
    pub imported: Vec<(PathBuf, String)>,
    /// Skipped files, with the reasons.
    pub skipped: Vec<Warning>,
}

impl Memory {
    /// Stores every `*.md` below a folder as an entry. A note with frontmatter keeps its name
    /// and description; another is named after its file.
    pub async fn import(&self, viewer: &Viewer, folder: &Path) -> Result<ImportReport, Error> {
        let root = folder.to_owned();
        let (notes, mut report) = self.blocking(move |_| read_notes(&root)).await?;
        for (file, note) in notes {
            let name = note.name.clone();
            let taken = self.entry(viewer, &name).await.is_ok();
            let done = match taken {
                true => Err(format!("was skipped: a memory entry named {name:?} exists")),
                false => self.remember(viewer, note).await.map_err(|e| e.to_string()),
            };
            match done {
                Ok(()) => report.imported.push((file, name)),
                Err(reason) => report.skipped.push(Warning { file, reason }),
            }
        }
        Ok(report)
    }
}

type Notes = Vec<(PathBuf, NewEntry)>;

fn read_notes(root: &Path) -> Result<(Notes, ImportReport), Error> {
    let mut report = ImportReport::default();
    let mut files = Vec::new();
    collect(root, 0, &mut files).map_err(|source| Error::Io {
        action: "read",
        file: root.to_owned(),
        source,
    })?;
    files.sort();
    let mut notes = Notes::new();
    for (at, file) in files.into_iter().enumerate() {
        let read = match at < MAX_FILES {
            true => crabtalk_files::read_text(&file, MAX_CONTENT_BYTES as u64)
                .map_err(|e| e.to_string())
                .and_then(|text| note(&file, &text)),
            false => Err(format!("was skipped: the limit is {MAX_FILES} files")),
        };
        match read {
            Ok(note) => notes.push((file, note)),
            Err(reason) => report.skipped.push(Warning { file, reason }),
        }
    }
    Ok((notes, report))
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for item in fs::read_dir(folder)?.flatten() {
        let hidden = item.file_name().as_encoded_bytes().starts_with(b".");
        // The type of the item itself: links are not followed.
        let Ok(kind) = item.file_type() else { continue };
        let path = item.path();
        let folder = kind.is_dir() && !hidden && depth < MAX_DEPTH;
        if folder && files.len() <= MAX_FILES {
            // An unreadable folder is skipped.
            let _ = collect(&path, depth + 1, files);
        } else if kind.is_file() && !hidden && path.extension().is_some_and(|e| e == "md") {
            files.push(path);
        }
    }
    Ok(())
}

fn note(file: &Path, text: &str) -> Result<NewEntry, String> {
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let (name, description, content) = match entries::parse(text) {
        Ok(entry) => (entry.name, entry.description, entry.content),
        Err(_) => (
            stem.unwrap_or_default(),
            String::new(),
            text.trim().to_owned(),
        ),
    };
    if content.is_empty() && description.is_empty() {
        return Err("is empty".into());
    }
    Ok(NewEntry {
        name,
        description,
        content,
        shared: None,
    })
}
