//! Patterns of rules for commands and paths.

use globset::GlobBuilder;
use std::path::Path;

/// The pattern of a rule for commands, which is a prefix of whole words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Words<'a> {
    /// `*`: every command.
    Any,
    /// `cargo test`: exactly these words.
    Exactly(Vec<&'a str>),
    /// `cargo test *`, also written `cargo test*`: these words and any further ones.
    Prefix(Vec<&'a str>),
    /// A wildcard elsewhere, after these words. Such a pattern allows no command.
    Broken(Vec<&'a str>),
}

impl<'a> Words<'a> {
    pub(crate) fn parse(pattern: &'a str) -> Self {
        let pattern = pattern.trim();
        let whole = pattern.trim_end_matches('*').trim_end();
        let wild = |word: &&str| word.contains(['*', '?']);
        let words: Vec<&str> = whole.split_whitespace().collect();
        if words.iter().any(wild) {
            return Self::Broken(words.into_iter().take_while(|word| !wild(word)).collect());
        }
        match (words.is_empty(), whole.len() < pattern.len()) {
            (true, _) => Self::Any,
            (false, true) => Self::Prefix(words),
            (false, false) => Self::Exactly(words),
        }
    }

    /// Whether a rule that allows covers these words.
    pub(crate) fn allows(&self, words: &[String]) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(wanted) => words == wanted.as_slice(),
            Self::Prefix(wanted) => starts_with(words, wanted),
            Self::Broken(_) => false,
        }
    }

    /// Whether a rule that asks or denies covers these words: any with this prefix, in any
    /// folder of the program.
    pub(crate) fn refuses(&self, words: &[String]) -> bool {
        let mut words = words.to_vec();
        if let Some(program) = words.first_mut()
            && let Some((_, name)) = program.rsplit_once('/')
        {
            *program = name.to_owned();
        }
        match self {
            Self::Any => true,
            Self::Exactly(wanted) => words == *wanted,
            Self::Prefix(wanted) | Self::Broken(wanted) => starts_with(&words, wanted),
        }
    }
}

fn starts_with(words: &[String], wanted: &[&str]) -> bool {
    words.len() >= wanted.len() && words.iter().zip(wanted).all(|(word, want)| word == want)
}

/// Whether a path pattern matches an absolute path: `*` and `?` do not match `/`, `**`
/// does. Brackets and braces are literal.
pub(crate) fn path(pattern: &str, path: &Path) -> bool {
    let mut escaped = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        if "[]{}\\!".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    let glob = GlobBuilder::new(&escaped).literal_separator(true).build();
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_patterns_are_prefixes_of_whole_words() {
        for (pattern, command, allows, refuses) in [
            ("*", "rm x", true, true),
            ("git status", "git status", true, true),
            ("git status", "git status -s", false, false),
            ("git status *", "git status", true, true),
            ("git status*", "git status -s", true, true),
            ("git status*", "git stash", false, false),
            ("ls*", "ls/x", false, false),
            ("ls *", "lsblk", false, false),
            ("git push *", "/usr/bin/git push", false, true),
            ("git * --stat", "git log --stat", false, true),
            ("git p?sh", "git push", false, true),
        ] {
            let words: Vec<String> = command.split(' ').map(Into::into).collect();
            let found = Words::parse(pattern);
            assert_eq!(found.allows(&words), allows, "{pattern} allows {command}");
            assert_eq!(
                found.refuses(&words),
                refuses,
                "{pattern} refuses {command}"
            );
        }
    }

    #[test]
    fn stars_in_paths_stop_at_slashes() {
        for (pattern, text, want) in [
            ("/etc/*", "/etc/passwd", true),
            ("/etc/*", "/etc/ssl/key", false),
            ("/etc/**", "/etc/ssl/key", true),
            ("/w/**/x", "/w/x", true),
            ("/w/**/x", "/w/a/b/x", true),
            ("/w/**/x", "/w/ax", false),
            ("/w/*.rs", "/w/a.rs", true),
            ("/w/app/[id]/x", "/w/app/[id]/x", true),
            ("/w/app/[id]/x", "/w/app/i/x", false),
            ("/w/{a,b}", "/w/a", false),
            ("/**/.env", "/.env", true),
        ] {
            assert_eq!(path(pattern, Path::new(text)), want, "{pattern} {text}");
        }
    }
}
