//! Components as a person starts them: as processes, and beside programs of others.

mod others;
mod rig;
mod serve;
