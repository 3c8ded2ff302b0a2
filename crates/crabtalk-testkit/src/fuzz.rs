//! Fuzzing on the stable toolchain: saved inputs and random mutations.
//!
//! Invariants: every run tries all saved inputs; mutations run for the duration
//! given by [`time`], in an order that depends only on the seed, so that a
//! result is reproducible; a failure prints its seed and its minimised input,
//! to be saved with the others.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::panic::{RefUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Environment variable with the seconds of mutations per target.
const SECONDS: &str = "CRABTALK_FUZZ_SECS";

/// Default seconds: short enough for a test among hundreds.
const DEFAULT_SECONDS: f64 = 0.3;

/// Environment variable with the seed; 1 by default.
const SEED: &str = "CRABTALK_FUZZ_SEED";

/// Maximum mutations of one input.
const MAX_EDITS: usize = 16;

/// Maximum steps of minimising a failing input.
const MAX_SHRINKS: u32 = 2_000;

/// Longest generated input: beyond the limits of targets for lines
/// and names, short enough for thousands of attempts per second.
const MAX_BYTES: usize = 64 * 1024;

/// Fragments to insert in addition to an input's own bytes: the syntax of
/// parsed formats.
const WORDS: [&[u8]; 16] = [
    b"\n",
    b"\r\n",
    b"\n\n",
    b"---\n",
    b": ",
    b"data: ",
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"&a *a",
    b"18446744073709551616",
];

/// A mutation: position, kind, length and fragment.
type Edit = (u16, u8, u8, u8);

/// The duration of mutations for a target.
pub fn time() -> Duration {
    let seconds = std::env::var(SECONDS)
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::try_from_secs_f64(seconds.unwrap_or(DEFAULT_SECONDS)).unwrap_or_default()
}

/// Runs the saved inputs of a folder, then mutations of them.
///
/// # Panics
/// An input makes `target` panic, or the folder has no saved inputs.
pub fn fuzz(folder: impl AsRef<Path>, target: impl Fn(&[u8]) + RefUnwindSafe) {
    let saved = load(folder.as_ref());
    for input in &saved {
        tried(&target, input);
    }
    let seed = number(SEED).unwrap_or(1);
    let mut runner = runner(seed);
    let inputs = (any::<u8>(), vec(any::<Edit>(), 0..=MAX_EDITS));
    let end = Instant::now() + time();
    while Instant::now() < end {
        let one = inputs.new_tree(&mut runner).expect("nothing is filtered");
        let input = |(which, edits): (u8, Vec<Edit>)| {
            changed(&saved[usize::from(which) % saved.len()], &edits)
        };
        let result = runner.run_one(one, |change| {
            target(&input(change));
            Ok(())
        });
        match result {
            Ok(_) => {}
            Err(TestError::Fail(why, change)) => {
                let input = input(change);
                panic!(
                    "{why}\nwith {SEED}={seed}, on b\"{}\"",
                    input.escape_ascii()
                );
            }
            Err(TestError::Abort(why)) => panic!("{why}"),
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A deterministic generator of inputs.
fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: MAX_SHRINKS,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn load(folder: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("no saved inputs in {}: {error}", folder.display()));
    let mut paths: Vec<_> = files.flatten().map(|file| file.path()).collect();
    paths.sort();
    let saved: Vec<_> = paths
        .iter()
        .filter_map(|path| std::fs::read(path).ok())
        .collect();
    assert!(!saved.is_empty(), "no saved inputs in {}", folder.display());
    saved
}

fn tried(target: &(impl Fn(&[u8]) + RefUnwindSafe), input: &[u8]) {
    if let Err(failure) = catch_unwind(|| target(input)) {
        #[expect(clippy::print_stderr, reason = "it is the result of a failed test")]
        {
            eprintln!("the input was b\"{}\"", input.escape_ascii());
        }
        resume_unwind(failure);
    }
}

fn changed(input: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for (at, which, much, what) in edits {
        let at = usize::from(*at) % (bytes.len() + 1);
        let end = (at + usize::from(*much)).min(bytes.len());
        match which % 6 {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.insert(at, *what),
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= what;
                }
            }
            3 => {
                let word = WORDS[usize::from(*what) % WORDS.len()];
                bytes.splice(at..at, word.iter().copied());
            }
            4 => {
                // Copies a part to another position, perhaps repeatedly.
                let part = bytes[at..end].repeat(1 + usize::from(*what) / 16);
                let to = usize::from(*what).wrapping_mul(257) % (bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            _ => bytes.truncate(at),
        }
        bytes.truncate(MAX_BYTES);
    }
    bytes
}
