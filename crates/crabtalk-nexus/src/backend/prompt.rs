//! A tool prompt that waits for an answer, and the answer.

use serde::{Deserialize, Serialize};

/// A question of an agent that blocks it until the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// An id unique among the agent's prompts: `ask_id` of the daemon, or
    /// the values that a terminal compares before it sends a key. The same
    /// question asked again has another id.
    pub id: String,
    /// The tool's name as in rules: `bash`, `edit`, `write`, `server__tool`.
    /// Empty if unknown.
    pub tool: String,
    /// The complete command, path or arguments. Empty if they could not be read
    /// completely.
    pub subject: String,
    /// Whether the screen shows `subject` exactly and it belongs to the only
    /// open call of the transcript. Rules answer no other prompts.
    #[serde(default)]
    pub exact: bool,
    /// The question for a person, with the text to be written.
    pub text: String,
    /// Whether it is a question to a person instead of an approval; rules do not answer it.
    pub is_question: bool,
    /// The labels of the offered answers, if any.
    pub options: Vec<String>,
    /// A description of what "always" would allow; empty if it is not offered.
    #[serde(default)]
    pub always: String,
}

/// The answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Allow it once.
    Allow,
    /// Allow it always, if [`Prompt::always`] offers that.
    Always,
    /// Deny it with this reason, which may be empty.
    Deny(String),
    /// Answer a question with this text.
    Text(String),
}
