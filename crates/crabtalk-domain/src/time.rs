//! The port for the wall clock, which tests replace.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// The wall clock. Timers use the clock of the async runtime.
pub trait Clock: Send + Sync + 'static {
    /// The current instant in UTC.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Formats an instant for logs and lists: RFC 3339 in UTC, to the millisecond.
pub fn stamp(at: Timestamp) -> String {
    const MILLIS: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    let mut text = String::with_capacity("2026-01-01T00:00:00.000Z".len());
    MILLIS
        .print_timestamp(&at, &mut text)
        .expect("a string takes everything");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_milliseconds() {
        let stamp_of = |nanos| stamp(Timestamp::from_nanosecond(nanos).expect("in range"));
        assert_eq!(stamp_of(0), "1970-01-01T00:00:00.000Z");
        let nanos = 1_763_760_000_123_999_999;
        assert_eq!(stamp_of(nanos), "2025-11-21T21:20:00.123Z");
    }
}
