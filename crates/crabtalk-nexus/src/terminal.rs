//! Agents in windows of tmux, behind the port of `crabtalk-nexus`.
//!
//! ```text
//! tmux        one server: windows, looks, keys, hooks, the client in control mode
//! kind        what is known of each kind of agent, as data
//! transcript  what an agent writes down, read as it grows
//! hook        what an agent's hooks write, read as it grows
//! processes   everything that an agent started, ended
//! terminals   all agents of a server
//! agent       one agent: calls in, events out
//! ```
//!
//! Whether something happened is decided by the best evidence that a kind
//! offers: a hook, then the transcript, then the bell, then the screen; each event
//! says which it was. Invariants: no key is typed but into a screen that was just
//! looked at and has not changed since; a message counts as arrived when it stands
//! in the transcript; whatever is started ends with its agent, also what left
//! its window.
//!
//! Absent on purpose: states, mail, rules of approval. Configuration and the home
//! come as values; no environment is read.

mod agent;
mod error;
mod hook;
mod kind;
mod processes;
mod server;
mod terminals;
mod tmux;
mod transcript;

pub use agent::{Sandbox, Spec, Terminal};
pub use error::Error;
pub use kind::{
    BUILT_IN, Commands, Composer, Compress, CursorAt, HookNames, Kind, KindFile, Kinds, Pattern,
    Place, PromptRule, Ready,
};
pub use server::Settings;
pub use terminals::Terminals;
pub use transcript::Form;

#[cfg(test)]
mod tests;
