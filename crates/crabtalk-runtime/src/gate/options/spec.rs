//! Goes through the arguments of a program whose harmless options are known.
//!
//! Invariant: an option that is not listed word for word is not harmless;
//! abbreviations and letters in bundles that are not listed are none either.

use crate::gate::bash::plain::Word;

/// The options of a program, or of one of its subcommands, that are known to
/// do nothing but what a rule for the program means.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    /// Letters without a value; digits stand for `-5`.
    flags: &'static str,
    /// Letters with a value, attached or the next word.
    values: &'static str,
    /// Letters whose value, if any, is attached.
    attached: &'static str,
    /// Long options, separated by blanks. `name=` takes the next word as its
    /// value where none is attached, `name` takes only an attached one.
    long: &'static str,
    /// Whether long options have one dash, and nothing is bundled.
    one_dash: bool,
    /// Whether the first operand ends the options.
    stops: bool,
    /// Most operands: of some programs a later one is a file that is written.
    operands: usize,
}

/// What is left when the options are gone.
#[derive(Default)]
pub(super) struct Rest<'w> {
    /// Operands, with their places among the arguments.
    pub(super) operands: Vec<(usize, &'w Word)>,
    /// Options and their values.
    pub(super) options: Vec<(String, Option<String>)>,
    /// Words after `--`; operands too, unless the program hands them on.
    pub(super) after: Vec<&'w Word>,
}

impl Spec {
    /// Of these letters, and long options.
    pub(super) const fn new(flags: &'static str, values: &'static str, long: &'static str) -> Self {
        Self {
            flags,
            values,
            attached: "",
            long,
            one_dash: false,
            stops: false,
            operands: usize::MAX,
        }
    }

    pub(super) const fn attached(mut self, letters: &'static str) -> Self {
        self.attached = letters;
        self
    }

    pub(super) const fn one_dash(mut self) -> Self {
        self.one_dash = true;
        self
    }

    pub(super) const fn stops(mut self) -> Self {
        self.stops = true;
        self
    }

    pub(super) const fn operands(mut self, most: usize) -> Self {
        self.operands = most;
        self
    }

    /// Goes through the arguments; the first `spelled` ones are spelled out by
    /// the rule, so that their options need not be known. The error is the
    /// word that is not harmless.
    pub(super) fn walk<'w>(&self, args: &'w [Word], spelled: usize) -> Result<Rest<'w>, String> {
        let mut rest = Rest::default();
        let mut unsure = false;
        let mut words = args.iter().enumerate();
        while let Some((at, word)) = words.next() {
            let text = word.text();
            if text == "--" && !self.one_dash {
                rest.after = words.map(|(_, word)| word).collect();
                break;
            }
            if !word.sure_start().starts_with('-') || text == "-" {
                rest.operands.push((at, word));
                if self.stops {
                    // It may be the value of an option that is not known.
                    if unsure && at >= spelled {
                        return Err(text);
                    }
                    rest.after = words.map(|(_, word)| word).collect();
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
        let operands = rest.operands.iter().map(|(_, word)| *word);
        let globs = operands.chain(rest.after.iter().copied());
        let several = self.operands < usize::MAX && globs.clone().any(Word::has_glob);
        if several || globs.count() > self.operands {
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

    fn long(&self, name: &str) -> Option<&'static str> {
        let mut listed = self.long.split_ascii_whitespace();
        listed.find(|long| long.strip_suffix('=').unwrap_or(long) == name)
    }
}

enum Value {
    Here(Option<String>),
    Next,
}

impl Rest<'_> {
    /// Everything that is no option.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let operands = self.operands.iter().map(|(_, word)| *word);
        operands.chain(self.after.iter().copied()).map(Word::text)
    }

    /// The values of an option.
    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let of = |(name, _): &&(String, Option<String>)| names.contains(&name.as_str());
        let value = |(_, value): &'a (String, Option<String>)| value.as_deref();
        self.options.iter().filter(of).filter_map(value)
    }
}
