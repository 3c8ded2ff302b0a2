//! The wall clock as a port, so that tests decide what time it is.

use jiff::Timestamp;

/// Tells the wall-clock time. Timers use the async runtime's own clock.
pub trait Clock: Send + Sync + 'static {
    /// Now, as an instant in UTC.
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
