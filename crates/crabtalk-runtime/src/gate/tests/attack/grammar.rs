//! Commands of all of bash's syntax, by a seed.

mod pieces;

use pieces::*;

/// Random numbers that come again with their seed (SplitMix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below an usize")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A word for the print alone: quotes, globs, odd characters.
    pub(super) fn quoted_word(&mut self) -> String {
        let mut word = String::new();
        for _ in 0..1 + self.below(3) {
            let inner: String = (0..self.below(5)).map(|_| self.one(CHARACTERS)).collect();
            match self.below(4) {
                0 => word.push_str(&format!("'{}'", inner.replace('\'', ""))),
                1 => word.push_str(&format!("\"{inner}\"")),
                2 => word.push_str(self.one(&["*", "?", "[ab]", "sub/", "a", "--x=", "~", "#"])),
                _ => word.push_str(&inner),
            }
        }
        word
    }
}

/// A command of any syntax.
pub(super) fn command(dice: &mut Dice) -> String {
    let depth = 1 + dice.below(3);
    let mut text = expand(dice, "A", depth);
    for _ in 0..[0, 0, 0, 1, 1, 2, 4][dice.below(7)] {
        let at = text.floor_char_boundary(dice.below(text.len() + 1));
        match dice.below(3) {
            0 | 1 => text.insert_str(at, dice.one(NOISE)),
            _ if at < text.len() => drop(text.remove(at)),
            _ => {}
        }
    }
    text
}

/// Replaces the letters of a template.
fn expand(dice: &mut Dice, template: &str, depth: usize) -> String {
    let mut out = String::new();
    for c in template.chars() {
        match c {
            'A' if depth == 0 => out.push_str(dice.one(SIMPLE)),
            'A' if dice.below(3) == 0 => out.push_str(dice.one(SIMPLE)),
            'A' => {
                let template = dice.one(COMMANDS);
                out.push_str(&expand(dice, template, depth - 1));
            }
            'W' if depth == 0 => out.push_str(dice.one(&["a", "O", "b.rs", "sub", "-x", "''"])),
            'W' => {
                let template = dice.one(WORDS);
                out.push_str(&expand(dice, template, depth - 1));
            }
            'T' => out.extend((0..dice.below(6)).map(|_| dice.one(CHARACTERS))),
            c => out.push(c),
        }
    }
    out
}

/// A script for one of them.
fn script(dice: &mut Dice) -> String {
    let text: String = (0..2 + dice.below(12)).map(|_| dice.one(SCRIPT)).collect();
    match dice.below(3) {
        // A whole exchange, with something behind it.
        0 => format!("s|{}|{};s,|{},a,", dice.one(SCRIPT), dice.one(SCRIPT), text),
        _ => text,
    }
}

/// A program with options, to be run for real.
pub(super) fn options(dice: &mut Dice) -> String {
    let mut text = String::new();
    for at in 0..=[0, 0, 0, 1][dice.below(4)] {
        if at > 0 {
            text.push_str(dice.one(&[" | ", "; ", " && ", " || "]));
        }
        let reader = dice.one(READERS);
        text.push_str(reader);
        let scripted = matches!(reader, "sed" | "awk");
        for _ in 0..dice.below(5) {
            let mut word = match scripted && dice.below(2) == 0 {
                true => script(dice),
                false => dice.one(ARGUMENTS).to_owned(),
            };
            // Abbreviations and bundles.
            if word.starts_with("--") && dice.below(4) == 0 {
                let name = word.find('=').unwrap_or(word.len());
                let cut = 3.max(dice.below(name.max(1)));
                if cut < name {
                    word.replace_range(cut..name, "");
                }
            }
            if word.starts_with('-') && !word.starts_with("--") && dice.below(4) == 0 {
                word.push_str(dice.one(&["n", "o", "O", "e", "f", "x", "u", "1"]));
            }
            let glob = word.contains('*') && dice.below(2) == 0;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-=./_".contains(c);
            text.push(' ');
            if glob || word.chars().all(plain) {
                text.push_str(&word);
            } else {
                text.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
            }
        }
    }
    text
}
