//! Knows which arguments keep a program to what a rule with a wildcard means.
//!
//! `bash(git log*)` means reading the log. An option such as `--output=FILE`
//! makes the program run or write something else, so of the programs in the
//! tables only what is known to be harmless passes under a wildcard. A program
//! that is in no table passes by its name, so when in doubt it belongs in.
//!
//! Absent on purpose: what a program does by its own files. `make` runs a
//! Makefile, `cargo test` the tests: who allows the program allows that.

mod checks;
mod git;
mod sed;
mod walk;

use super::pattern;
use super::plain::{Simple, Word, base_name};
use super::programs::{self, Check, Kind, Program};

/// The error is the first word that is not harmless.
type Checked = Result<(), String>;

/// Whether a pattern with a wildcard may allow a command that it matches; the
/// error continues "`NAME`".
pub(super) fn harmless(command: &Simple, pattern: &str) -> Result<(), String> {
    let name = command.name();
    let base = base_name(&name);
    let args = &command.words[1..];
    let loose = args.iter().find(|word| {
        let start = word.sure_start();
        word.has_glob() && start.starts_with('-') && !start.contains('=')
    });
    if let Some(word) = loose {
        return Err(format!(
            "may be given an option by `{}`",
            shown(&word.text())
        ));
    }
    let spelled = spelled(pattern, command).saturating_sub(1);
    let checked = match programs::find(base) {
        None => Ok(()),
        Some(program) if program.kind == Kind::Listed => check(program, args, spelled),
        Some(_) => return Err("runs other commands, so a rule has to spell it out".to_owned()),
    };
    checked.map_err(|word| format!("may run or write something else with `{}`", shown(&word)))
}

/// Whether arguments are harmless of which a rule spells out the first ones.
pub(super) fn check(program: &Program, args: &[Word], spelled: usize) -> Checked {
    let Some(check) = program.check else {
        return program.listed(args, spelled).map(drop);
    };
    match check {
        Check::Awk => checks::awk(program, args, spelled),
        Check::Cargo => checks::cargo(program, args, spelled),
        Check::Cd => checks::cd(args),
        Check::Compiler => checks::compiler(args),
        Check::Curl => checks::curl(program, args, spelled),
        Check::Find => checks::find(args, spelled),
        Check::Git => git::check(program, args, spelled),
        Check::Printf => checks::printf(args),
        Check::Rsync => checks::rsync(program, args, spelled),
        Check::Sed => sed::check(program, args, spelled),
        Check::Sqlite => checks::sqlite(program, args, spelled),
        Check::Tar => checks::tar(program, args, spelled),
        Check::Test => checks::test(args),
    }
}

/// The words that run for a command of a narrow rule, if they differ.
pub(super) fn tamed(command: &Simple) -> Option<Vec<Word>> {
    (base_name(&command.name()) == "git").then(|| git::tamed(&command.words))?
}

/// How many of the words a pattern spells out before its first wildcard.
fn spelled(pattern: &str, command: &Simple) -> usize {
    let sure = pattern.trim_start();
    let sure = sure.split(['*', '?']).next().unwrap_or_default();
    let mut rest = sure;
    let mut count = 0;
    for word in &command.words {
        let one = Simple {
            words: vec![word.clone()],
            ..command.clone()
        };
        match rest.strip_prefix(one.matched().as_str()) {
            Some("") => return count + 1,
            Some(tail) if tail.starts_with(' ') => rest = &tail[1..],
            // `--format=*` spells the option, not its value.
            _ if rest.starts_with("--") && rest.ends_with('=') && word.text().starts_with(rest) => {
                return count + 1;
            }
            _ => return count,
        }
        count += 1;
    }
    count
}

/// A word for a message.
fn shown(word: &str) -> String {
    /// Longer ones are in the question anyway.
    const MAX_CHARS: usize = 60;
    word.chars().take(MAX_CHARS).collect()
}

/// Whether a pattern says exactly this command, quoted as one likes.
pub(super) fn spells_out(pattern: &str, command: &Simple) -> bool {
    use super::plain::Plain;
    if !pattern::is_literal(pattern) {
        return false;
    }
    match Plain::read(pattern, None).map(|plain| plain.commands) {
        Ok(commands) => matches!(commands.as_slice(), [one] if one.words == command.words),
        Err(_) => false,
    }
}
