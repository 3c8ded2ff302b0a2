//! Connections that are lost for a while: that of the run in front, and that on
//! which all else is heard.
//!
//! Invariant: it is said once that they were lost, however many there are.

/// A connection of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Run,
    Rest,
}

/// Which of them are lost.
#[derive(Debug, Default)]
pub(super) struct Outage {
    run: Option<String>,
    rest: Option<String>,
    said: bool,
}

impl Outage {
    fn of(&mut self, heard: Heard) -> &mut Option<String> {
        match heard {
            Heard::Run => &mut self.run,
            Heard::Rest => &mut self.rest,
        }
    }

    /// Why something is not heard now.
    pub(super) fn why(&self) -> Option<&str> {
        self.run.as_deref().or(self.rest.as_deref())
    }

    pub(super) fn lost(&mut self, heard: Heard, why: String) {
        *self.of(heard) = Some(why);
    }

    /// It is taken up; whether that is still to be said.
    pub(super) fn back(&mut self, heard: Heard) -> bool {
        let say = self.of(heard).is_some() && !self.said;
        self.said |= say;
        self.over(heard);
        say
    }

    /// It is not waited for any more.
    pub(super) fn over(&mut self, heard: Heard) {
        *self.of(heard) = None;
        self.said &= self.why().is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_said_once_and_the_next_one_again() {
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
