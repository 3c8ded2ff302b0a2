//! Text from a file, standard input or an editor.
//!
//! Invariant: text from the editor is kept in a file until it is saved.

use crate::error::Error;
use crate::programs::is_program;
use crate::stdin;
use crabtalk_config::{Home, write_atomic};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text from an editor or a file.
pub(crate) struct Written {
    pub(crate) text: String,
    /// The draft file of the editor.
    draft: Option<PathBuf>,
}

impl Written {
    /// Reads a file, standard input (`-`) or the editor, which starts with `before`.
    pub(crate) fn get(
        home: &Home,
        file: Option<PathBuf>,
        draft_name: &str,
        before: &str,
    ) -> Result<Self, Error> {
        let (text, draft) = match file {
            Some(file) if file.as_os_str() == "-" => (stdin::read(std::io::stdin().lock())?, None),
            Some(file) => (read(&file)?, None),
            None => {
                let name = format!("draft-{}-{}", std::process::id(), safe(draft_name));
                let draft = home.state_dir().join(name);
                let edited = editor().and_then(|editor| edit(&editor, &draft, before));
                (edited.map_err(|e| left(&draft, before, e))?, Some(draft))
            }
        };
        Ok(Self { text, draft })
    }

    /// Removes the draft on success; otherwise names it in the error.
    pub(crate) fn settle<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        let Some(draft) = self.draft else {
            return outcome;
        };
        match outcome {
            Ok(done) => {
                // The text is saved.
                let _ = std::fs::remove_file(&draft);
                Ok(done)
            }
            Err(error) => Err(kept(&draft, error)),
        }
    }
}

/// Names the draft in an error.
fn kept(draft: &Path, error: Error) -> Error {
    error.and(&format!(
        "your text is kept in {}; fix it and pass it with --file",
        draft.display()
    ))
}

/// Handles a failed editor: removes an empty draft, keeps others.
fn left(draft: &Path, before: &str, error: Error) -> Error {
    match std::fs::read(draft) {
        Ok(text) if text != before.as_bytes() && !text.is_empty() => kept(draft, error),
        Ok(_) | Err(_) => {
            // The draft is empty.
            let _ = std::fs::remove_file(draft);
            error
        }
    }
}

fn read(file: &Path) -> Result<String, Error> {
    std::fs::read_to_string(file)
        .map_err(|e| Error::io(format_args!("read {}", file.display()), &e))
}

/// Converts a name to a valid file name.
fn safe(name: &str) -> String {
    let keep = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().filter(keep).take(64).collect();
    name.trim_start_matches('.').to_owned()
}

/// Editors to find on PATH, in order.
const EDITORS: [&str; 3] = ["sensible-editor", "nano", "vi"];

/// The configured editor, or an installed one.
fn editor() -> Result<String, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let known = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|editor| !editor.is_empty()));
    known.or_else(|| installed(&path)).ok_or_else(|| {
        Error::Usage(format!(
            "no editor found: VISUAL and EDITOR are not set, and PATH has none of {}; \
             set EDITOR, or pass the text with --file",
            EDITORS.join(", ")
        ))
    })
}

fn installed(path: &OsStr) -> Option<String> {
    let is_there = |name: &&str| {
        let mut folders = std::env::split_paths(path);
        folders.any(|folder| is_program(&folder.join(name)))
    };
    EDITORS.into_iter().find(is_there).map(str::to_owned)
}

fn edit(editor: &str, draft: &Path, before: &str) -> Result<String, Error> {
    write_atomic(draft, before)?;
    // EDITOR may contain options, which need a shell.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(draft)
        .status()
        .map_err(|e| Error::io(format_args!("start {editor}"), &e))?;
    if !status.success() {
        return Err(Error::Failed(format!(
            "{editor} ended with {status}; nothing was changed"
        )));
    }
    let after = read(draft)?;
    if after == before {
        return Err(Error::Failed("nothing was changed".to_owned()));
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edited_draft_is_returned_and_unedited_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let draft = folder.path().join("draft.md");
        let before = "---\n# why\nmodel: m\n---\nYou are.\n";
        let edited = |editor: &str| edit(editor, &draft, before).map_err(|e| e.to_string());
        let after = "---\n# why\nmodel: n\n---\nYou are.\n".to_owned();
        assert_eq!(edited("sed -i s/:\\ m/:\\ n/"), Ok(after));
        assert_eq!(edited("true"), Err("nothing was changed".into()));
        assert!(edited("false").is_err_and(|e| e.contains("nothing was changed")));
        assert_eq!(safe("../a b.md"), "ab.md");
    }

    #[test]
    fn text_of_a_failed_editor_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let draft = folder.path().join("draft.md");
        let ended = |editor: &str| {
            let error = edit(editor, &draft, "before").unwrap_err();
            let said = left(&draft, "before", error).to_string();
            (said.contains("your text is kept in"), draft.exists())
        };
        for nothing_written in ["false", "true", "rm"] {
            assert_eq!(ended(nothing_written), (false, false), "{nothing_written}");
        }
        let written_then_killed = "kill_after() { echo mine >\"$1\"; kill -9 $$; }; kill_after";
        assert_eq!(ended(written_then_killed), (true, true));
        assert_eq!(std::fs::read_to_string(&draft).unwrap(), "mine\n");
        let not_text = "not_text() { printf '\\377' >\"$1\"; }; not_text";
        assert_eq!(ended(not_text), (true, true));
    }

    #[test]
    fn first_installed_editor_is_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = std::env::join_paths([one.path(), two.path()]).unwrap();
        assert_eq!(installed(&path), None);
        for (folder, name) in [(&one, "vi"), (&two, "nano")] {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            assert_ne!(installed(&path).as_deref(), Some(name), "not executable");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(installed(&path).as_deref(), Some(name));
        }
    }

    #[test]
    fn refused_text_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let draft = folder.path().join("draft.md");
        let written = || {
            std::fs::write(&draft, "mine").unwrap();
            Written {
                text: "mine".into(),
                draft: Some(draft.clone()),
            }
        };
        let refused: Result<(), Error> = Err(Error::Failed("line 2 is wrong".into()));
        let error = written().settle(refused).unwrap_err().to_string();
        assert!(error.starts_with("line 2 is wrong\n"), "{error}");
        assert!(error.contains(draft.to_str().unwrap()) && draft.exists());
        written().settle(Ok(())).unwrap();
        assert!(!draft.exists());
    }
}
