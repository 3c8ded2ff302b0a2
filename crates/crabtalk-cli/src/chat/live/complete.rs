//! Completions of the word at the cursor: commands, their arguments, files and agents.

use super::slash::{COMMANDS, Slash};
use super::tree::Tree;
use crate::chat::references;
use crate::fuzzy::score;
use std::cmp::Reverse;
use std::path::Path;

/// Maximum number of candidates for a reference.
const MAX_FOUND: usize = 50;

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
    /// Whether the offline demonstration is the model.
    pub(super) demonstration: bool,
}

/// A completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) about: String,
    /// Whether Enter runs it at once.
    pub(super) runs: bool,
}

impl Candidate {
    /// Whether it is a reference to a file.
    pub(super) fn is_file(&self) -> bool {
        self.text.starts_with('@') && self.about.is_empty()
    }
}

/// The completions of a word.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// The byte offset of the word.
    pub(super) from: usize,
    pub(super) candidates: Vec<Candidate>,
    /// Whether the word is complete.
    pub(super) is_complete: bool,
}

impl Known {
    /// The completions of the text before the cursor.
    pub(super) fn complete(&self, before: &str, cwd: &Path, tree: &Tree) -> Option<Completion> {
        let from = match reference(before) {
            Some(from) => from,
            None => before.rfind(char::is_whitespace).map_or(0, |at| {
                at + before[at..].chars().next().map_or(1, char::len_utf8)
            }),
        };
        let word = &before[from..];
        let (candidates, is_complete) = if from == 0 && word.starts_with('/') {
            (self.commands(&word[1..]), self.is_command(&word[1..]))
        } else if word.starts_with('@') && reference(before).is_some() {
            self.references(word, from, cwd, tree)
        } else {
            let offered = self.arguments(before[..from].trim())?;
            let is_complete = word.is_empty() || offered.iter().any(|name| name == word);
            (ranked(&offered, word, "", ""), is_complete)
        };
        let more = candidates
            .iter()
            .any(|candidate| candidate.text.trim_end() != word);
        more.then_some(Completion {
            from,
            candidates,
            is_complete,
        })
    }

    /// The values of a command's argument.
    fn arguments(&self, command: &str) -> Option<Vec<String>> {
        match command {
            "/model" => Some(self.models.clone()),
            "/agent" => Some(self.agents.clone()),
            "/mode" => Some(["read-only", "ask", "auto"].map(str::to_owned).into()),
            _ => None,
        }
    }

    fn commands(&self, word: &str) -> Vec<Candidate> {
        let of_command = |command: &Slash| Candidate {
            text: format!("/{} ", command.name),
            about: format!("{} {}", command.arguments, command.about)
                .trim()
                .to_owned(),
            // A match in the middle of a name may be unexpected.
            runs: command.runs_alone() && command.name.starts_with(word),
        };
        let of_skill = |skill: &String| Candidate {
            text: format!("/{skill} "),
            about: "skill".to_owned(),
            runs: false,
        };
        let commands = COMMANDS.iter().map(|it| (it.name, of_command(it)));
        let skills = self.skills.iter().map(|it| (it.as_str(), of_skill(it)));
        let mut found: Vec<_> = commands
            .chain(skills)
            .filter_map(|(name, candidate)| Some((score(word, name)?, name == word, candidate)))
            .collect();
        found.sort_by_key(|(score, is_whole, _)| Reverse((*is_whole, *score)));
        found.into_iter().map(|(.., candidate)| candidate).collect()
    }

    /// The completions of `@word`, and whether the word is known.
    fn references(
        &self,
        word: &str,
        from: usize,
        cwd: &Path,
        tree: &Tree,
    ) -> (Vec<Candidate>, bool) {
        let quoted = word.starts_with(QUOTED);
        let path = word.trim_start_matches('@').trim_start_matches('"');
        let mut found = match from {
            0 if !quoted => ranked(&self.agents, path, "@", "a guest answers once"),
            _ => Vec::new(),
        };
        // Paths that the tree omits are listed folder by folder.
        let listed = path.starts_with(['.', '/']) || path.contains("/.");
        let mut files = match listed {
            true => Vec::new(),
            false => in_tree(path, tree),
        };
        if files.is_empty() {
            files = in_folder(path, cwd);
        }
        found.extend(files);
        let is_known = !quoted && references::is_known(path, &self.agents, cwd);
        (found, path.is_empty() || is_known)
    }
}

/// The byte offset of the reference at the end of a text.
fn reference(before: &str) -> Option<usize> {
    let open_quote = before.rfind(QUOTED).filter(|at| {
        let behind = &before[at + QUOTED.len()..];
        !behind.contains(['"', '\n'])
    });
    let word = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let at = open_quote.or_else(|| Some(word + before.get(word..)?.find('@')?))?;
    (references::begins(&before[..at]) && !references::is_code(before, at)).then_some(at)
}

/// The names that match a word, best first.
fn ranked(names: &[String], word: &str, mark: &str, about: &str) -> Vec<Candidate> {
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| Some((score(word, name)?, name)))
        .collect();
    found.sort_by_key(|(score, name)| (*name != word, Reverse(*score)));
    let names = found.into_iter().map(|(_, name)| Candidate {
        text: format!("{mark}{name} "),
        about: about.to_owned(),
        runs: mark.is_empty(),
    });
    names.collect()
}

/// The matching paths of the tree, best first; near and short ones precede others.
fn in_tree(path: &str, tree: &Tree) -> Vec<Candidate> {
    let depth = |name: &str| name.trim_end_matches('/').matches('/').count();
    let mut found: Vec<_> = tree
        .paths
        .iter()
        .filter(|name| !path.is_empty() || depth(name) == 0)
        .filter_map(|name| Some((Reverse(score(path, name)?), name.len(), name.as_str())))
        .collect();
    if path.is_empty() {
        found.sort_by_key(|(.., name)| *name);
    } else {
        found.sort();
    }
    let found = found.into_iter().take(MAX_FOUND);
    found.map(|(.., name)| file(name)).collect()
}

/// Files and folders with a prefix; hidden ones only after a dot.
fn in_folder(path: &str, cwd: &Path) -> Vec<Candidate> {
    let (folder, name) = match path.rfind('/') {
        Some(end) => path.split_at(end + 1),
        None => ("", path),
    };
    let Ok(entries) = std::fs::read_dir(cwd.join(folder)) else {
        return Vec::new();
    };
    let names = entries.take(MAX_ENTRIES).filter_map(|entry| {
        let entry = entry.ok()?;
        let file = entry.file_name().into_string().ok()?;
        let hidden = file.starts_with('.') && !name.starts_with('.');
        if hidden || !file.starts_with(name) || file.contains(['"', '\n']) {
            return None;
        }
        let slash = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("{folder}{file}{slash}"))
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.truncate(MAX_FOUND);
    names.iter().map(|name| file(name)).collect()
}

/// A folder can be continued; a file is followed by a space.
fn file(path: &str) -> Candidate {
    let text = match (path.contains(char::is_whitespace), path.ends_with('/')) {
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
        (true, true) => format!("{QUOTED}{path}"),
        (true, false) => format!("{QUOTED}{path}\" "),
    };
    Candidate {
        text,
        ..Candidate::default()
    }
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

    /// The completions of a text, with the byte offset of the word, and a mark if the word
    /// is complete.
    fn texts(before: &str, cwd: &Path, tree: &Tree) -> String {
        let Some(found) = known().complete(before, cwd, tree) else {
            return String::new();
        };
        let texts: Vec<_> = found.candidates.iter().map(|c| c.text.trim_end()).collect();
        let mark = if found.is_complete { " complete" } else { "" };
        format!("{}{mark}: {}", found.from, texts.join(" "))
    }

    #[test]
    fn commands_and_arguments_complete_fuzzily() {
        for (before, want) in [
            ("/co", "0: /compact /context /cost /copy"),
            ("/cpct", "0: /compact"),
            ("/styl", "0: /style"),
            ("/mode", "0 complete: /mode /model"),
            ("/agent rev", "7: reviewer"),
            ("/agent rvw", "7: reviewer"),
            ("/agent ", "7 complete: crab reviewer"),
            ("/mode a", "6: ask auto read-only"),
            ("plain words", ""),
            ("/agent reviewer", ""),
            ("a /co", ""),
        ] {
            let found = texts(before, Path::new("/"), &Tree::default());
            assert_eq!(found, want, "{before}");
        }
        let complete = |word| {
            let (root, tree) = (Path::new("/"), Tree::default());
            known().complete(word, root, &tree).unwrap()
        };
        let all = complete("/");
        assert_eq!(all.candidates.len(), COMMANDS.len() + 1);
        let runs = |word| complete(word).candidates[0].runs;
        assert!(runs("/comp") && !runs("/cpct") && !runs("/titl"));
    }

    #[test]
    fn references_complete_fuzzily() {
        let folder = tempfile::tempdir().unwrap();
        for dir in ["src", "my notes", "target", ".hidden"] {
            std::fs::create_dir(folder.path().join(dir)).unwrap();
        }
        for file in ["src/main.rs", "my notes/to do.md", "target/out", ".env"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let paths = ["src/", "src/main.rs", "my notes/", "my notes/to do.md"];
        let tree = Tree {
            paths: paths.map(str::to_owned).into(),
            is_cut: false,
        };
        for (before, want) in [
            ("@re", "0: @reviewer"),
            ("@", "0 complete: @crab @reviewer @\"my notes/ @src/"),
            ("look at @mrs", "8: @src/main.rs"),
            ("look (@src/m", "6: @src/main.rs"),
            ("@src/main.rs", ""),
            ("see @todo", "4: @\"my notes/to do.md\""),
            ("see @\"my notes/to d", "4: @\"my notes/to do.md\""),
            ("see @\"my notes/to do.md\" and", ""),
            ("see @ta/", ""),
            ("see @target/o", "4: @target/out"),
            ("see @.e", "4: @.env"),
            ("mail to a@m", ""),
            ("`@m` is code, `@m`", ""),
        ] {
            let found = texts(before, folder.path(), &tree);
            assert_eq!(found, want, "{before}");
        }
        // Until the walk ends, the folder itself is listed.
        let found = texts("see @s", folder.path(), &Tree::default());
        assert_eq!(found, "4: @src/");
    }
}
