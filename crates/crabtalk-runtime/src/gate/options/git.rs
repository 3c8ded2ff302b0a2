//! git: what its row does not say, and what keeps its diffs to themselves.

use super::Checked;
use crate::gate::plain::Word;
use crate::gate::programs::Program;

/// Subcommands that show diffs: they may run what converts files for that,
/// unless they are told not to.
const SHOWS_DIFFS: [&str; 3] = ["diff", "log", "show"];

/// What turns that off.
const NO_CONVERSION: [&str; 2] = ["--no-ext-diff", "--no-textconv"];

pub(super) fn check(program: &Program, args: &[Word], spelled: usize) -> Checked {
    let rest = program.listed(args, spelled)?;
    let mut words = rest.words().map(|(_, word)| word.text());
    let Some(first) = words.next() else {
        return Ok(());
    };
    let harmless = match rest.subcommand.as_deref() {
        // Entries of the log of references are removed by these words.
        Some("reflog") => !matches!(first.as_str(), "expire" | "delete" | "drop"),
        // `git config NAME` reads, `git config NAME VALUE` writes.
        Some("config") => {
            let reads = rest
                .options
                .iter()
                .any(|(name, _)| name.starts_with("--get"));
            reads
                || matches!(first.as_str(), "get" | "list")
                || words.next().is_none()
                || spelled >= 2
        }
        _ => true,
    };
    match harmless {
        true => Ok(()),
        false => Err(first),
    }
}

/// The words without conversions of files for diffs.
pub(super) fn tamed(words: &[Word]) -> Option<Vec<Word>> {
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    let at = (1..texts.len()).find(|at| !texts[*at].starts_with('-'))?;
    if !SHOWS_DIFFS.contains(&texts[at].as_str()) {
        return None;
    }
    let mut tamed = words.to_vec();
    let at = at + 1;
    tamed.splice(at..at, NO_CONVERSION.map(Word::of));
    Some(tamed)
}
