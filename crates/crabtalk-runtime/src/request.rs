//! The request for a run.

use crabtalk_domain::model::ToolChoice;
use crabtalk_domain::{ConversationKey, Image, Mode, Origin};
use crabtalk_gate::Standing;
use std::path::PathBuf;

/// A request for a run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The conversation.
    pub key: ConversationKey,
    /// The text of the message.
    pub content: String,
    /// The images of the message.
    pub images: Vec<Image>,
    /// The guest that answers instead of the conversation's own agent (RUN-2).
    pub guest: Option<String>,
    /// Working directory of this run only (CONV-6).
    pub cwd: Option<PathBuf>,
    /// The requested mode; `None` for the agent's.
    pub mode: Option<Mode>,
    /// Whether `mode` may be wider than the agent's: only for an owner on the local
    /// socket.
    pub may_raise_mode: bool,
    /// Whether the first step must call a tool, and which.
    pub tool_choice: ToolChoice,
    /// The model to use for this run instead of the agent's.
    pub model: Option<String>,
    /// The client's id, with which it may retry (CONV-9).
    pub request_id: Option<String>,
    /// The origin of the run (CONV-10).
    pub origin: Origin,
    /// For a delegate: the standing of the root run. For cron and events: that of the entry
    /// or subscription.
    pub root: Option<Standing>,
}

impl RunRequest {
    /// Creates a request over the local socket with defaults.
    pub fn new(key: ConversationKey, content: impl Into<String>) -> Self {
        Self {
            key,
            content: content.into(),
            images: Vec::new(),
            guest: None,
            cwd: None,
            mode: None,
            may_raise_mode: false,
            tool_choice: ToolChoice::Auto,
            model: None,
            request_id: None,
            origin: Origin::local(),
            root: None,
        }
    }
}
