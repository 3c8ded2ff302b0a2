//! NEXUS: keeps a team of agents working, and can say why it did what it did.
//!
//! ```text
//! backend      the port between NEXUS and an agent
//! terminal     agents in windows of tmux, behind that port
//! name         names and topics
//! grammar      the message line: read, printed, passed on
//! texts        what NEXUS says, word for word
//! agent        what is known of an agent
//! meters       what is measured of it, and when compression is due
//! machine      its states: what happened in, what is to be done out
//! mail         letters and mailboxes
//! rules        which prompts are allowed, refused, or asked
//! waits        who waits for whom, and how often two write to each other
//! world        the whole team, pure
//! journal      the log of events, from which a restart begins
//! clock        what time it is
//! files        identities, contexts, protocols, and commits of them
//! supervisor   one loop around the world: written down, then done
//! daemon       an agent of the daemon, behind the port
//! absent       an agent that cannot be driven here
//! control      the way of commands to a NEXUS that runs
//! config       config/nexus.toml
//! start        puts it together
//! board        the team on a terminal, and keys for it
//! cli          the command line
//! ```
//!
//! Invariants: what is done stands in the log first; the machine and the world
//! do nothing themselves; which kind of agent it is shows in no state.
//!
//! Absent on purpose: what a run is (the daemon).

#![expect(
    missing_docs,
    reason = "a program: what is public is so for its own tests"
)]

pub mod absent;
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
pub mod rules;
pub mod start;
pub mod supervisor;
pub mod terminal;
pub mod texts;
pub mod waits;
pub mod world;
