//! Cron expressions: five fields and @names.
//!
//! Invariants: a valid expression names at least one existing minute; an error
//! names the field and the allowed values.

mod field;

use field::{DAYS, Field, HOURS, MINUTES, MONTHS, Set, WEEKDAYS};
use jiff::civil::{Date, DateTime};
use std::fmt;

/// Longest expression: sixty minutes in a list, and the same for each field.
const MAX_BYTES: usize = 512;

/// Years to search: there are at most eight between leap days.
const YEARS: i16 = 9;

/// Why an expression is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadExpression {
    /// The expression does not have five fields.
    #[error(
        "a schedule has five fields (minute hour day month weekday), and {text:?} has {found}; or it is one of {NAMES}"
    )]
    Fields {
        /// The whole expression.
        text: String,
        /// Number of fields.
        found: usize,
    },
    /// The name after `@` is unknown.
    #[error("there is no {name}: {hint}")]
    Name {
        /// The name with its `@`, possibly shortened.
        name: String,
        /// A suggestion, or all names.
        hint: String,
    },
    /// A field is not valid.
    #[error("the {field} field: {problem}; allowed are {allowed}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// The error.
        problem: String,
        /// The allowed values, in words.
        allowed: &'static str,
    },
    /// All fields are valid but no date matches them, as with February 30.
    #[error("{0:?} never fires: none of its months has such a day")]
    Never(String),
    /// The expression is too long.
    #[error("a schedule has at most {MAX_BYTES} bytes")]
    TooLong,
}

const NAMES: &str = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly";

/// A parsed schedule with its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Expression {
    text: String,
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
}

impl Expression {
    /// Parses five fields or an @name.
    ///
    /// # Errors
    ///
    /// The error names the allowed values.
    pub fn parse(text: &str) -> Result<Self, BadExpression> {
        if text.len() > MAX_BYTES {
            return Err(BadExpression::TooLong);
        }
        let text = text.trim();
        let spelled = if text.starts_with('@') {
            spelled_out(text)?
        } else {
            text
        };
        let fields: Vec<&str> = spelled.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(BadExpression::Fields {
                text: text.to_owned(),
                found: fields.len(),
            });
        };
        let read = |field: &Field, text: &str| {
            field.parse(text).map_err(|problem| BadExpression::Field {
                field: field.name,
                problem,
                allowed: field.allowed,
            })
        };
        let expression = Self {
            text: text.to_owned(),
            minutes: read(&MINUTES, minute)?,
            hours: read(&HOURS, hour)?,
            days: read(&DAYS, day)?,
            months: read(&MONTHS, month)?,
            weekdays: read(&WEEKDAYS, weekday)?.sunday_once(),
        };
        if expression.never() {
            return Err(BadExpression::Never(text.to_owned()));
        }
        Ok(expression)
    }

    /// Whether it matches every hour, and so follows elapsed time.
    pub(crate) fn is_hourly(&self) -> bool {
        self.hours.is_full(&HOURS)
    }

    /// If both are restricted, a matching weekday or day of the month suffices.
    fn names_weekdays(&self) -> bool {
        !self.weekdays.is_full(&WEEKDAYS)
    }

    fn never(&self) -> bool {
        const LONGEST: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let either = self.names_weekdays() && !self.days.is_full(&DAYS);
        let first = self.days.first_from(1).unwrap_or(u8::MAX);
        !either
            && !(1..=12)
                .any(|month: u8| self.months.has(month) && first <= LONGEST[usize::from(month) - 1])
    }

    fn has_day(&self, date: Date) -> bool {
        let day = self.days.has(date.day().unsigned_abs());
        let weekday = date.weekday().to_sunday_zero_offset().unsigned_abs();
        let weekday = self.weekdays.has(weekday);
        let all_days = self.days.is_full(&DAYS);
        match (all_days, self.names_weekdays()) {
            (_, false) => day,
            (true, true) => weekday,
            (false, true) => day || weekday,
        }
    }

    /// The first matching minute at or after `from`.
    pub(crate) fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        // Within a minute, the next minute is the first candidate.
        let begun = from.second() > 0 || from.subsec_nanosecond() > 0;
        let until = from.date().year().saturating_add(YEARS);
        let mut date = from.date();
        let mut hour = from.hour().unsigned_abs();
        let mut minute = from.minute().unsigned_abs() + u8::from(begun);
        while date.year() < until {
            if !self.months.has(date.month().unsigned_abs()) {
                date = date.last_of_month().tomorrow().ok()?;
                (hour, minute) = (0, 0);
                continue;
            }
            if self.has_day(date)
                && let Some((hour, minute)) = self.time_from(hour, minute)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            (hour, minute) = (0, 0);
        }
        None
    }

    fn time_from(&self, hour: u8, minute: u8) -> Option<(i8, i8)> {
        let found = |hour: u8, minute: u8| (hour.cast_signed(), minute.cast_signed());
        if self.hours.has(hour)
            && let Some(minute) = self.minutes.first_from(minute)
        {
            return Some(found(hour, minute));
        }
        let hour = self.hours.first_from(hour + 1)?;
        Some(found(hour, self.minutes.first_from(0)?))
    }

    /// The last matching minute at or before `from`.
    pub(crate) fn at_or_before(&self, from: DateTime) -> Option<DateTime> {
        let until = from.date().year().saturating_sub(YEARS);
        let mut date = from.date();
        let mut hour = from.hour().unsigned_abs();
        let mut minute = from.minute().unsigned_abs();
        while date.year() > until {
            if !self.months.has(date.month().unsigned_abs()) {
                date = date.first_of_month().yesterday().ok()?;
                (hour, minute) = (23, 59);
                continue;
            }
            if self.has_day(date)
                && let Some((hour, minute)) = self.time_until(hour, minute)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.yesterday().ok()?;
            (hour, minute) = (23, 59);
        }
        None
    }

    fn time_until(&self, hour: u8, minute: u8) -> Option<(i8, i8)> {
        let found = |hour: u8, minute: u8| (hour.cast_signed(), minute.cast_signed());
        if self.hours.has(hour)
            && let Some(minute) = self.minutes.last_until(minute)
        {
            return Some(found(hour, minute));
        }
        let hour = self.hours.last_until(hour.checked_sub(1)?)?;
        Some(found(hour, self.minutes.last_until(59)?))
    }
}

/// The expression of an @name.
fn spelled_out(name: &str) -> Result<&'static str, BadExpression> {
    let lower = name.to_ascii_lowercase();
    let hint = match lower.as_str() {
        "@yearly" | "@annually" => return Ok("0 0 1 1 *"),
        "@monthly" => return Ok("0 0 1 * *"),
        "@weekly" => return Ok("0 0 * * 0"),
        "@daily" | "@midnight" => return Ok("0 0 * * *"),
        "@hourly" => return Ok("0 * * * *"),
        "@reboot" => "entries cannot fire at the start of the daemon".to_owned(),
        every if every.starts_with("@every") => {
            "write */10 * * * * for every ten minutes, 0 */2 * * * for every two hours".to_owned()
        }
        _ => format!("there are {NAMES}"),
    };
    Err(BadExpression::Name {
        name: name.chars().take(32).collect(),
        hint,
    })
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests;
