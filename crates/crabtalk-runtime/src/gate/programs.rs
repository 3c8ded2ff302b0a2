//! What is known of programs: the rows of `programs.toml`, read once.
//!
//! A row answers two questions about an option. Rules that allow ask whether it
//! is known to be harmless; rules that refuse ask whether it is known to run or
//! write something. What is in neither list is refused by the first and passes
//! the second.

use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// What a program is for, as far as the gate cares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Its row says which arguments are harmless.
    #[default]
    Listed,
    /// What it runs is in its arguments, its input or a file.
    Shell,
    /// A builtin that changes what later commands mean, or evaluates text.
    Builtin,
    /// Its arguments hold another command. `coproc` and `!` are words of the
    /// shell, but no program of that name may hide a command behind `xargs`.
    Wrapper,
    /// Editors, pagers of last resort and debuggers with a shell of their own.
    Editor,
    /// It may run or change anything, in ways that are not looked into.
    Other,
}

/// A row: a program, one of its subcommands, or what follows `--`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Program {
    #[serde(rename = "is")]
    pub(super) kind: Kind,
    /// The subcommand whose options this one has too.
    like: Option<String>,
    /// Harmless letters without a value; digits stand for `-5`.
    pub(super) flags: String,
    /// Harmless letters with a value, attached or the next word.
    pub(super) values: String,
    /// Harmless letters whose value, if any, is attached.
    pub(super) attached: String,
    /// Harmless long options, separated by blanks. `name=` takes the next word
    /// as its value where none is attached, `name` takes only an attached one.
    pub(super) long: String,
    /// Whether long options have one dash, and nothing is bundled.
    pub(super) one_dash: bool,
    /// Whether the first operand ends the options.
    stops: bool,
    /// Most operands: of some programs a later one is a file that is written.
    pub(super) most_operands: Option<usize>,
    /// Which operands are harmless.
    pub(super) operand: Words,
    /// Of some options, which values are harmless.
    pub(super) value: BTreeMap<String, Words>,
    /// Operands that may come first; any where none is listed.
    pub(super) first: String,
    /// Of a program that reads a script where none is named: options with which
    /// it only tells something.
    pub(super) tells: String,
    /// What its arguments need beside this row.
    pub(super) check: Option<Check>,
    /// What may follow `--`.
    pub(super) after: Option<Box<Program>>,
    #[serde(rename = "sub")]
    subcommands: BTreeMap<String, Program>,
    /// Options and words that run or write something; `*` for whatever comes.
    pub(super) runs: String,
    /// Letters that do so within a bundle of short options.
    pub(super) runs_letters: String,
    /// Whether the first argument may be a bundle without a dash.
    pub(super) bare_bundle: bool,
    /// Whether operands that are not harmless run something.
    pub(super) runs_operands: bool,
    /// Whether it expands what it is given once more.
    pub(super) evaluates: bool,
    /// Of an interpreter: letters of short options after which program text
    /// may follow.
    pub(super) program_text: String,
    /// Of a wrapper: whether an operand of its own precedes the command.
    pub(super) operand_first: bool,
    /// Of a wrapper: whether it joins its words, or one of them, to shell text.
    pub(super) joins_words: bool,
    /// Of a wrapper: whether it adds words to the command.
    pub(super) adds_words: bool,
    /// Of a wrapper: whether it may run what is not among its arguments.
    pub(super) hides: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Words {
    /// Words that are, whatever else is said.
    fine: String,
    /// What they have to begin with.
    starts: String,
    /// Characters that they must not begin with.
    never_starts: String,
    /// Texts that they must not contain.
    without: Vec<String>,
}

/// A language of arguments that no row describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Check {
    Awk,
    Cargo,
    Cd,
    Compiler,
    Curl,
    Find,
    Git,
    Printf,
    Rsync,
    Sed,
    Sqlite,
    Tar,
    Test,
}

/// The file: names of each kind, and rows by names that are separated by blanks.
#[derive(Deserialize)]
struct Table {
    groups: BTreeMap<Kind, String>,
    #[serde(flatten)]
    programs: BTreeMap<String, Program>,
}

static PROGRAMS: LazyLock<HashMap<String, Program>> = LazyLock::new(|| {
    let table: Table =
        toml::from_str(include_str!("programs.toml")).expect("the table is part of the program");
    let mut programs = HashMap::new();
    for (names, row) in table.programs {
        let row = row.filled();
        for name in names.split_ascii_whitespace() {
            let twice = programs.insert(name.to_owned(), row.clone());
            debug_assert!(twice.is_none(), "{name} has two rows");
        }
    }
    for (kind, names) in table.groups {
        for name in names.split_ascii_whitespace() {
            programs.entry(name.to_owned()).or_default().kind = kind;
        }
    }
    programs
});

/// What is known of a program, by its name without a folder. A version at the
/// end of the name counts for nothing: `python3.12` is `python`.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    [name, bare].into_iter().find_map(|name| PROGRAMS.get(name))
}

/// Whether a list whose entries are separated by blanks holds a word.
pub(super) fn lists(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

impl Program {
    /// The row of a subcommand.
    pub(super) fn subcommand(&self, name: &str) -> Option<&Self> {
        let mut rows = self.subcommands.iter();
        rows.find(|(names, _)| lists(names, name))
            .map(|(_, row)| row)
    }

    pub(super) fn has_subcommands(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// Whether the first operand ends the options.
    pub(super) fn stops(&self) -> bool {
        self.stops || self.has_subcommands() || !self.tells.is_empty()
    }

    /// With the options that subcommands have of others.
    fn filled(self) -> Self {
        let with = |row: &Self| {
            let Some(like) = &row.like else {
                return row.clone();
            };
            let other = self.subcommand(like).expect("`like` names a row beside it");
            Self {
                flags: other.flags.clone(),
                values: other.values.clone(),
                attached: other.attached.clone(),
                long: other.long.clone(),
                one_dash: other.one_dash,
                ..row.clone()
            }
        };
        let rows = self.subcommands.iter();
        let subcommands = rows
            .map(|(names, row)| (names.clone(), with(row)))
            .collect();
        Self {
            subcommands,
            ..self
        }
    }
}

impl Words {
    pub(super) fn admit(&self, word: &str) -> bool {
        let odd = word.starts_with(|c| self.never_starts.contains(c))
            || self.without.iter().any(|part| word.contains(part));
        lists(&self.fine, word) || (word.starts_with(&self.starts) && !odd)
    }
}
