//! Builds a message from typed text: attached files and images, a guest, output of `!`
//! commands.
//!
//! Invariants: a file is attached as a whole or not at all, with a note in both cases;
//! `@word` is plain text unless it names a regular text file.

use super::references::{is_known, references};
use crate::shown::{attach, is_image};
use crate::text::counted;
use crabtalk_proto::Image;
use std::path::Path;

/// Commands of the built-in demonstration.
pub(super) const DEMONSTRATION: &[&str] = &["tool", "ask", "think", "slow"];

/// Maximum size of an attached file.
const MAX_FILE: u64 = 128 * 1024;

/// Maximum total size of attached files.
const MAX_FILES: usize = 512 * 1024;

/// A message to send.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Message {
    pub(super) content: String,
    /// The guest agent.
    pub(super) guest: Option<String>,
    /// Attached images.
    pub(super) images: Vec<Image>,
    /// Notes about attached and skipped files.
    pub(super) notes: Vec<String>,
}

/// Makes a message.
pub(super) fn message(typed: &str, agents: &[String], cwd: &Path, said: &[String]) -> Message {
    let mut message = Message::default();
    let mut text = typed.trim();
    if let Some(rest) = text.strip_prefix('@') {
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if agents.iter().any(|agent| agent == name) && !rest.trim().is_empty() {
            message.guest = Some(name.to_owned());
            text = rest.trim();
        }
    }
    for said in said {
        message.content.push_str(said);
        message.content.push_str("\n\n");
    }
    message.content.push_str(text);
    let (mut taken, mut bytes) = (Vec::new(), 0);
    let named = references(text, |name| is_known(name, agents, cwd));
    for path in named.into_iter().map(|reference| reference.name) {
        if taken.contains(&path) || !cwd.join(path).is_file() {
            continue;
        }
        taken.push(path);
        let whole = cwd.join(path);
        if is_image(&whole) {
            message
                .notes
                .push(match attach(&mut message.images, &whole) {
                    Ok(note) => format!("attached {path} {note}"),
                    Err(why) => format!("{path} not attached: {why}"),
                });
            continue;
        }
        match crabtalk_files::read_text(&cwd.join(path), MAX_FILE) {
            Ok(content) if bytes + content.len() <= MAX_FILES => {
                bytes += content.len();
                let lines = counted(content.lines().count(), "line");
                message.notes.push(format!("attached {path} ({lines})"));
                message
                    .content
                    .push_str(&format!("\n\n<file path=\"{path}\">\n"));
                message.content.push_str(&content);
                if !content.ends_with('\n') {
                    message.content.push('\n');
                }
                message.content.push_str("</file>");
            }
            Ok(_) => message.notes.push(format!(
                "{path} not attached: the files of a message can have {} KB",
                MAX_FILES / 1024
            )),
            Err(error) => message.notes.push(format!("{path} not attached: {error}")),
        }
    }
    message
}

/// Formats the output of a `!` command for the agent.
pub(super) fn shell(command: &str, status: &str, output: &str) -> String {
    format!(
        "I ran this command myself:\n<command>\n{command}\n</command>\n<output status=\"{status}\">\n{}\n</output>",
        output.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_files_are_attached() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo").unwrap();
        std::fs::write(folder.path().join("big"), "x".repeat(200 * 1024)).unwrap();
        let made = message(
            "look at @a.txt, and @none and a@b.c",
            &[],
            folder.path(),
            &[],
        );
        assert_eq!(
            made.content,
            "look at @a.txt, and @none and a@b.c\n\n<file path=\"a.txt\">\none\ntwo\n</file>"
        );
        assert_eq!(made.notes, ["attached a.txt (2 lines)"]);
        let made = message("@big", &[], folder.path(), &[]);
        assert_eq!(made.content, "@big");
        assert!(made.notes[0].starts_with("big not attached: "), "{made:?}");
    }

    #[test]
    fn named_images_are_attached() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.png", "a b.png"] {
            std::fs::write(folder.path().join(name), b"\x89PNG\r\n\x1a\n.").unwrap();
        }
        let typed = "what is in @a.png? And in @\"a b.png\"? And again @a.png.";
        let made = message(typed, &[], folder.path(), &[]);
        assert_eq!(made.content, typed);
        assert_eq!(made.images.len(), 2);
        assert_eq!(
            made.notes,
            [
                "attached a.png [image/png, 9 bytes]",
                "attached a b.png [image/png, 9 bytes]"
            ]
        );
    }

    #[test]
    fn leading_agent_name_is_a_guest() {
        let agents = ["reviewer".to_owned()];
        let made = message("@reviewer is this right?", &agents, Path::new("/"), &[]);
        assert_eq!(made.guest.as_deref(), Some("reviewer"));
        assert_eq!(made.content, "is this right?");
        let made = message(
            "ask @reviewer",
            &agents,
            Path::new("/"),
            &["I ran x".into()],
        );
        assert_eq!(made.guest, None);
        assert_eq!(made.content, "I ran x\n\nask @reviewer");
    }
}
