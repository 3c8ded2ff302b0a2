//! NEXUS: keeps a team of agents working.
pub mod agent;
pub mod grammar;
pub mod machine;
pub mod meters;
pub mod name;
