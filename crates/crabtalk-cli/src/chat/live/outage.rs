//! Lost connections: that of the front run and that of other events.
//!
//! Invariant: each outage is reported once.

/// A connection of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Run,
    Rest,
}

/// The lost connections and their errors.
#[derive(Debug, Default)]
pub(super) struct Outage {
    lost: [Option<String>; 2],
    said: bool,
}

impl Outage {
    /// The error of a lost connection.
    pub(super) fn why(&self) -> Option<&str> {
        self.lost.iter().flatten().next().map(String::as_str)
    }

    pub(super) fn lost(&mut self, heard: Heard, why: String) {
        self.lost[heard as usize] = Some(why);
    }

    /// Records that a connection is restored; returns whether to report it.
    pub(super) fn back(&mut self, heard: Heard) -> bool {
        let say = self.lost[heard as usize].is_some() && !self.said;
        self.said |= say;
        self.over(heard);
        say
    }

    /// Records that a connection is no longer needed.
    pub(super) fn over(&mut self, heard: Heard) {
        self.lost[heard as usize] = None;
        self.said &= self.why().is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outage_is_reported_once() {
        let mut outage = Outage::default();
        assert!(!outage.back(Heard::Rest), "nothing was lost");
        for _ in 0..2 {
            outage.lost(Heard::Run, "cut".into());
            outage.lost(Heard::Rest, "reset".into());
            assert_eq!(outage.why(), Some("cut"));
            assert!(outage.back(Heard::Run));
            assert_eq!(outage.why(), Some("reset"));
            assert!(!outage.back(Heard::Rest), "it was said");
            assert_eq!(outage.why(), None);
        }
        outage.lost(Heard::Run, "cut".into());
        outage.over(Heard::Run);
        assert_eq!(outage.why(), None);
    }
}
