//! Reads a command line, and says what is wrong with one that cannot be read.
//!
//! Invariants: what is said names the option or argument and what to write in its
//! place, and ends with the command whose help says more; a number below zero is a
//! value and no option; a word is shown no longer than a person reads.

use super::Cli;
use crate::error::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser};
use std::error::Error as _;
use std::ffi::OsString;

/// Characters of a word that are shown: a file given as an argument by accident
/// would fill the screen.
const MAX_WORD: usize = 80;

impl Cli {
    /// Reads a command line, the program's name first.
    pub(crate) fn read(argv: &[OsString]) -> Result<Self, clap::Error> {
        let read = Self::try_parse_from(argv);
        let below_zero = |word: &OsString| {
            let digits = word.to_str().and_then(|word| word.strip_prefix('-'));
            digits.is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
        };
        if read.is_ok() || !argv.iter().any(below_zero) {
            return read;
        }
        // The options of a command are built when it is called; to have all of them
        // takes a millisecond, which only such a line costs.
        let mut command = Self::command();
        command.build();
        let mut command = numbers_are_values(command);
        let matches = command.try_get_matches_from_mut(argv)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Has whoever reads a number judge one below zero, too, and say what to write.
fn numbers_are_values(command: Command) -> Command {
    let may_be_below_zero = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command
        .mut_args(may_be_below_zero)
        .mut_subcommands(numbers_are_values)
}

/// What is wrong with a command line.
pub(crate) fn usage(error: &clap::Error, argv: &[OsString]) -> Error {
    // Where a command is missing the whole help follows.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::Usage("a command is missing; `--help` lists them".to_owned());
    }
    let mut all = Cli::command();
    // What every command knows is in each of them then.
    all.build();
    let (command, name) = meant(&all, argv);
    let refused = Refused {
        error,
        argv,
        command,
        name: &name,
    };
    let said = refused.in_words();
    Error::Usage(match said.ends_with('?') {
        true => said,
        false => format!("{said}; see `{name} --help`"),
    })
}

/// The command that a line means, as far as it names one, and how a person writes it.
fn meant<'a>(all: &'a Command, argv: &[OsString]) -> (&'a Command, String) {
    let mut command = all;
    let mut name = all.get_name().to_owned();
    let mut words = argv.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix("--") {
            if option_of(command, option).is_some_and(|arg| arg.get_action().takes_values()) {
                words.next();
            }
        } else if let Some(below) = command.find_subcommand(word.as_ref()) {
            command = below;
            name = format!("{name} {word}");
        } else if !word.starts_with('-') {
            break;
        }
    }
    (command, name)
}

fn option_of<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut all = command.get_arguments();
    all.find(|arg| arg.get_long() == Some(name))
}

/// A command line that could not be read.
struct Refused<'a> {
    error: &'a clap::Error,
    argv: &'a [OsString],
    /// The command that was meant.
    command: &'a Command,
    /// As a person writes it.
    name: &'a str,
}

impl Refused<'_> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser may have more kinds, and its first line says what they are"
    )]
    fn in_words(&self) -> String {
        let name = self.name;
        let what = self.word(ContextKind::InvalidArg);
        let value = self.word(ContextKind::InvalidValue);
        match self.error.kind() {
            ErrorKind::UnknownArgument => self.unknown(&what),
            ErrorKind::InvalidSubcommand => {
                let word = self.word(ContextKind::InvalidSubcommand);
                let nearest = self.nearest(ContextKind::SuggestedSubcommand);
                format!("`{name}` has no command `{word}`{nearest}")
            }
            ErrorKind::InvalidValue => {
                let all = self.all(ContextKind::ValidValue);
                let nearest = self.nearest(ContextKind::SuggestedValue);
                match (value.is_empty(), all.is_empty()) {
                    (true, true) => format!("`{what}` needs a value"),
                    (true, false) => format!("`{what}` needs a value: {}", all.join(", ")),
                    (false, _) => {
                        let all = all.join(", ");
                        format!("`{what}` cannot be `{value}`, it is one of: {all}{nearest}")
                    }
                }
            }
            ErrorKind::ValueValidation => {
                let why = self.error.source().map(ToString::to_string);
                let why = why.unwrap_or_else(|| "it cannot be read".to_owned());
                format!("`{what}` cannot be `{value}`: {why}")
            }
            ErrorKind::MissingRequiredArgument => {
                let missing = self.all(ContextKind::InvalidArg);
                format!("`{name}` needs {}", missing.join(" and "))
            }
            ErrorKind::ArgumentConflict => {
                let other = self.word(ContextKind::PriorArg);
                match other == what || other.is_empty() {
                    true => format!("`{what}` can be given once"),
                    false => format!("`{what}` and `{other}` exclude each other"),
                }
            }
            ErrorKind::InvalidUtf8 => {
                let unreadable = self.argv.iter().find(|word| word.to_str().is_none());
                let word = unreadable.map(|word| shown(&word.to_string_lossy()));
                format!("`{}` is not valid UTF-8", word.unwrap_or_default())
            }
            _ => {
                let text = self.error.render().to_string();
                let text = text.lines().next().unwrap_or_default();
                shown(text.strip_prefix("error: ").unwrap_or(text))
            }
        }
    }

    fn unknown(&self, what: &str) -> String {
        let name = self.name;
        if !what.starts_with('-') {
            let behind = self.command.get_positionals().find(|arg| arg.is_last_set());
            return match behind {
                Some(arg) => format!("`{name}` takes `{what}` behind `--` alone, as {arg}"),
                None => format!("`{name}` takes no `{what}`; text with spaces goes in quotes"),
            };
        }
        let nearest = self.nearest(ContextKind::SuggestedArg);
        if !nearest.is_empty() {
            return format!("`{name}` has no option `{what}`{nearest}");
        }
        let way = match self.option_before(what) {
            Some((option, word)) => {
                format!("; if it is what `{option}` says, write `{option}={word}`")
            }
            None if self.takes_text() => format!("; if it is text, write `-- {what}`"),
            None => String::new(),
        };
        format!("`{name}` has no option `{what}`{way}")
    }

    /// The option right before the word that was taken for options, and that word.
    fn option_before(&self, what: &str) -> Option<(String, String)> {
        let words = || self.argv.iter().map(|word| word.to_string_lossy());
        let short = what.starts_with('-') && !what.starts_with("--");
        let is_it = |word: &str| word == what || short && word.starts_with(what);
        let (option, word) = words().zip(words().skip(1)).find(|(_, word)| is_it(word))?;
        let known = option
            .strip_prefix("--")
            .and_then(|name| option_of(self.command, name));
        known.filter(|arg| arg.get_action().takes_values())?;
        Some((shown(&option), shown(&word)))
    }

    fn takes_text(&self) -> bool {
        self.error.get(ContextKind::Suggested).is_some()
    }

    /// The likeliest stands last.
    fn nearest(&self, kind: ContextKind) -> String {
        match self.all(kind).last() {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => String::new(),
        }
    }

    fn word(&self, kind: ContextKind) -> String {
        self.all(kind).into_iter().next().unwrap_or_default()
    }

    fn all(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(word)) => vec![shown(word)],
            Some(ContextValue::Strings(words)) => words.iter().map(|word| shown(word)).collect(),
            _ => Vec::new(),
        }
    }
}

/// A word in one line, no longer than it helps.
pub(crate) fn shown(word: &str) -> String {
    let visible = word.replace(char::is_control, " ");
    match visible.char_indices().nth(MAX_WORD) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}

#[cfg(test)]
mod tests;
