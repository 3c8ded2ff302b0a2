//! Who waits for whom: urgent messages that are not answered yet, and the
//! circles among them; and how often two names write to each other.

use crate::clock::Ms;
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Messages of a pair within a minute, both ways: people write slower, and
/// programs that need more should write a file.
pub const PER_MINUTE: usize = 10;

/// Messages that led to one another: what takes more goes in a circle.
pub const MAX_DEPTH: u32 = 8;

const MINUTE_MS: Ms = 60_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Waits(BTreeMap<Name, BTreeSet<Name>>);

impl Waits {
    /// `from` asked `to` urgently. The circle that this closes, if it does,
    /// beginning with `from`.
    pub fn ask(&mut self, from: &Name, to: &Name) -> Option<Vec<Name>> {
        let is_new = self.0.entry(from.clone()).or_default().insert(to.clone());
        if !is_new {
            return None;
        }
        let mut path = vec![from.clone()];
        let mut seen = BTreeSet::new();
        self.find(to, from, &mut path, &mut seen).then_some(path)
    }

    /// `from` wrote to `to`, whatever: `to` does not wait for it any more.
    pub fn answer(&mut self, from: &Name, to: &Name) {
        if let Some(of) = self.0.get_mut(to) {
            of.remove(from);
            if of.is_empty() {
                self.0.remove(to);
            }
        }
    }

    /// For whom somebody waits.
    pub fn of(&self, name: &Name) -> impl Iterator<Item = &Name> {
        self.0.get(name).into_iter().flatten()
    }

    fn find(
        &self,
        at: &Name,
        goal: &Name,
        path: &mut Vec<Name>,
        seen: &mut BTreeSet<Name>,
    ) -> bool {
        if at == goal {
            return true;
        }
        if !seen.insert(at.clone()) {
            return false;
        }
        path.push(at.clone());
        let found = self.of(at).any(|next| self.find(next, goal, path, seen));
        if !found {
            path.pop();
        }
        found
    }
}

/// How often pairs write to each other. Forgotten when NEXUS ends: it is a
/// bound on a rate.
#[derive(Debug, Clone, Default)]
pub struct Rates(BTreeMap<(Name, Name), Vec<Ms>>);

impl Rates {
    /// Whether another message of the pair is within bounds; it is counted then.
    pub fn allows(&mut self, a: &Name, b: &Name, now: Ms) -> bool {
        let pair = if a < b { (a, b) } else { (b, a) };
        let times = self.0.entry((pair.0.clone(), pair.1.clone())).or_default();
        times.retain(|at| now.saturating_sub(*at) < MINUTE_MS);
        if times.len() >= PER_MINUTE {
            return false;
        }
        times.push(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_circle_of_waiting_is_found_with_its_members_and_told_once() {
        let mut waits = Waits::default();
        assert_eq!(waits.ask(&name("a"), &name("b")), None);
        assert_eq!(waits.ask(&name("b"), &name("c")), None);
        assert_eq!(waits.ask(&name("b"), &name("d")), None);
        let circle = waits.ask(&name("c"), &name("a")).unwrap();
        assert_eq!(circle, [name("c"), name("a"), name("b")]);
        assert_eq!(waits.ask(&name("c"), &name("a")), None);
    }

    #[test]
    fn an_answer_ends_waiting() {
        let mut waits = Waits::default();
        waits.ask(&name("a"), &name("b"));
        waits.answer(&name("b"), &name("a"));
        assert_eq!(waits.ask(&name("b"), &name("a")), None);
        assert_eq!(waits, {
            let mut other = Waits::default();
            other.ask(&name("b"), &name("a"));
            other
        });
    }

    #[test]
    fn a_pair_has_ten_messages_a_minute() {
        let mut rates = Rates::default();
        let (a, b) = (name("a"), name("b"));
        for at in 0..10 {
            assert!(rates.allows(&a, &b, at * 1000));
        }
        assert!(!rates.allows(&b, &a, 10_000));
        assert!(rates.allows(&a, &name("c"), 10_000));
        assert!(rates.allows(&b, &a, 60_000));
    }
}
