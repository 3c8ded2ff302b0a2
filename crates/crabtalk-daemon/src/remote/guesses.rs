//! Wrong tokens, by address: each costs whoever shows it more time.
//!
//! Invariants: a token that is right is never slowed down, since many people may
//! come from one address; what is remembered is bounded; nobody fills the log.

use crabtalk_transport::Source;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long the first wrong token is thought about, doubling with each.
const FIRST: Duration = Duration::from_millis(100);

/// Doublings. Beyond them the connection's own time is over first.
const MOST: u32 = 6;

/// After so long without another one an address is forgotten.
const FORGET: Duration = Duration::from_secs(600);

/// Addresses remembered. When there are more, those that were silent for longest
/// are forgotten: a guess costs no less for it than the first one does.
const ADDRESSES: usize = 1024;

/// What came from where.
#[derive(Default)]
pub(crate) struct Guesses(Mutex<HashMap<Source, Guessed>>);

#[derive(Clone, Copy)]
struct Guessed {
    count: u32,
    last: Instant,
}

/// What a wrong token comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// How many came from there.
    pub(crate) count: u32,
    /// How long it has to wait for its answer.
    pub(crate) wait: Duration,
    /// Whether it is to be told to the log: each of the first, then ever fewer.
    pub(crate) tell: bool,
}

impl Guesses {
    pub(crate) fn wrong(&self, from: Source) -> Wrong {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ADDRESSES && !all.contains_key(&from) {
            all.retain(|_, guessed| now - guessed.last < FORGET);
            let oldest = all.iter().min_by_key(|(_, g)| g.last).map(|(s, _)| *s);
            if let Some(oldest) = oldest
                && all.len() >= ADDRESSES
            {
                all.remove(&oldest);
            }
        }
        let guessed = all.entry(from).or_insert(Guessed {
            count: 0,
            last: now,
        });
        if now - guessed.last >= FORGET {
            guessed.count = 0;
        }
        guessed.count = guessed.count.saturating_add(1);
        guessed.last = now;
        Wrong {
            count: guessed.count,
            wait: FIRST * 2_u32.pow((guessed.count - 1).min(MOST)),
            tell: guessed.count.is_power_of_two(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> Source {
        Source::Address(std::net::Ipv4Addr::from_bits(n).into())
    }

    #[tokio::test(start_paused = true)]
    async fn each_guess_of_an_address_costs_more_and_others_pay_nothing_for_it() {
        let guesses = Guesses::default();
        let waits: Vec<u128> = (0..9)
            .map(|_| guesses.wrong(address(1)).wait.as_millis())
            .collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 6400, 6400]);
        assert_eq!(guesses.wrong(address(2)).wait, FIRST);
        tokio::time::sleep(FORGET).await;
        assert_eq!(guesses.wrong(address(1)).count, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_and_told_is_bounded() {
        let guesses = Guesses::default();
        let told = (0..1000).filter(|_| guesses.wrong(address(0)).tell).count();
        assert_eq!(told, 10);
        for n in 1..5000 {
            guesses.wrong(address(n));
        }
        assert!(guesses.0.lock().unwrap().len() <= ADDRESSES);
    }
}
