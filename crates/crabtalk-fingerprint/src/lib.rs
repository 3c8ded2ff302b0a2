//! Tells whether files are as they were when something was made from them, so
//! that a turn need not read them again.
//!
//! [`Fingerprint::take`] belongs on a thread that may wait for a disk.
//! [`Fingerprint::holds`] may be asked on any: a fingerprint is given out for
//! files on local disks only, where asking takes about a microsecond a file.

mod fingerprint;

pub use fingerprint::{Fingerprint, Trace};
