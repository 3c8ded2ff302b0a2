//! One field of an expression: a set of small numbers.

/// A set of numbers from 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    pub(super) fn has(self, number: u8) -> bool {
        number < 64 && self.0 & (1 << number) != 0
    }

    fn insert(&mut self, number: u8) {
        self.0 |= 1 << number;
    }

    /// The least number that is at least `from`.
    pub(super) fn first_from(self, from: u8) -> Option<u8> {
        let rest = self.0.checked_shr(from.into()).unwrap_or(0);
        // A shift by 64 is not allowed.
        (rest != 0).then(|| from + rest.trailing_zeros() as u8)
    }

    /// The greatest number that is at most `until`.
    pub(super) fn last_until(self, until: u8) -> Option<u8> {
        let below = self.0 & (u64::MAX >> 63_u8.saturating_sub(until));
        (below != 0).then(|| 63 - below.leading_zeros() as u8)
    }

    pub(super) fn is_full(self, field: &Field) -> bool {
        (field.first..=field.last.min(field.last_named)).all(|number| self.has(number))
    }

    /// Replaces 7 by 0, both of which are Sunday.
    pub(super) fn sunday_once(mut self) -> Self {
        if self.has(7) {
            self.insert(0);
            self.0 &= !(1 << 7);
        }
        self
    }
}

/// The values of a field.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) allowed: &'static str,
    first: u8,
    last: u8,
    /// The last number that is not an alias of the first.
    last_named: u8,
    /// Names of the numbers, beginning with `first`.
    names: &'static [&'static str],
}

pub(super) const MINUTES: Field = Field {
    name: "minute",
    allowed: "0 to 59, *, lists (0,30), ranges (10-20) and steps (*/15)",
    first: 0,
    last: 59,
    last_named: 59,
    names: &[],
};

pub(super) const HOURS: Field = Field {
    name: "hour",
    allowed: "0 to 23, *, lists (9,17), ranges (9-17) and steps (*/2)",
    first: 0,
    last: 23,
    last_named: 23,
    names: &[],
};

pub(super) const DAYS: Field = Field {
    name: "day",
    allowed: "1 to 31, *, lists (1,15), ranges (1-7) and steps (*/2)",
    first: 1,
    last: 31,
    last_named: 31,
    names: &[],
};

pub(super) const MONTHS: Field = Field {
    name: "month",
    allowed: "1 to 12, jan to dec, *, lists (1,7), ranges (jun-aug) and steps (*/3)",
    first: 1,
    last: 12,
    last_named: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};

pub(super) const WEEKDAYS: Field = Field {
    name: "weekday",
    allowed: "0 to 7 (0 and 7 are Sunday), sun to sat, *, lists (1,3), ranges (mon-fri) and steps (*/2)",
    first: 0,
    last: 7,
    last_named: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Field {
    /// Parses a field; the error is a message.
    pub(super) fn parse(&self, text: &str) -> Result<Set, String> {
        let mut set = Set::default();
        for part in text.split(',') {
            self.part(part, &mut set)?;
        }
        Ok(set)
    }

    fn part(&self, part: &str, set: &mut Set) -> Result<(), String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.first, self.last_named),
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            None => {
                let number = self.number(range)?;
                (number, number)
            }
        };
        if first > last {
            return Err(format!("{range} goes backwards"));
        }
        let step = match step {
            None => 1,
            Some(_) if first == last => {
                return Err(format!(
                    "{part} has a step without a range: write {range}-{}/..",
                    self.last_named
                ));
            }
            Some(text) => text
                .parse::<u8>()
                .ok()
                .filter(|step| (1..=self.last).contains(step) && is_number(text))
                .ok_or_else(|| {
                    format!("the step {text:?} must be a number from 1 to {}", self.last)
                })?,
        };
        (first..=last)
            .step_by(step.into())
            .for_each(|number| set.insert(number));
        Ok(())
    }

    fn number(&self, text: &str) -> Result<u8, String> {
        let named = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            Some(at) => Some(self.first + at as u8),
            None if is_number(text) => text.parse().ok(),
            None => None,
        };
        match number {
            Some(number) if (self.first..=self.last).contains(&number) => Ok(number),
            _ if text.is_empty() => Err("a value is missing".into()),
            _ => Err(format!("{text:?} is not a valid value")),
        }
    }
}

/// Whether a text has only digits; the integer parser also accepts `+1`.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
