//! Goes through the arguments of a program by its row.
//!
//! Invariant: an option that is not listed word for word is not harmless;
//! abbreviations and letters in bundles that are not listed are none either.

use super::Checked;
use crate::gate::plain::Word;
use crate::gate::programs::{Kind, Program, lists};
use std::sync::LazyLock;

/// Of which nothing is harmless that a rule does not spell out.
static NOTHING: LazyLock<Program> = LazyLock::new(Program::default);

/// What is left when the options are gone.
#[derive(Default)]
pub(super) struct Rest<'w> {
    /// Operands, with their places among the arguments.
    pub(super) operands: Vec<(usize, &'w Word)>,
    pub(super) options: Vec<(String, Option<String>)>,
    /// Words after `--`; operands too, unless the program hands them on.
    pub(super) after: Vec<(usize, &'w Word)>,
    /// The subcommand whose arguments these are.
    pub(super) subcommand: Option<String>,
}

impl Program {
    /// Goes through the arguments, those of a subcommand by its own row, and
    /// looks at all that the rows say of them. The first `spelled` ones are
    /// spelled out by the rule, so that they need not be known. The error is the
    /// word that is not harmless.
    pub(super) fn listed<'w>(&self, args: &'w [Word], spelled: usize) -> Result<Rest<'w>, String> {
        let rest = self.walk(args, spelled)?;
        self.admit(&rest, spelled)?;
        if !self.tells.is_empty() {
            self.script(&rest)?;
        }
        if let (Some(row), Some((at, _))) = (&self.after, rest.after.first()) {
            row.listed(&args[*at..], spelled.saturating_sub(*at))?;
        }
        match self.has_subcommands() {
            true => self.below(rest, args, spelled),
            false => Ok(rest),
        }
    }

    /// Looks at operands, and at the values of options.
    fn admit(&self, rest: &Rest<'_>, spelled: usize) -> Checked {
        let after = rest.after.iter().filter(|_| !self.stops());
        let mut operands = rest.operands.iter().chain(after);
        let odd =
            |(at, word): &&(usize, &Word)| *at >= spelled && !self.operand.admit(&word.text());
        if let Some((_, word)) = operands.find(odd) {
            return Err(word.text());
        }
        for (names, words) in &self.value {
            if let Some(odd) = rest.values(names).find(|value| !words.admit(value)) {
                return Err(odd.to_owned());
            }
        }
        Ok(())
    }

    /// A script that is named, or an option that only tells something.
    fn script(&self, rest: &Rest<'_>) -> Checked {
        let told = |(name, _): &(String, Option<String>)| lists(&self.tells, name);
        match rest.words().next() {
            Some((_, script)) if script.text() != "-" && !script.has_glob() => Ok(()),
            Some((_, other)) => Err(other.text()),
            None if rest.options.iter().any(told) => Ok(()),
            None => Err("no script".into()),
        }
    }

    /// Looks at a subcommand and what follows it.
    fn below<'w>(
        &self,
        rest: Rest<'w>,
        args: &'w [Word],
        spelled: usize,
    ) -> Result<Rest<'w>, String> {
        let Some((at, sub)) = rest.operands.first() else {
            // Some programs take a subcommand behind `--` as well.
            return match rest.after.iter().find(|(at, _)| *at >= spelled) {
                Some((_, word)) => Err(word.text()),
                None => Ok(rest),
            };
        };
        let name = sub.text();
        let row = match self.subcommand(&name) {
            Some(row) if row.kind == Kind::Listed && !sub.has_glob() => row,
            // A rule that names it means it; its options nobody knows.
            _ if *at < spelled => &NOTHING,
            _ => return Err(name),
        };
        let spelled = spelled.saturating_sub(at + 1);
        let mut rest = row.listed(&args[at + 1..], spelled)?;
        if let Some((at, word)) = rest.words().next()
            && *at >= spelled
            && !row.first.is_empty()
            && !lists(&row.first, &word.text())
        {
            return Err(word.text());
        }
        rest.subcommand = Some(name);
        Ok(rest)
    }

    /// Tells options and operands apart.
    fn walk<'w>(&self, args: &'w [Word], spelled: usize) -> Result<Rest<'w>, String> {
        let mut rest = Rest::default();
        let mut unsure = false;
        let mut words = args.iter().enumerate();
        while let Some((at, word)) = words.next() {
            let text = word.text();
            if text == "--" && !self.one_dash {
                rest.after = words.collect();
                break;
            }
            if !word.sure_start().starts_with('-') || text == "-" {
                rest.operands.push((at, word));
                if self.stops() {
                    // It may be the value of an option that is not known.
                    if unsure && at >= spelled {
                        return Err(text);
                    }
                    rest.after = words.collect();
                    return Ok(rest);
                }
                continue;
            }
            match self.option(word, &text) {
                Some((name, Value::Next)) => {
                    let value = words.next();
                    // Should the list be wrong about the value, an option
                    // that takes its place is none that anybody looked at.
                    if let Some((at, value)) = value
                        && value.sure_start().starts_with('-')
                        && value.text() != "-"
                        && at >= spelled
                    {
                        return Err(value.text());
                    }
                    rest.options
                        .push((name, value.map(|(_, word)| word.text())));
                }
                Some((name, Value::Here(value))) => rest.options.push((name, value)),
                None if at < spelled => unsure = true,
                None => return Err(text),
            }
        }
        if let Some(most) = self.most_operands
            && (rest.words().count() > most || rest.words().any(|(_, word)| word.has_glob()))
        {
            let last = args.last().map(Word::text);
            return Err(last.unwrap_or_default());
        }
        Ok(rest)
    }

    /// The name of a listed option, and where its value is.
    fn option(&self, word: &Word, text: &str) -> Option<(String, Value)> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        // What a glob yields must not change which option it is.
        if word.has_glob() && !word.sure_start().contains('=') {
            return None;
        }
        let dashes = if self.one_dash { "-" } else { "--" };
        if let Some(long) = name.strip_prefix(dashes)
            && let Some(listed) = self.long(long)
        {
            let takes = listed.ends_with('=') && value.is_none();
            let value = if takes {
                Value::Next
            } else {
                Value::Here(value)
            };
            return Some((name.to_owned(), value));
        }
        if text.starts_with("--") || self.one_dash {
            return None;
        }
        let letters = text.strip_prefix('-')?;
        for (at, letter) in letters.char_indices() {
            let tail = &letters[at + letter.len_utf8()..];
            if self.values.contains(letter) {
                let value = match tail {
                    "" => Value::Next,
                    tail => Value::Here(Some(tail.to_owned())),
                };
                return Some((format!("-{letter}"), value));
            }
            if self.attached.contains(letter) {
                return Some((format!("-{letter}"), Value::Here(Some(tail.to_owned()))));
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some((text.to_owned(), Value::Here(None)))
    }

    fn long(&self, name: &str) -> Option<&str> {
        let mut listed = self.long.split_ascii_whitespace();
        listed.find(|long| long.strip_suffix('=').unwrap_or(long) == name)
    }
}

enum Value {
    Here(Option<String>),
    Next,
}

impl<'w> Rest<'w> {
    /// Everything that is no option.
    pub(super) fn words(&self) -> impl Iterator<Item = &(usize, &'w Word)> {
        self.operands.iter().chain(&self.after)
    }

    /// The values of options, whose names are separated by blanks.
    pub(super) fn values<'a>(&'a self, names: &'a str) -> impl Iterator<Item = &'a str> {
        let of = |(name, _): &&(String, Option<String>)| lists(names, name);
        let value = |(_, value): &'a (String, Option<String>)| value.as_deref();
        self.options.iter().filter(of).filter_map(value)
    }
}
