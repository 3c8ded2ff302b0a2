//! NEXUS: keeps a team of agents working.
pub mod agent;
pub mod config;
pub mod grammar;
pub mod machine;
pub mod mail;
pub mod meters;
pub mod name;
pub mod rules;
pub mod texts;
pub mod waits;
pub mod world;
