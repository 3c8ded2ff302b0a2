//! Detects a run that repeats the same call (MODEL-7).
//!
//! Invariant: a call with other arguments or another result resets the count, so that
//! repeating a check between changes is not a loop.

use super::Calls;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of equal calls with equal results that ends a run; further repetitions do not
/// help a model.
pub(super) const REPEATS: u32 = 5;

/// Maximum number of different calls to remember.
const MAX_KNOWN: usize = 4096;

/// The calls of a run so far.
#[derive(Default)]
pub(super) struct Repeats {
    known: HashSet<u64>,
    /// For each call, the steps that made it since the last new call.
    counts: HashMap<u64, u32>,
}

impl Repeats {
    /// Adds the calls of a step; returns the tool that is called repeatedly.
    pub(super) fn find(&mut self, step: &Calls) -> Option<String> {
        let mut found = None;
        let mut seen = HashSet::new();
        for (call, result) in step.calls.iter().zip(&step.results) {
            let Some(result) = result else { continue };
            let mut hasher = DefaultHasher::new();
            call.name.hash(&mut hasher);
            // White space and the order of keys are ignored.
            match serde_json::from_str::<serde_json::Value>(&call.arguments) {
                Ok(arguments) => arguments.to_string().hash(&mut hasher),
                Err(_) => call.arguments.hash(&mut hasher),
            }
            result.content.hash(&mut hasher);
            result.images.hash(&mut hasher);
            let signature = hasher.finish();
            if self.known.len() >= MAX_KNOWN {
                self.known.clear();
            }
            if self.known.insert(signature) {
                self.counts.clear();
                found = None;
            }
            // Repetition within one step counts once.
            if !seen.insert(signature) {
                continue;
            }
            let count = self.counts.entry(signature).or_default();
            *count += 1;
            if *count >= REPEATS {
                found.get_or_insert_with(|| call.name.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::{Message, ToolCall};
    use std::sync::Arc;

    /// Runs steps of calls, each as `tool arguments result`; returns the step at which the
    /// run ends, and the tool.
    fn check(steps: &[&[&str]]) -> Option<(usize, String)> {
        let mut repeats = Repeats::default();
        steps.iter().enumerate().find_map(|(at, step)| {
            let parts = step.iter().map(|call| call.splitn(3, ' '));
            let (calls, results) = parts
                .map(|mut part| {
                    let mut next = || part.next().unwrap_or_default().to_owned();
                    let call = ToolCall {
                        name: next(),
                        arguments: next(),
                        ..ToolCall::default()
                    };
                    let result = Message::tool(String::new(), next(), false);
                    (call, Some(Arc::new(result)))
                })
                .unzip();
            repeats
                .find(&Calls { calls, results })
                .map(|tool| (at + 1, tool))
        })
    }

    #[test]
    fn fifth_equal_call_is_a_loop() {
        let same: &[&str] = &["read {\"a\":1,\"b\":2} x"];
        let spaced: &[&str] = &["read {\"b\":2,\"a\":1} x"];
        assert_eq!(
            check(&[same, spaced, same, spaced, same]),
            Some((5, "read".to_owned()))
        );
        assert_eq!(check(&[same; 4]), None);
    }

    #[test]
    fn different_results_are_not_a_loop() {
        let results: Vec<String> = (0..20).map(|i| format!("poll {{}} {i}")).collect();
        let steps: Vec<[&str; 1]> = results.iter().map(|r| [r.as_str()]).collect();
        let steps: Vec<&[&str]> = steps.iter().map(|s| s.as_slice()).collect();
        assert_eq!(check(&steps), None);
    }

    #[test]
    fn checks_between_changes_are_not_a_loop() {
        let edits: Vec<String> = (0..10).map(|i| format!("edit {{\"n\":{i}}} ok")).collect();
        let mut steps: Vec<[&str; 1]> = Vec::new();
        for edit in &edits {
            steps.push([edit.as_str()]);
            steps.push(["test {} failed"]);
        }
        let steps: Vec<&[&str]> = steps.iter().map(|s| s.as_slice()).collect();
        assert_eq!(check(&steps), None);
    }

    #[test]
    fn alternating_calls_are_a_loop() {
        let turn: Vec<&[&str]> = (0..12)
            .map(|i| -> &[&str] {
                if i % 2 == 0 { &["a {} x"] } else { &["b {} y"] }
            })
            .collect();
        let (_, tool) = check(&turn).expect("a circle");
        assert!(tool == "a" || tool == "b");
        assert_eq!(check(&[&["a {} x"; 10]]), None);
    }
}
