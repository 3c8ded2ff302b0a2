//! The rules that `allowed-tools` grants to a trusted skill, with absolute paths of the
//! skill's files.
//!
//! Invariants: a file in a command is a trusted one, by its absolute path, never a file
//! with the same name in the working folder; an ambiguous entry grants nothing.

use crate::skills::tools::{self, ToolPattern};
use std::path::Path;

/// Maximum rules of one entry, whose glob may match many files.
const MAX_RULES: usize = 64;

/// The calls that runs of a trusted skill may make without asking.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Rules for the gate.
    pub rules: Vec<ToolPattern>,
    /// Entries that grant nothing.
    pub ignored: Vec<String>,
}

/// The grants of a skill with these files in a canonical folder.
pub(crate) fn grants(allowed: &[String], folder: &Path, files: &[String]) -> Grants {
    let mut grants = Grants::default();
    for entry in allowed {
        let rules: Option<Vec<_>> = tools::patterns(entry)
            .into_iter()
            .map(|rule| own(rule, folder, files))
            .collect();
        match rules.map(|rules| rules.concat()) {
            Some(rules) if !rules.is_empty() => grants.rules.extend(rules),
            Some(_) | None => grants.ignored.push(entry.clone()),
        }
    }
    grants.rules.dedup();
    grants
}

/// The rules of one entry; `None` if it is ambiguous.
fn own(rule: ToolPattern, folder: &Path, files: &[String]) -> Option<Vec<ToolPattern>> {
    let patterns = match (rule.tool.as_str(), &rule.pattern) {
        ("bash", Some(pattern)) => commands(pattern, folder, files)?,
        ("read", Some(pattern)) if is_relative(pattern) => {
            let pattern = pattern.trim_start_matches("./");
            let named: Vec<String> = matching(pattern, files)
                .map(|f| whole(folder, f))
                .collect::<Option<_>>()?;
            // A pattern without a file of the skill applies to the working folder.
            if named.is_empty() {
                vec![pattern.to_owned()]
            } else {
                named
            }
        }
        (_, Some(_) | None) => return Some(vec![rule]),
    };
    let tool = rule.tool;
    let rule = |pattern| ToolPattern {
        tool: tool.clone(),
        pattern: Some(pattern),
    };
    (patterns.len() <= MAX_RULES).then(|| patterns.into_iter().map(rule).collect())
}

/// The patterns of commands, with absolute paths for the skill's files.
fn commands(pattern: &str, folder: &Path, files: &[String]) -> Option<Vec<String>> {
    // Quoting makes words ambiguous.
    if pattern.contains(['\'', '"', '\\', '$', '`']) {
        return None;
    }
    let words: Vec<&str> = pattern.split_whitespace().collect();
    let mut whole_patterns = vec![String::new()];
    for (at, word) in words.iter().enumerate() {
        let is_last = at + 1 == words.len();
        let choices = choices(word, is_last, folder, files)?;
        let before = std::mem::take(&mut whole_patterns);
        for before in before {
            let gap = if before.is_empty() { "" } else { " " };
            whole_patterns.extend(choices.iter().map(|word| format!("{before}{gap}{word}")));
        }
        if whole_patterns.len() > MAX_RULES {
            return None;
        }
    }
    Some(whole_patterns)
}

/// The possible values of one word in a command.
fn choices(word: &str, is_last: bool, folder: &Path, files: &[String]) -> Option<Vec<String>> {
    let names_file = |word: &str| files.iter().any(|file| file == word);
    let stem = word.trim_start_matches("./");
    let open = is_last && stem.ends_with('*');
    let bare = stem.trim_end_matches('*');
    let is_file = is_relative(word) || names_file(stem) || open && names_file(bare);
    if !is_file {
        // An option or an assignment may contain a path.
        let hides = !word.starts_with(['/', '~']) && word.contains('/') && !word.contains("://");
        return (!hides).then(|| vec![word.to_owned()]);
    }
    let mut choices = Vec::new();
    for file in matching(stem, files) {
        let file = whole(folder, file)?;
        if open {
            // The star applies to arguments, not to the rest of a path.
            choices.push(format!("{file} *"));
        }
        choices.push(file);
    }
    (!choices.is_empty()).then_some(choices)
}

/// Whether a word is a path relative to the working folder.
fn is_relative(word: &str) -> bool {
    word.contains('/')
        && !word.starts_with(['/', '~', '-'])
        && !word.contains("://")
        && !word.contains('=')
}

/// The files that match an author's pattern.
fn matching<'f>(pattern: &'f str, files: &'f [String]) -> impl Iterator<Item = &'f str> {
    files
        .iter()
        .map(String::as_str)
        .filter(move |file| crabtalk_domain::glob_matches(pattern, file))
}

/// A file's absolute path, if it needs no quotes in patterns and commands.
fn whole(folder: &Path, file: &str) -> Option<String> {
    let path = format!("{}/{file}", folder.to_str()?);
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | '@' | '%');
    path.chars().all(plain).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: &str, wanted: &[&str]) {
        let files = [
            "SKILL.md",
            "run.py",
            "scripts/run.sh",
            "scripts/two.sh",
            "references/a.md",
        ];
        let files = files.map(str::to_owned);
        let grants = grants(&[entry.to_owned()], Path::new("/k/s"), &files);
        let rules: Vec<String> = grants.rules.iter().map(ToString::to_string).collect();
        assert_eq!(rules, wanted, "{entry}");
        assert_eq!(grants.ignored.is_empty(), !wanted.is_empty(), "{entry}");
    }

    #[test]
    fn files_are_those_of_the_skill() {
        let run = ["bash(/k/s/scripts/run.sh *)", "bash(/k/s/scripts/run.sh)"];
        check("Bash(scripts/run.sh*)", &run);
        check("bash(./scripts/run.sh*)", &run);
        check("Bash(scripts/run.sh:*)", &[run[1], run[0]]);
        check("Bash(scripts/run.sh)", &[run[1]]);
        check(
            "Bash(scripts/*)",
            &[
                run[0],
                run[1],
                "bash(/k/s/scripts/two.sh *)",
                "bash(/k/s/scripts/two.sh)",
            ],
        );
        check(
            "Bash(bash scripts/run.sh --x *)",
            &["bash(bash /k/s/scripts/run.sh --x *)"],
        );
        check("Bash(python run.py)", &["bash(python /k/s/run.py)"]);
        check(
            "Bash(run.py*)",
            &["bash(/k/s/run.py *)", "bash(/k/s/run.py)"],
        );
        check("Read(references/*)", &["read(/k/s/references/a.md)"]);
    }

    #[test]
    fn entries_without_files_are_kept() {
        check("Bash(git:*)", &["bash(git)", "bash(git *)"]);
        check("Bash(git status*)", &["bash(git status*)"]);
        check("Bash(/usr/bin/jq *)", &["bash(/usr/bin/jq *)"]);
        check("Bash(curl https://a.b/c)", &["bash(curl https://a.b/c)"]);
        check("Read", &["read"]);
        check("Read(src/**)", &["read(src/**)"]);
        check("Edit(src/**)", &["edit(src/**)"]);
    }

    #[test]
    fn ambiguous_entries_grant_nothing() {
        for entry in [
            "Bash(scripts/other.sh*)",
            "Bash(scripts/../../x/run.sh)",
            "Bash(../run.sh)",
            "Bash('scripts/run.sh' *)",
            "Bash($HOME/run.sh)",
            "Bash(make --file=scripts/run.sh)",
            "Bash(X=scripts/run.sh git status)",
        ] {
            check(entry, &[]);
        }
        let files = ["run me.sh".to_owned()];
        let grants = grants(
            &["Bash(run*)".to_owned(), "Bash(./*)".to_owned()],
            Path::new("/k"),
            &files,
        );
        assert_eq!(grants.rules.len(), 1, "a name with a space is not a word");
    }
}
