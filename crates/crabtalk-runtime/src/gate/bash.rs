//! Takes a shell command apart into what is judged: simple commands, files
//! that redirections touch, and what cannot be known.
//!
//! Invariants: nothing that a shell would run is missing from the result,
//! whatever cannot be understood is a part of its own that no narrow rule
//! allows; hostile input costs bounded time and stack.
//!
//! Absent on purpose: what a program does by itself. `git status` in a
//! repository with a hostile configuration, `make`, or `cp` over a file are
//! the business of whoever allows them, and of the sandbox.

mod walk;
mod word;
mod wrap;

#[cfg(test)]
mod tests;

use super::pattern::HOLE;

/// Longest command judged, in bytes: what is longer nobody reads before
/// approving, and the parser's time grows with it.
const MAX_BYTES: usize = 64 * 1024;

/// Most separators, brackets and compound words: each may cost the parser a
/// level of its stack, and this many fit [`STACK_BYTES`] five times over.
const MAX_STRUCTURE: usize = 256;

/// Most substitutions: the parser's time grows with the cube of their depth.
const MAX_SUBSTITUTIONS: usize = 32;

/// Scripts within scripts (`sh -c "sh -c ..."`) that are still taken apart.
const MAX_NESTING: usize = 8;

/// Stack of the parsing thread. A debug build needs up to 40 KiB per level.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Words that may open a level without any separator.
const COMPOUND_WORDS: [&str; 13] = [
    "if", "then", "elif", "else", "while", "until", "for", "select", "case", "do", "function",
    "time", "coproc",
];

/// A command taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplitCommand {
    /// Every simple command, substitutions included.
    pub parts: Vec<Part>,
    /// Every file that a redirection opens.
    pub files: Vec<FileUse>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its words without quotes, joined by single blanks. What only the shell
    /// will know is the noncharacter U+FFFF.
    pub text: String,
    /// Its words, with holes.
    pub words: Vec<String>,
    /// Its words, quoted where that makes a difference.
    pub exact: String,
    /// Why it may run more than its name says.
    pub guard: Option<String>,
    /// Commands that it would run or stands for: seen by refusing rules only.
    pub inner: Vec<Inner>,
}

/// A command behind a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    /// The command.
    pub part: Part,
    /// Whether it surely runs when the outer one does.
    pub sure: bool,
}

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// As written, without quotes; `None` when only the shell will know.
    pub path: Option<String>,
    /// Whether a leading `~/` means the home.
    pub tilde: bool,
    /// Whether it is relative to a folder that the command itself changes.
    pub moved: bool,
    /// Whether it is written; else it is read.
    pub write: bool,
}

impl Part {
    /// A part of which nothing is known.
    fn unknown(reason: impl Into<String>) -> Self {
        Self {
            text: HOLE.to_string(),
            exact: HOLE.to_string(),
            words: vec![HOLE.to_string()],
            guard: Some(reason.into()),
            inner: Vec::new(),
        }
    }
}

/// Takes a command apart. Never fails: what cannot be parsed is one unknown
/// part.
pub fn split(command: &str) -> SplitCommand {
    let result = match screen(command) {
        Ok(()) => on_a_deep_stack(command),
        Err(reason) => Err(reason.to_owned()),
    };
    result.unwrap_or_else(|reason| SplitCommand {
        parts: vec![Part::unknown(reason)],
        files: Vec::new(),
    })
}

/// Parses on a thread of its own: the parser recurses, and the caller's stack
/// is of unknown size. The thread also contains a panic of the parser.
fn on_a_deep_stack(command: &str) -> Result<SplitCommand, String> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("gate-parse".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || walk::script(command))
            .map_err(|e| format!("no thread to parse it: {e}"))?
            .join()
            .unwrap_or_else(|_| Err("it is not understood".into()))
    })
}

/// Turns away what would cost too much, or what shells read differently.
fn screen(command: &str) -> Result<(), &'static str> {
    if command.len() > MAX_BYTES {
        return Err("it is too long to be judged");
    }
    let strange = |c: char| {
        c == HOLE
            || (c.is_control() && c != '\n' && c != '\t')
            || (c.is_whitespace() && !c.is_ascii())
    };
    if command.chars().any(strange) {
        return Err("it holds control characters or unusual blanks");
    }
    let marks = command
        .chars()
        .filter(|c| "(){}[;&|\n!".contains(*c))
        .count();
    let words = command.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let compounds = words.filter(|word| COMPOUND_WORDS.contains(word)).count();
    if marks + compounds > MAX_STRUCTURE {
        return Err("it has too many parts to be judged");
    }
    let openings = ["$(", "`", "<(", ">(", "${"];
    if openings
        .iter()
        .map(|o| command.matches(o).count())
        .sum::<usize>()
        > MAX_SUBSTITUTIONS
    {
        return Err("it has too many substitutions to be judged");
    }
    Ok(())
}
