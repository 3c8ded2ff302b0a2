//! How much mail may wait.
//!
//! Invariant: a mailbox that others filled has room left for what NEXUS itself has
//! to say to ADMIN, which is bounded as well.

use super::{Letter, Mailbox};
use crate::name::Name;

/// Letters in one mailbox: more means that it was not read for days.
const MAX_LETTERS: usize = 1000;

/// Bytes in one mailbox, which are some hundred long letters: what is longer belongs
/// into a file.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Further letters of NEXUS, about failures.
const OWN_LETTERS: usize = 200;

/// Their bytes.
const OWN_BYTES: usize = 1024 * 1024;

impl Mailbox {
    /// Whether the mailbox has room for another letter of so many bytes, one of NEXUS's own
    /// or not.
    pub fn has_room(&self, to: &Name, bytes: usize, is_own: bool) -> bool {
        let theirs = self.letters.values().filter(|letter| letter.mail.to == *to);
        let sum = |(count, bytes), letter: &Letter| (count + 1, bytes + letter.mail.body.len());
        let (letters, bytes) = theirs.fold((0, bytes), sum);
        let (more_letters, more_bytes) = match is_own {
            false => (0, 0),
            true => (OWN_LETTERS, OWN_BYTES),
        };
        letters < MAX_LETTERS + more_letters && bytes <= MAX_BYTES + more_bytes
    }
}
