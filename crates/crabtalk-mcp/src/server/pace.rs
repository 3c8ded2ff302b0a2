//! How long a server may take for what it does, and how often it is asked.

use std::time::Duration;
use tokio::time::Instant;

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
    /// changed: at first, and at most. It grows while that goes on, and begins anew
    /// when the longest pause has passed in silence.
    pub changes: (Duration, Duration),
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
            changes: (Duration::from_secs(1), Duration::from_secs(60)),
            pause: (Duration::from_millis(250), Duration::from_secs(60)),
        }
    }
}

/// When a server that announces changes is asked for its tools next.
pub(super) struct Lists {
    first: Duration,
    longest: Duration,
    /// Until the list after the next one.
    pause: Duration,
    pub(super) next: Instant,
    is_told: bool,
}

impl Lists {
    /// The first is read as soon as it is announced.
    pub(super) fn new(pace: &Pace) -> Self {
        let (first, longest) = pace.changes;
        Self {
            first,
            longest,
            pause: first,
            next: Instant::now(),
            is_told: false,
        }
    }

    /// An announcement is looked at. Says how rarely the next ones are, where that is
    /// news worth telling.
    pub(super) fn looked(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if now.saturating_duration_since(self.next) >= self.longest {
            (self.pause, self.is_told) = (self.first, false);
        }
        self.next = now + self.pause;
        let is_news = self.pause >= self.longest && !self.is_told;
        self.is_told |= is_news;
        self.pause = (self.pause * 2).min(self.longest);
        is_news.then_some(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, sleep_until};

    #[tokio::test(start_paused = true)]
    async fn announcements_without_end_are_looked_at_ever_more_rarely() {
        let mut lists = Lists::new(&Pace::default());
        let (mut looks, mut told) = (0, Vec::new());
        let until = Instant::now() + Duration::from_secs(3600);
        while Instant::now() < until {
            // Announced each second, so that one always waits.
            sleep_until(lists.next).await;
            looks += 1;
            told.extend(lists.looked());
        }
        assert!((60..70).contains(&looks), "{looks} lists in an hour");
        assert_eq!(told, [Duration::from_secs(60)], "told once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_after_silence_is_looked_at_at_once_and_few_are_soon() {
        let mut lists = Lists::new(&Pace::default());
        let waits = |lists: &Lists| lists.next.saturating_duration_since(Instant::now());
        for want in [1, 2, 4, 8, 16, 32, 60, 60] {
            sleep_until(lists.next).await;
            lists.looked();
            assert_eq!(waits(&lists), Duration::from_secs(want));
        }
        advance(Duration::from_secs(120)).await;
        assert_eq!(waits(&lists), Duration::ZERO);
        assert_eq!(lists.looked(), None);
        assert_eq!(waits(&lists), Duration::from_secs(1));
    }
}
