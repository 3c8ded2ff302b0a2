//! NEXUS as a whole, with agents that are doubles.

mod crash;
mod double;
mod rig;
