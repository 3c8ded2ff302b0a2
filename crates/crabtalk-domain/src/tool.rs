//! The port for tools.

use crate::{AgentConfig, AskQuestion, BoxFuture, ConversationKey, Image, Origin, Permission};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::path::PathBuf;
use std::sync::Arc;

/// A tool as described to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The tool's name; `server__tool` for MCP tools.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The schema of the arguments.
    pub parameters: Schema,
    /// The verdict if no rule and no property of the call decides.
    pub default_permission: Permission,
}

/// A JSON schema as text, since every request repeats it unchanged.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Schema(Arc<RawValue>);

impl Schema {
    /// The schema as JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for Schema {
    fn from(schema: Value) -> Self {
        let written = to_raw_value(&schema).expect("plain data always serializes");
        Self(written.into())
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// The object of a call that the gate judges (GATE-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A shell command; the tool runs exactly this command.
    Command(ShellCommand),
    /// A file, with `..` and symlinks resolved. The tool opens exactly this path and
    /// follows no link.
    Path {
        /// Absolute, without links.
        path: PathBuf,
        /// Whether the call changes the file.
        write: bool,
    },
    /// No object of the operating system.
    Other,
}

/// The kind of text in a [`Preview`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewKind {
    /// A unified diff of the current and the new content.
    Diff,
    /// The whole new content.
    Content,
}

impl PreviewKind {
    /// The kind's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Diff => "diff",
            Self::Content => "content",
        }
    }
}

/// The change by a call, shown for approval (GATE-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The kind of text.
    pub kind: PreviewKind,
    /// The whole change, never truncated.
    pub text: String,
    /// A remark, such as that the file is new; may be empty.
    pub note: String,
    /// Identifies the outcome: calls with the same value have the same outcome. "Allow
    /// always" stores it.
    pub exact: String,
    /// Identifies the content from which the preview was made.
    pub before: String,
}

/// A command to execute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellCommand {
    /// The text for the shell.
    pub text: String,
    /// The requested access; after the verdict, the granted access.
    pub access: CommandAccess,
}

/// The access of a command beyond the default sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandAccess {
    /// Whether it runs outside the sandbox.
    pub outside: bool,
    /// Whether it may not write at all, not even in its folder.
    pub read_only: bool,
    /// Hosts that it may reach through the sandbox's proxy, or `*` for every public
    /// host.
    pub hosts: Vec<String>,
    /// Absolute paths that it may write in addition to its folder.
    pub write: Vec<PathBuf>,
    /// The model's reason, shown in the question but ignored by the decision.
    pub reason: String,
}

impl CommandAccess {
    /// Whether the access exceeds that of every sandboxed command.
    pub fn is_wide(&self) -> bool {
        self.outside || !self.hosts.is_empty() || !self.write.is_empty()
    }
}

impl<T: Into<String>> From<T> for ShellCommand {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            access: CommandAccess::default(),
        }
    }
}

/// A tool call with the facts of its run.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The conversation of the calling run.
    pub key: ConversationKey,
    /// The origin of the calling run.
    pub origin: Origin,
    /// The run's number.
    pub run: u64,
    /// The conversation and number of the root run, which equal the run's unless it is a
    /// delegate.
    pub root: (ConversationKey, u64),
    /// The configuration of the agent, unchanged for the run.
    pub agent: Arc<AgentConfig>,
    /// Pairs call and result.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The parsed arguments, an object.
    pub arguments: Value,
    /// The directory that relative paths start from.
    pub cwd: PathBuf,
}

/// The result of a call for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Images for the model, in order.
    pub images: Vec<Image>,
}

impl ToolOutput {
    /// Creates a successful result.
    pub fn ok(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: false,
            images: Vec::new(),
        }
    }

    /// Creates a failed result with an error message for the model.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: true,
            images: Vec::new(),
        }
    }

    /// Adds images.
    #[must_use]
    pub fn with_images(mut self, images: Vec<Image>) -> Self {
        self.images = images;
        self
    }
}

/// The progress of a call, as its tool reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The amount of completed work; never decreases.
    pub done: f64,
    /// The total amount of work, if known.
    pub total: Option<f64>,
    /// The current activity; may be empty.
    pub message: String,
}

/// The caller of a tool.
pub trait Caller: Send + Sync {
    /// Receives the progress of the call.
    fn progress(&self, _progress: Progress) {}

    /// Asks the people behind the run; returns the answers by question, or `None` if no
    /// person can be asked. Dropping the future withdraws the questions.
    fn ask<'a>(&'a self, _questions: Vec<AskQuestion>) -> BoxFuture<'a, Option<Value>> {
        Box::pin(std::future::ready(None))
    }
}

impl Caller for () {}

/// A group of tools. Only the gate calls `call`, after judging scope and permission
/// (GATE-6).
pub trait ToolProvider: Send + Sync {
    /// The current tools; called once per step.
    fn specs(&self) -> Vec<Arc<ToolSpec>>;

    /// Returns the subject of the call, or why the call is invalid.
    fn subject<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>>;

    /// Returns a name in the call, such as a skill, that is out of the agent's scope
    /// (GATE-1). Checked before permission.
    fn out_of_scope<'a>(&'a self, _call: &'a Invocation) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Whether the call only reads the conversation's own files, such as earlier outputs,
    /// which needs no approval (GATE-3). May access the disk.
    fn is_own(&self, _call: &Invocation, _subject: &Subject) -> bool {
        false
    }

    /// Returns the whole change by the call for an approval (GATE-4); `None` if the
    /// subject describes it completely. The work is bounded and does not block. An error is
    /// also the result of the call.
    fn preview<'a>(
        &'a self,
        _call: &'a Invocation,
        _subject: &'a Subject,
    ) -> BoxFuture<'a, Result<Option<Preview>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Executes an allowed call on this subject. Dropping the future cancels the call and
    /// ends everything that it started.
    fn call<'a>(&'a self, call: &'a Invocation, subject: &'a Subject) -> BoxFuture<'a, ToolOutput>;

    /// Executes a call that was approved by its preview: makes exactly that change, or
    /// none.
    fn call_as_shown<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
        _shown: &'a Preview,
    ) -> BoxFuture<'a, ToolOutput> {
        self.call(call, subject)
    }

    /// Executes a call for a caller that receives progress and questions; `shown` is the
    /// approved preview, if any.
    fn call_for<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
        shown: Option<&'a Preview>,
        _caller: &'a dyn Caller,
    ) -> BoxFuture<'a, ToolOutput> {
        match shown {
            Some(shown) => self.call_as_shown(call, subject, shown),
            None => self.call(call, subject),
        }
    }

    /// Returns why an owner must confirm an allowed call again: the tool has changed since
    /// it was allowed (COMP-3). The preview then shows the change.
    fn is_news(&self, _call: &Invocation) -> Option<String> {
        None
    }
}
