//! How long a server may take for what it does, and how often it is asked.

use std::time::Duration;

/// The beats of a server's life.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long a handshake over HTTP may take.
    pub connect: Duration,
    /// How long a program's may: it may have to be fetched first.
    pub start: Duration,
    /// How long a list of tools may take.
    pub list: Duration,
    /// How often a server is asked for a sign of life (COMP-1).
    pub ping: Duration,
    /// How long that sign may take.
    pub answer: Duration,
    /// How often one that hangs is asked.
    pub hanging: Duration,
    /// Between two lists of a server that says again and again that its tools
    /// changed.
    pub changes: Duration,
    /// The first pause after a failure, and the longest.
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
            changes: Duration::from_secs(1),
            pause: (Duration::from_millis(250), Duration::from_secs(60)),
        }
    }
}
