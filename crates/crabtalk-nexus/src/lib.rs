//! NEXUS: keeps a team of agents working.
pub mod grammar;
pub mod name;
