//! What an owner is shown of a change before it counts.
//!
//! Invariant: everything that would count is named; keys are not shown.

use super::held::{Change, Held};
use super::tree::{Item, Kind};
use crabtalk_tools::unified_diff;
use std::fmt::Write;
use std::path::Path;

/// Largest text that is compared line by line; what is larger is no rule that
/// a person reads.
const MAX_TEXT_BYTES: u64 = 256 * 1024;

/// Text of a whole question: what a frame and a screen can bear.
const MAX_SHOWN_BYTES: usize = 512 * 1024;

/// Words by which lines with secrets are known.
const SECRET: [&str; 6] = [
    "key",
    "token",
    "secret",
    "password",
    "authorization",
    "bearer",
];

/// The whole change as a text. `kept` and `held` say where contents lie.
pub(super) fn diff(
    held: &Held,
    kept: &dyn Fn(&str) -> std::path::PathBuf,
    content: &dyn Fn(&Change) -> std::path::PathBuf,
) -> String {
    let mut out = String::new();
    for change in held.changes.iter().rev() {
        let old = text(change.before.as_ref(), &|item| match &item.kind {
            Kind::File { sha256, .. } => kept(sha256),
            Kind::Link(_) | Kind::Folder | Kind::Other => Default::default(),
        });
        let new = text(change.after.as_ref(), &|_| content(change));
        let what = match (&change.before, &change.after) {
            (None, Some(_)) => "added",
            (Some(_), None) => "removed",
            (Some(_), Some(_)) | (None, None) => "changed",
        };
        line(&mut out, format_args!("{} ({what})", change.path.display()));
        match (old, new) {
            (Some(old), Some(new)) => {
                let (old, new) = (mask(&old), mask(&new));
                line(&mut out, format_args!("{}", unified_diff(&old, &new)));
            }
            (old, new) => {
                for (sign, side, text) in [('-', &change.before, old), ('+', &change.after, new)] {
                    if let Some(item) = side {
                        match text {
                            Some(text) => {
                                for one in mask(&text).lines() {
                                    line(&mut out, format_args!("{sign}{one}"));
                                }
                            }
                            None => line(&mut out, format_args!("{sign}{}", told(item))),
                        }
                    }
                }
            }
        }
        if out.len() > MAX_SHOWN_BYTES {
            let cut = out.floor_char_boundary(MAX_SHOWN_BYTES);
            out.truncate(cut);
            line(
                &mut out,
                format_args!("\n.. cut: look into the files before you allow it"),
            );
            break;
        }
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a String takes all");
}

/// The content of an item that is a short text.
fn text(item: Option<&Item>, place: &dyn Fn(&Item) -> std::path::PathBuf) -> Option<String> {
    let item = item?;
    match &item.kind {
        Kind::File { kept: true, .. } => read(&place(item)),
        Kind::File { kept: false, .. } | Kind::Link(_) | Kind::Folder | Kind::Other => None,
    }
}

fn read(path: &Path) -> Option<String> {
    crabtalk_files::read_text(path, MAX_TEXT_BYTES).ok()
}

/// What stands for an item that is no short text.
fn told(item: &Item) -> String {
    match &item.kind {
        Kind::File { sha256, .. } => format!("a file that is no short text, {sha256}"),
        Kind::Link(target) => format!("a link to {}", target.display()),
        Kind::Folder => format!("a folder, mode {:o}", item.mode),
        Kind::Other => "a pipe, a socket or a device".into(),
    }
}

/// Values of lines that may hold a key.
fn mask(text: &str) -> String {
    let hides = |line: &str| {
        let lower = line.to_lowercase();
        SECRET.iter().any(|word| lower.contains(word))
    };
    let masked = text
        .split_inclusive('\n')
        .map(|line| match line.split_once(['=', ':']) {
            Some((name, value)) if hides(line) && value.contains(['"', '\'']) => {
                let end = if line.ends_with('\n') { "\n" } else { "" };
                format!("{name}= ***{end}")
            }
            _ => line.to_owned(),
        });
    masked.collect()
}
