//! Counters of events since the start of this program.
//!
//! Invariant: the number of labels is bounded; beyond [`MAX_NAMES`] names share one.

use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of agents and of tools with separate counters.
const MAX_NAMES: usize = 200;

/// The label of further names.
const OTHERS: &str = "(others)";

/// Upper bounds of the duration histogram, in seconds.
pub(crate) const BOUNDS: [f64; 8] = [1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0];

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Done,
    Failed,
    Killed,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "error",
            Self::Killed => "cancelled",
        }
    }
}

/// The histogram of durations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    /// Number of runs within each of [`BOUNDS`].
    pub(crate) within: [u64; BOUNDS.len()],
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

/// All counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// Ended runs, by agent and outcome.
    pub(crate) runs: BTreeMap<(String, Outcome), u64>,
    /// Durations of runs, by agent.
    pub(crate) times: BTreeMap<String, Times>,
    /// Ended tool calls, by tool and whether they failed.
    pub(crate) tools: BTreeMap<(String, bool), u64>,
    /// Questions and approval requests.
    pub(crate) asks: u64,
    pub(crate) compactions: u64,
    /// Lost events, by which the other counters may be too low.
    pub(crate) missed: u64,
}

/// A name, or the label of further names.
fn bounded(name: &str, is_known: bool, known: usize) -> &str {
    match is_known || known < MAX_NAMES {
        true => name,
        false => OTHERS,
    }
}

impl Figures {
    pub(crate) fn run_ended(&mut self, agent: &str, outcome: Outcome, took: Option<Duration>) {
        let agent = bounded(agent, self.times.contains_key(agent), self.times.len()).to_owned();
        *self.runs.entry((agent.clone(), outcome)).or_default() += 1;
        let times = self.times.entry(agent).or_default();
        let Some(took) = took else { return };
        times.count += 1;
        times.seconds += took.as_secs_f64();
        for (bound, within) in BOUNDS.iter().zip(&mut times.within) {
            *within += u64::from(took.as_secs_f64() <= *bound);
        }
    }

    pub(crate) fn tool_ended(&mut self, tool: &str, failed: bool) {
        let is_known = [false, true]
            .iter()
            .any(|failed| self.tools.contains_key(&(tool.to_owned(), *failed)));
        let tool = bounded(tool, is_known, self.tools.len()).to_owned();
        *self.tools.entry((tool, failed)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_in_every_bound_that_it_kept() {
        let mut figures = Figures::default();
        figures.run_ended("crab", Outcome::Done, Some(Duration::from_secs(20)));
        figures.run_ended("crab", Outcome::Failed, None);
        let times = &figures.times["crab"];
        assert_eq!(times.within, [0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(times.count, 1);
        assert_eq!(figures.runs[&("crab".to_owned(), Outcome::Failed)], 1);
    }

    #[test]
    fn names_without_end_are_counted_together() {
        let mut figures = Figures::default();
        for number in 0..MAX_NAMES * 3 {
            figures.run_ended(&format!("a{number}"), Outcome::Done, None);
            figures.tool_ended(&format!("t{number}"), false);
        }
        assert_eq!(figures.times.len(), MAX_NAMES + 1);
        assert_eq!(figures.tools.len(), MAX_NAMES + 1);
        assert!(figures.runs[&(OTHERS.to_owned(), Outcome::Done)] > 300);
    }
}
