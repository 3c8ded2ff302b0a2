//! The effect of `edit` and `write` on a file, shown before it is made.
//!
//! Invariants: a shown change is made exactly or not at all; the whole change
//! is shown. Showing reads a bounded file once.

use super::Error;
use super::edit::{self, EditArguments};
use super::open::{PathInFolder, Stamp, Unless};
use super::resolve::Intent;
use super::write::WriteArguments;
use crabtalk_domain::tool::{Preview, PreviewKind};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Largest file that is edited; it is in memory twice.
const MAX_EDIT_BYTES: u64 = 16 << 20;

/// Largest file whose replacement is shown as a difference; a person cannot compare
/// larger ones.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Time limit for finding the shortest difference; a longer one is also correct.
const COMPARE_TIME: Duration = Duration::from_millis(300);

/// Context lines around a difference, as in `diff -u`.
const CONTEXT_LINES: usize = 3;

/// The effect of a call on one file.
#[derive(Debug)]
pub(crate) enum Change {
    Edit(EditArguments),
    Write(WriteArguments),
}

/// The present state of a file.
struct Now {
    /// The open file; `None` if the path does not exist.
    file: Option<(File, Stamp)>,
    content: Content,
}

enum Content {
    None,
    Text(String),
    /// The file is too large, unreadable, or not text: its size and the reason.
    Other(u64, String),
}

impl Now {
    fn none() -> Self {
        Self {
            file: None,
            content: Content::None,
        }
    }

    fn look(spot: &PathInFolder<'_>, path: &Path) -> Result<Self, Error> {
        let failed = |e| Error::io("read", path, e);
        let Some(mut file) = spot.existing()? else {
            return Ok(Self::none());
        };
        // Taken before reading, so that later writes are detected.
        let stamp = Stamp::take(&file).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut bytes = Vec::new();
        let read = (&mut file).take(MAX_EDIT_BYTES + 1).read_to_end(&mut bytes);
        let content = if let Err(error) = read {
            // A writable file that cannot be read can still be replaced.
            Content::Other(size, format!("cannot be read ({error})"))
        } else if bytes.len() as u64 > MAX_EDIT_BYTES {
            let limit = MAX_EDIT_BYTES >> 20;
            Content::Other(size, format!("is larger than {limit} MiB"))
        } else {
            String::from_utf8(bytes).map_or_else(
                |e| {
                    let at = e.utf8_error().valid_up_to();
                    Content::Other(
                        size,
                        format!("is not UTF-8 (byte {at} is the first that is not)"),
                    )
                },
                Content::Text,
            )
        };
        Ok(Self {
            file: Some((file, stamp)),
            content,
        })
    }

    fn name(&self) -> String {
        match (&self.content, &self.file) {
            (Content::Text(text), _) => hash(text),
            (Content::Other(..), Some((_, stamp))) => stamp.as_str().to_owned(),
            (Content::None | Content::Other(..), _) => "none".into(),
        }
    }
}

impl Change {
    /// The path as written in the call, and the intended operation.
    pub(crate) fn aim(&self) -> (String, Intent) {
        match self {
            Self::Edit(edit) => (edit.path.clone(), Intent::Change),
            Self::Write(write) => (write.path.clone(), Intent::Create),
        }
    }

    /// Returns the whole change without making it.
    pub(crate) fn preview(&self, path: &Path) -> Result<Preview, Error> {
        let now = match PathInFolder::reach(path, false) {
            Ok(spot) => Now::look(&spot, path)?,
            // `write` creates missing folders.
            Err(Error::NotFound(_)) if matches!(self, Self::Write(_)) => Now::none(),
            Err(e) => return Err(e),
        };
        let (after, _) = self.after(path, &now)?;
        let content = |note: String| (PreviewKind::Content, after.clone(), note);
        let (kind, text, note) = match (self, &now.content) {
            (Self::Write(_), Content::None) => content("the file is new".into()),
            (Self::Write(_), Content::Other(size, why)) => {
                content(format!("it replaces {size} bytes; the old file {why}"))
            }
            (Self::Write(_), Content::Text(old)) if old.len() > MAX_COMPARED_BYTES => {
                content(format!("it replaces {} bytes of text", old.len()))
            }
            (_, Content::Text(old)) if *old == after => {
                (PreviewKind::Diff, String::new(), "nothing changes".into())
            }
            (_, Content::Text(old)) => {
                (PreviewKind::Diff, unified_diff(old, &after), String::new())
            }
            (Self::Edit(_), Content::None | Content::Other(..)) => {
                unreachable!("an edit was made of a text")
            }
        };
        Ok(Preview {
            kind,
            text,
            note,
            exact: format!("{} becomes {}", path.display(), hash(&after)),
            before: now.name(),
        })
    }

    /// Makes the change at a judged path and describes it. A change that was shown is made
    /// exactly as shown.
    pub(crate) fn make(&self, path: &Path, shown: Option<&Preview>) -> Result<String, Error> {
        let spot = PathInFolder::reach(path, matches!(self, Self::Write(_)))?;
        if let (Self::Write(write), None) = (self, shown) {
            // Without a preview, any present content is replaced.
            let old = spot.existing()?;
            spot.replace(write.content.as_bytes(), old.as_ref(), &Unless::Never)?;
            return Ok(told(path, write, old.is_some()));
        }
        let now = Now::look(&spot, path)?;
        if shown.is_some_and(|shown| shown.before != now.name()) {
            return Err(Error::ChangedSinceShown(path.to_path_buf()));
        }
        let (after, told) = self.after(path, &now)?;
        let (old, unless) = match now.file {
            Some((file, stamp)) => (Some(file), Unless::Changed(stamp)),
            None => (None, Unless::Exists),
        };
        spot.replace(after.as_bytes(), old.as_ref(), &unless)?;
        Ok(told)
    }

    /// Returns the whole new content and a description of the change.
    fn after(&self, path: &Path, now: &Now) -> Result<(String, String), Error> {
        match (self, &now.content) {
            (Self::Write(write), _) => {
                let told = told(path, write, now.file.is_some());
                Ok((write.content.clone(), told))
            }
            (Self::Edit(edit), Content::Text(text)) => {
                edit::check(edit)?;
                edit::edited(path, text, edit)
            }
            (Self::Edit(edit), Content::None) => {
                edit::check(edit)?;
                Err(Error::NotFound(path.to_path_buf()))
            }
            (Self::Edit(_), Content::Other(_, why)) => Err(Error::Content(format!(
                "{} {why}; change it with bash",
                path.display()
            ))),
        }
    }
}

fn told(path: &Path, write: &WriteArguments, replaced: bool) -> String {
    let did = if replaced { "replaced" } else { "created" };
    let bytes = write.content.len();
    format!("{did} {} ({bytes} bytes)", path.display())
}

fn hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

/// All differing lines, as in `diff -u`; after a time limit the difference may not be the
/// shortest.
pub fn unified_diff(old: &str, new: &str) -> String {
    let mut compare = similar::TextDiff::configure();
    let diff = compare
        .deadline(Instant::now() + COMPARE_TIME)
        .diff_lines(old, new);
    diff.unified_diff()
        .context_radius(CONTEXT_LINES)
        .header("before", "after")
        .to_string()
}
