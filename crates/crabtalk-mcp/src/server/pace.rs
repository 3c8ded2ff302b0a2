//! Timeouts and intervals of a server's task.

use std::time::Duration;

/// Timeouts and intervals.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Timeout of a handshake over HTTP.
    pub connect: Duration,
    /// Timeout of a program's handshake; the program may have to be downloaded first.
    pub start: Duration,
    /// Timeout of a list of tools.
    pub list: Duration,
    /// Interval of pings (COMP-1).
    pub ping: Duration,
    /// Timeout of a ping.
    pub answer: Duration,
    /// Interval of pings while the server does not answer them.
    pub hanging: Duration,
    /// Minimum interval between two lists of a server that announces changes of its tools.
    pub changes: Duration,
    /// The first delay after a failure, and the longest.
    pub pause: (Duration, Duration),
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            start: Duration::from_secs(60),
            list: Duration::from_secs(15),
            ping: Duration::from_secs(30),
            answer: Duration::from_secs(10),
            hanging: Duration::from_secs(5),
            changes: Duration::from_secs(5),
            pause: (Duration::from_millis(250), Duration::from_secs(60)),
        }
    }
}
