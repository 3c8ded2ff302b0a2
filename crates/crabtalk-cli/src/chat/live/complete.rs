//! Completions of the word at the cursor.

use super::slash::COMMANDS;
use std::path::Path;

/// Maximum number of visible candidates.
pub(super) const SHOWN: usize = 6;

/// Maximum number of directory entries read.
const MAX_ENTRIES: usize = 2_000;

/// Prefix of a path with spaces.
const QUOTED: &str = "@\"";

/// Names for completion.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) agents: Vec<String>,
    pub(super) models: Vec<String>,
    pub(super) skills: Vec<String>,
    /// Whether the demonstration answers.
    pub(super) demonstration: bool,
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) about: String,
}

impl Known {
    /// The completions of the text before the cursor, and the byte where they begin.
    pub(super) fn complete(&self, before: &str, cwd: &Path) -> Option<(usize, Vec<Candidate>)> {
        if let Some(from) = open_quote(before) {
            let found = files(&before[from + QUOTED.len()..], cwd);
            return (!found.is_empty()).then_some((from, found));
        }
        let from = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
        let word = &before[from..];
        let found = if from == 0 && word.starts_with('/') {
            self.commands(&word[1..])
        } else if let Some(path) = word.strip_prefix('@') {
            let mut found = files(path, cwd);
            if from == 0 {
                found.splice(
                    0..0,
                    starting(&self.agents, path, "@", "a guest answers once"),
                );
            }
            found
        } else {
            match before[..from].trim() {
                "/model" => starting(&self.models, word, "", ""),
                "/agent" => starting(&self.agents, word, "", ""),
                "/mode" => {
                    let offered = ["read-only", "ask", "auto"].map(str::to_owned);
                    starting(&offered, word, "", "")
                }
                _ => return None,
            }
        };
        // Complete words need no completion.
        let more = found
            .iter()
            .any(|candidate| candidate.text.trim_end() != word);
        (more && !found.is_empty()).then_some((from, found))
    }

    fn commands(&self, word: &str) -> Vec<Candidate> {
        let commands = COMMANDS.iter().map(|command| Candidate {
            text: format!("/{} ", command.name),
            about: format!("{} {}", command.arguments, command.about)
                .trim()
                .to_owned(),
        });
        let skills = self.skills.iter().map(|skill| Candidate {
            text: format!("/{skill} "),
            about: "skill".to_owned(),
        });
        let fits = |candidate: &Candidate| candidate.text[1..].starts_with(word);
        commands.chain(skills).filter(fits).collect()
    }
}

/// Start of an unfinished quoted path.
fn open_quote(before: &str) -> Option<usize> {
    let from = before.rfind(QUOTED)?;
    let is_word = before[..from]
        .chars()
        .next_back()
        .is_none_or(char::is_whitespace);
    let is_open = !before[from + QUOTED.len()..].contains('"');
    (is_word && is_open).then_some(from)
}

fn starting(names: &[String], word: &str, mark: &str, about: &str) -> Vec<Candidate> {
    let fits = names.iter().filter(|name| name.starts_with(word));
    fits.map(|name| Candidate {
        text: format!("{mark}{name} "),
        about: about.to_owned(),
    })
    .collect()
}

/// Files and folders with a prefix; hidden ones only for a dot.
fn files(path: &str, cwd: &Path) -> Vec<Candidate> {
    let (folder, name) = match path.rfind('/') {
        Some(end) => path.split_at(end + 1),
        None => ("", path),
    };
    let Ok(entries) = std::fs::read_dir(cwd.join(folder)) else {
        return Vec::new();
    };
    let mut found: Vec<Candidate> = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let file = entry.file_name().into_string().ok()?;
            let hidden = file.starts_with('.') && !name.starts_with('.');
            if hidden || !file.starts_with(name) || file.contains('"') {
                return None;
            }
            let path = format!("{folder}{file}");
            // A folder can be continued; after a file a space follows.
            let text = match (path.contains(char::is_whitespace), entry.path().is_dir()) {
                (false, true) => format!("@{path}/"),
                (false, false) => format!("@{path} "),
                (true, true) => format!("{QUOTED}{path}/"),
                (true, false) => format!("{QUOTED}{path}\" "),
            };
            Some(Candidate {
                text,
                about: String::new(),
            })
        })
        .collect();
    found.sort_by(|a, b| a.text.cmp(&b.text));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known {
            agents: vec!["crab".into(), "reviewer".into()],
            models: vec!["big".into()],
            skills: vec!["style".into()],
            demonstration: false,
        }
    }

    #[test]
    fn commands_names_and_files_complete() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/main.rs"), "").unwrap();
        std::fs::write(folder.path().join(".hidden"), "").unwrap();
        let known = known();
        let texts = |before: &str| {
            let found = known.complete(before, folder.path());
            found.map(|(from, found)| (from, found.into_iter().map(|c| c.text).collect::<Vec<_>>()))
        };
        let some = |from, texts: &[&str]| {
            Some((
                from,
                texts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ))
        };
        assert_eq!(
            texts("/co"),
            some(0, &["/compact ", "/context ", "/cost ", "/copy "])
        );
        assert_eq!(texts("/sty"), some(0, &["/style "]));
        assert_eq!(texts("/agent rev"), some(7, &["reviewer "]));
        assert_eq!(texts("/mode a"), some(6, &["ask ", "auto "]));
        assert_eq!(texts("@re"), some(0, &["@reviewer "]));
        assert_eq!(texts("look at @s"), some(8, &["@src/"]));
        assert_eq!(texts("look at @src/m"), some(8, &["@src/main.rs "]));
        assert_eq!(texts("@"), some(0, &["@crab ", "@reviewer ", "@src/"]));
        std::fs::create_dir(folder.path().join("my notes")).unwrap();
        std::fs::write(folder.path().join("my notes/to do.md"), "").unwrap();
        std::fs::write(folder.path().join("my notes/done.md"), "").unwrap();
        assert_eq!(texts("see @my"), some(4, &["@\"my notes/"]));
        assert_eq!(
            texts("see @\"my notes/"),
            some(4, &["@\"my notes/done.md\" ", "@\"my notes/to do.md\" "])
        );
        assert_eq!(
            texts("see @\"my notes/to d"),
            some(4, &["@\"my notes/to do.md\" "])
        );
        assert_eq!(texts("see @\"my notes/to do.md\" and"), None);
        assert_eq!(texts("plain words"), None);
        assert_eq!(texts("/agent reviewer"), None);
    }
}
