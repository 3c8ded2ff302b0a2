//! A tool prompt that waits for an answer, and the answer.

use serde::{Deserialize, Serialize};

/// Something that an agent asks before it goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Names this one prompt among all of this agent: `ask_id` of the daemon, or
    /// the values that a terminal compares before it sends a key. The same
    /// question asked later has another id.
    pub id: String,
    /// The tool, as rules name it: `bash`, `edit`, `write`, `server__tool`.
    /// Empty if unknown.
    pub tool: String,
    /// The command, the path or the arguments, whole. Empty if it could not be read
    /// whole.
    pub subject: String,
    /// Whether the screen shows `subject` to the letter and it belongs to the only
    /// open call of the transcript. Rules answer no other prompt.
    #[serde(default)]
    pub exact: bool,
    /// The question as a person reads it, with what would be written.
    pub text: String,
    /// Whether it is a question to a person and no approval: no rule answers it.
    pub is_question: bool,
    /// Labels that are offered, where there are some.
    pub options: Vec<String>,
    /// What "always" would allow, in words; empty where it is not offered.
    #[serde(default)]
    pub always: String,
}

/// The answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Allows it, this one time.
    Allow,
    /// Allows it always, where [`Prompt::always`] offers that.
    Always,
    /// Refuses it with this reason, which may be empty.
    Deny(String),
    /// Answers a question with this text.
    Text(String),
}
