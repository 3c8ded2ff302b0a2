//! The runtime on doubles, seen from outside.

mod guests;
mod rig;
mod runs;
