//! Agents in tmux windows, implementing the backend port.
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
//! Each fact has one source, which its event names: the transcript for turns and messages,
//! a hook also for ends of turns, the screen for prompts and readiness, tmux for ends of programs.
//! Invariants: keys are typed only into a screen that was just read and has not changed
//! since; a message counts as arrived when the transcript has it; all processes of an agent
//! end with it, even if they left its window; states, mail and approval rules are not known here;
//! configuration and home are passed as values.

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

/// The error for a file of an agent that cannot be written.
fn cannot_write(path: &std::path::Path) -> impl Fn(std::io::Error) -> crate::backend::Failure {
    let path = path.display().to_string();
    move |source| crate::backend::Failure::Failed(format!("cannot write {path}: {source}"))
}

#[cfg(test)]
mod tests;
