//! From what was typed to what is sent: files that are named, a guest, and
//! what commands of the person's own said.
//!
//! Invariants: a file goes in whole or not at all, and is told either way; what
//! is no regular text file is a word like any other.

use std::path::Path;

/// Bytes of a file that goes in: what a person would paste.
const MAX_FILE: u64 = 128 * 1024;

/// Bytes of all files of a message.
const MAX_FILES: usize = 512 * 1024;

/// A message as it is sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) content: String,
    /// The agent that answers this once.
    pub(super) guest: Option<String>,
    /// What the person should know: files that went in, or could not.
    pub(super) notes: Vec<String>,
}

/// Makes a message of what was typed.
pub(super) fn message(typed: &str, agents: &[String], cwd: &Path, shown: &[String]) -> Message {
    let mut message = Message::default();
    let mut text = typed.trim();
    if let Some(rest) = text.strip_prefix('@') {
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if agents.iter().any(|agent| agent == name) && !rest.trim().is_empty() {
            message.guest = Some(name.to_owned());
            text = rest.trim();
        }
    }
    for said in shown {
        message.content.push_str(said);
        message.content.push_str("\n\n");
    }
    message.content.push_str(text);
    let (mut taken, mut bytes) = (Vec::new(), 0);
    for word in text.split_whitespace() {
        let Some(path) = word.strip_prefix('@') else {
            continue;
        };
        let path = path.trim_end_matches([',', ';', ':', ')', '?', '!']);
        let path = match path.strip_suffix('.') {
            Some(shorter) if !cwd.join(path).exists() => shorter,
            _ => path,
        };
        if path.is_empty() || taken.contains(&path) || !cwd.join(path).is_file() {
            continue;
        }
        taken.push(path);
        if super::image::is_image(&cwd.join(path)) {
            let whole = cwd.join(path);
            message
                .content
                .push_str(&format!("\n\n<image path=\"{}\"/>", whole.display()));
            let note = format!("{path} is an image: the agent looks at it with its read tool");
            message.notes.push(note);
            continue;
        }
        match crabtalk_files::read_text(&cwd.join(path), MAX_FILE) {
            Ok(content) if bytes + content.len() <= MAX_FILES => {
                bytes += content.len();
                let lines = content.lines().count();
                message
                    .notes
                    .push(format!("{path} goes in ({lines} lines)"));
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
                "{path} stays out: all files of a message have {} KB at most",
                MAX_FILES / 1024
            )),
            Err(error) => message.notes.push(format!("{path} stays out: {error}")),
        }
    }
    message
}

/// What a command of the person's own said, for the agent.
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
    fn files_that_are_named_go_in() {
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
        assert_eq!(made.notes, ["a.txt goes in (2 lines)"]);
        let made = message("@big", &[], folder.path(), &[]);
        assert_eq!(made.content, "@big");
        assert!(made.notes[0].starts_with("big stays out: "), "{made:?}");
    }

    #[test]
    fn an_image_is_named_for_the_agent_to_look_at() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\n.").unwrap();
        let made = message("what is in @a.png?", &[], folder.path(), &[]);
        let path = folder.path().join("a.png");
        let want = format!("what is in @a.png?\n\n<image path=\"{}\"/>", path.display());
        assert_eq!(made.content, want);
        assert!(made.notes[0].contains("read tool"), "{made:?}");
    }

    #[test]
    fn an_agent_that_is_named_first_is_a_guest() {
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
