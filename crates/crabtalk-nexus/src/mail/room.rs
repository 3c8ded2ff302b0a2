//! Limits of a mailbox.
//!
//! Invariant: a mailbox that is full of other mail has room for NEXUS's own
//! reports to ADMIN, which are bounded as well.

use super::{Letter, Mailbox};
use crate::name::Name;

/// Maximum letters in one mailbox; a full one was not read for days.
const MAX_LETTERS: usize = 1000;

/// Maximum bytes in one mailbox: some hundred long letters. Longer texts belong
/// into files.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Additional letters of NEXUS, about failures.
const OWN_LETTERS: usize = 200;

/// Additional bytes for them.
const OWN_BYTES: usize = 1024 * 1024;

impl Mailbox {
    /// Whether the mailbox has room for another letter of this size; `is_own` marks a letter of
    /// NEXUS.
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
