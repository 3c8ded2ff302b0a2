//! NEXUS: supervises a team of agents, and logs the reason for each step.
//!
//! ```text
//! backend      the port between NEXUS and an agent
//! terminal     agents in tmux windows, implementing that port
//! name         names and topics
//! grammar      message lines: parsed and formatted
//! texts        the exact messages of NEXUS
//! agent        the state of an agent
//! meters       measurements of a session, and when compression is due
//! machine      the state machine of an agent
//! mail         letters and mailboxes
//! rules        which prompts are allowed, denied or asked
//! rates        limits on messages between agents
//! world        the whole team as a pure state machine
//! journal      the log of events, from which NEXUS restarts
//! clock        the clock of NEXUS
//! files        identities, contexts, protocols, and commits of them
//! supervisor   the loop around the world: logs, then acts
//! daemon       an agent of the daemon, implementing the port
//! control      the socket for commands
//! config       config/nexus.toml
//! start        composes NEXUS
//! board        the live view of the team, with keys
//! cli          the command line
//! ```
//!
//! Invariants: every action is logged before it is done; machine and world do no I/O;
//! states do not depend on the kind of agent; only the daemon knows what a run does.

#![expect(
    missing_docs,
    reason = "a program: what is public is so for its own tests"
)]

pub mod agent;
pub mod backend;
pub mod board;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod daemon;
pub mod files;
pub mod grammar;
pub mod journal;
pub mod machine;
pub mod mail;
pub mod meters;
pub mod name;
pub mod rates;
pub mod rules;
pub mod start;
pub mod supervisor;
pub mod terminal;
pub mod texts;
pub mod world;
