//! Agents in windows of tmux, behind the port of `crabtalk-nexus`.
//!
//! ```text
//! tmux        one server: windows, screens, keys
//! kind        the properties of each kind of agent, as data
//! transcript  transcripts of agents, read as they grow
//! processes   ends all processes of an agent
//! terminals   all agents of a server
//! agent       one agent: calls in, events out
//! ```
//!
//! Each fact has one source, which its event names: turns and messages the transcript,
//! ends of turns also a hook, prompts and readiness the screen, ends of programs tmux.
//! Invariants: keys are typed only into a screen that was just read and has not changed
//! since; a message counts as arrived when the transcript has it; all processes of an agent
//! end with it, also those that left its window.
//!
//! Absent on purpose: states, mail, rules of approval. Configuration and the home
//! come as values; no environment is read.

mod agent;
mod kind;
mod processes;
mod terminals;
mod tmux;
mod transcript;

pub use agent::{Sandbox, Spec, Terminal};
pub use kind::{
    BUILT_IN, Commands, Composer, Compress, CursorAt, HookNames, Kind, KindFile, Kinds, Pattern,
    Place, PromptRule, Ready,
};
pub use terminals::{Settings, Terminals};
pub use transcript::Form;

/// A file that an agent is started with cannot be kept.
fn cannot_write(path: &std::path::Path) -> impl Fn(std::io::Error) -> crate::backend::Failure {
    let path = path.display().to_string();
    move |source| crate::backend::Failure::Failed(format!("cannot write {path}: {source}"))
}

#[cfg(test)]
mod tests;
