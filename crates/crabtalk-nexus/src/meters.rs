//! Measurements of an agent's session, and when compression is due.

use crate::clock::Ms;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Number of last turns in which invalid outputs are counted.
const FORM_TURNS: usize = 10;

/// Bytes of the transcript since the last compression that make a compression due.
const TRANSCRIPT_BYTES: u64 = 2_000_000;

/// Used part of the model's window, in percent, that makes it due; and that makes it urgent.
const TOKENS_PERCENT: u64 = 66;
const URGENT_PERCENT: u64 = 85;

/// Age of the session in hours and number of turns that, both together, make it due.
const AGE_HOURS: u64 = 8;
const TURNS: u64 = 50;

/// Number of invalid outputs that make it due: they suggest that the context is too long.
const FORMAT_ERRORS: usize = 3;

/// Measurements since the session began or was compressed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meters {
    pub since: Ms,
    pub turns: u64,
    /// Tokens of the last request.
    pub tokens: Option<u64>,
    /// The model's context window in tokens.
    pub window: Option<u64>,
    pub transcript_bytes: Option<u64>,
    /// Whether each of the last turns had an invalid output.
    pub form: VecDeque<bool>,
}

/// The reason why compression is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub why: String,
    /// Whether compression precedes mail that is not urgent.
    pub urgent: bool,
}

impl Meters {
    /// Resets the measurements when a session begins or was compressed.
    pub fn begin(&mut self, now: Ms) {
        *self = Self {
            since: now,
            window: self.window,
            ..Self::default()
        };
    }

    /// Records the end of a turn.
    pub fn turn(&mut self, bad_form: bool) {
        self.turns += 1;
        if self.form.len() >= FORM_TURNS {
            self.form.pop_front();
        }
        self.form.push_back(bad_form);
    }

    /// The used part of the window in percent.
    pub fn percent(&self) -> Option<u64> {
        let window = self.window.filter(|window| *window > 0)?;
        Some(self.tokens?.saturating_mul(100) / window)
    }

    pub fn due(&self, now: Ms) -> Option<Due> {
        let percent = self.percent();
        let urgent = percent.is_some_and(|percent| percent >= URGENT_PERCENT);
        let why = self.why(now, percent)?;
        Some(Due { why, urgent })
    }

    fn why(&self, now: Ms, percent: Option<u64>) -> Option<String> {
        if let Some(percent) = percent.filter(|percent| *percent >= TOKENS_PERCENT) {
            return Some(format!("{percent} % of the context window is used"));
        }
        if let Some(bytes) = self.transcript_bytes.filter(|b| *b >= TRANSCRIPT_BYTES) {
            return Some(format!("the transcript has grown by {bytes} bytes"));
        }
        let hours = now.saturating_sub(self.since) / 3_600_000;
        if hours >= AGE_HOURS && self.turns >= TURNS {
            let turns = self.turns;
            return Some(format!(
                "the session is {hours} hours and {turns} turns old"
            ));
        }
        let errors = self.form.iter().filter(|bad| **bad).count();
        (errors >= FORMAT_ERRORS).then(|| format!("{errors} of its last outputs had no valid form"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(meters: &Meters, now: Ms) -> Option<String> {
        meters.due(now).map(|due| due.why)
    }

    #[test]
    fn each_threshold_makes_compression_due() {
        assert_eq!(due(&Meters::default(), 0), None);
        let of_tokens = |tokens| Meters {
            tokens: Some(tokens),
            window: Some(1000),
            ..Meters::default()
        };
        assert_eq!(due(&of_tokens(659), 0), None);
        assert!(!of_tokens(660).due(0).unwrap().urgent);
        assert!(of_tokens(850).due(0).unwrap().urgent);
        let bytes = Meters {
            transcript_bytes: Some(2_000_000),
            ..Meters::default()
        };
        assert!(due(&bytes, 0).unwrap().contains("transcript"));
        let old = Meters {
            turns: 50,
            ..Meters::default()
        };
        let hours = 8 * 3_600_000;
        assert_eq!(due(&old, hours - 1), None);
        assert!(due(&old, hours).unwrap().contains("8 hours"));
        assert_eq!(due(&Meters::default(), hours), None, "few turns");
    }

    #[test]
    fn degradation_is_invalid_output() {
        let mut meters = Meters::default();
        (0..2).for_each(|_| meters.turn(true));
        assert_eq!(due(&meters, 0), None);
        meters.turn(true);
        assert!(due(&meters, 0).unwrap().contains("form"));
        (0..10).for_each(|_| meters.turn(false));
        assert_eq!(due(&meters, 0), None, "the errors are long ago");
        meters.begin(7);
        assert_eq!(meters.turns, 0);
    }
}
