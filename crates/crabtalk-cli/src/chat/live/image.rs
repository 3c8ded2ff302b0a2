//! Images from pasted paths and the clipboard.
//!
//! Invariants: the clipboard program has time and size limits and does not block the chat; its
//! output goes to a private file.

use super::Live;
use crate::shown::{MAX_IMAGE, is_image, media_type};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Timeout of the clipboard program.
const GIVE_WITHIN: Duration = Duration::from_secs(3);

/// Converts a pasted image path to `@path`, since terminals paste dropped files as paths.
pub(super) fn pasted(text: &str, cwd: &Path) -> Option<String> {
    let line = text.trim();
    if line.is_empty() || line.lines().count() != 1 {
        return None;
    }
    let line = line.strip_prefix("file://").unwrap_or(line);
    let line = line.trim_matches(['\'', '"']);
    // Terminals escape spaces in dropped paths.
    let line = line.replace("\\ ", " ");
    let may = !line.starts_with('@') && !line.contains('"');
    (may && is_image(&cwd.join(&line))).then(|| match line.contains(char::is_whitespace) {
        true => format!("@\"{line}\" "),
        false => format!("@{line} "),
    })
}

/// Clipboard programs and the variables that they need.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("WAYLAND_DISPLAY", "wl-paste", &["--type", "image/png"]),
    (
        "DISPLAY",
        "xclip",
        &["-selection", "clipboard", "-t", "image/png", "-o"],
    ),
    ("", "pngpaste", &["-"]),
];

impl Live<'_> {
    /// Ctrl-V: inserts the image of the clipboard.
    pub(super) fn paste_image(&mut self) {
        self.call(clipboard(), |live, saved| match saved {
            Ok(path) => live.composer.paste(&format!("@{} ", path.display())),
            Err(why) => live.transcript.problem(&why),
        });
    }
}

/// Saves the image of the clipboard.
async fn clipboard() -> Result<PathBuf, String> {
    let mut tried = Vec::new();
    for (variable, program, arguments) in PROGRAMS {
        if !variable.is_empty() && std::env::var_os(variable).is_none() {
            continue;
        }
        tried.push(*program);
        if let Some(bytes) = given(program, arguments).await
            && media_type(&bytes).is_some()
        {
            return keep(&bytes);
        }
    }
    Err(format!(
        "no image in the clipboard ({}); attach a file with @PATH",
        match tried.is_empty() {
            true => "no program for it is installed".to_owned(),
            false => format!("asked {}", tried.join(", ")),
        }
    ))
}

async fn given(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let out = child.stdout.take()?;
    let read = async {
        let mut bytes = Vec::new();
        out.take(MAX_IMAGE + 1).read_to_end(&mut bytes).await.ok()?;
        (bytes.len() as u64 <= MAX_IMAGE).then_some(bytes)
    };
    tokio::time::timeout(GIVE_WITHIN, read).await.ok()?
}

/// Writes a temporary file, which the system removes later.
fn keep(bytes: &[u8]) -> Result<PathBuf, String> {
    let kept = || {
        let file = tempfile::Builder::new()
            .prefix("crabtalk-clipboard-")
            .suffix(".png")
            .tempfile()?;
        file.as_file().write_all(bytes)?;
        let (_, path) = file.keep().map_err(|e| e.error)?;
        Ok::<_, std::io::Error>(path)
    };
    kept().map_err(|e| format!("cannot save the image of the clipboard: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_image_path_is_attached() {
        let folder = tempfile::tempdir().unwrap();
        let png = b"\x89PNG\r\n\x1a\n...";
        std::fs::write(folder.path().join("shot.png"), png).unwrap();
        std::fs::write(folder.path().join("a shot.png"), png).unwrap();
        std::fs::write(folder.path().join("words.png"), "no image").unwrap();
        let at = folder.path().join("shot.png");
        let at = at.to_str().unwrap();
        for (text, want) in [
            ("shot.png", Some("@shot.png ".to_owned())),
            (&format!("'{at}'\n"), Some(format!("@{at} "))),
            (&format!("file://{at}"), Some(format!("@{at} "))),
            ("a\\ shot.png", Some("@\"a shot.png\" ".to_owned())),
            ("words.png", None),
            ("none.png", None),
            ("shot.png and more", None),
            ("", None),
        ] {
            assert_eq!(pasted(text, folder.path()), want, "{text}");
        }
    }
}
