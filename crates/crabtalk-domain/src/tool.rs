//! The port behind which tools live.

use crate::{AgentConfig, AskQuestion, BoxFuture, ConversationKey, Image, Origin, Permission};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::path::PathBuf;
use std::sync::Arc;

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name; MCP tools are `server__tool`.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// What its arguments have to be.
    pub parameters: Schema,
    /// The gate's verdict where neither a rule nor the subject decides.
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

/// The subject of a call, on which permission is judged (GATE-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A shell command. The tool runs exactly this command.
    Command(ShellCommand),
    /// A file, resolved through `..` and symlinks. The tool opens exactly this
    /// path and follows nothing that was not judged.
    Path {
        /// Absolute, without links.
        path: PathBuf,
        /// Whether it would be changed.
        write: bool,
    },
    /// Nothing of the operating system.
    Other,
}

/// The kind of text in a [`Preview`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewKind {
    /// A unified diff of what is there and what would be.
    Diff,
    /// The whole content that would be there.
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

/// The change by a call, for the person who is asked (GATE-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The kind of text.
    pub kind: PreviewKind,
    /// All of the change, never a part of it.
    pub text: String,
    /// A remark, such as that the file is new; may be empty.
    pub note: String,
    /// Names the outcome: calls with the same come to the same. What "Allow
    /// always" keeps.
    pub exact: String,
    /// Names what was there when the preview was made.
    pub before: String,
}

/// A command as it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellCommand {
    /// The text for the shell.
    pub text: String,
    /// Its access: requested before the gate judged it, granted afterwards.
    pub access: CommandAccess,
}

/// The access of a command beyond the default sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandAccess {
    /// Whether it runs outside the sandbox.
    pub outside: bool,
    /// Whether it may write nowhere, its folder included.
    pub read_only: bool,
    /// Hosts that it may reach through the sandbox's proxy, as `host` or `*`
    /// for every public host.
    pub hosts: Vec<String>,
    /// Absolute paths that it may write beside its folder.
    pub write: Vec<PathBuf>,
    /// Why the model wants this; for the question, never for the decision.
    pub reason: String,
}

impl CommandAccess {
    /// Whether it goes beyond what every sandboxed command may reach.
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

/// A call on its way through the gate.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The conversation whose run calls.
    pub key: ConversationKey,
    /// Where that run came from.
    pub origin: Origin,
    /// The run's number.
    pub run: u64,
    /// The run that people see: the same, or the one at the top of a delegation,
    /// and its conversation.
    pub root: (ConversationKey, u64),
    /// The agent as the run knows it.
    pub agent: Arc<AgentConfig>,
    /// Pairs call and result.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Parsed arguments, an object.
    pub arguments: Value,
    /// Where relative paths begin.
    pub cwd: PathBuf,
}

/// The result of a call for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The images in order.
    pub images: Vec<Image>,
}

impl ToolOutput {
    /// A result.
    pub fn ok(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: false,
            images: Vec::new(),
        }
    }

    /// A failure that the model should read.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: true,
            images: Vec::new(),
        }
    }

    /// The same with images.
    #[must_use]
    pub fn with_images(mut self, images: Vec<Image>) -> Self {
        self.images = images;
        self
    }
}

/// How far a call is, by its own account.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done; it grows.
    pub done: f64,
    /// How much there is, if that is known.
    pub total: Option<f64>,
    /// The current activity; may be empty.
    pub message: String,
}

/// The caller of a tool.
pub trait Caller: Send + Sync {
    /// Hears how far the call is.
    fn progress(&self, _progress: Progress) {}

    /// Asks the people behind the run: the answers by question, or `None` where
    /// no person can be asked. Dropping the future withdraws the questions.
    fn ask<'a>(&'a self, _questions: Vec<AskQuestion>) -> BoxFuture<'a, Option<Value>> {
        Box::pin(std::future::ready(None))
    }
}

impl Caller for () {}

/// A family of tools. Scope and permission are judged before `call`, by the
/// gate alone (GATE-6).
pub trait ToolProvider: Send + Sync {
    /// The tools it has now; looked up once per step.
    fn specs(&self) -> Vec<Arc<ToolSpec>>;

    /// The subject of the call, or why the call is invalid.
    fn subject<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>>;

    /// A name in the call, such as a skill, that is out of the agent's scope
    /// (GATE-1). Checked before permission.
    fn out_of_scope<'a>(&'a self, _call: &'a Invocation) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Whether the call only reads the conversation's own files, such as
    /// earlier outputs, which needs no approval (GATE-3). May touch the disk.
    fn is_own(&self, _call: &Invocation, _subject: &Subject) -> bool {
        false
    }

    /// The whole change by the call for an approval (GATE-4); `None` if the
    /// subject says it all. The work is bounded and does not block. An error is
    /// the result that the call itself would have.
    fn preview<'a>(
        &'a self,
        _call: &'a Invocation,
        _subject: &'a Subject,
    ) -> BoxFuture<'a, Result<Option<Preview>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Executes an allowed call on this subject. Dropping the future cancels it
    /// and ends all that it started.
    fn call<'a>(&'a self, call: &'a Invocation, subject: &'a Subject) -> BoxFuture<'a, ToolOutput>;

    /// Executes a call that was allowed for its preview: exactly that change or
    /// none.
    fn call_as_shown<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
        _shown: &'a Preview,
    ) -> BoxFuture<'a, ToolOutput> {
        self.call(call, subject)
    }

    /// Executes a call for a caller that receives progress and questions;
    /// `shown` is the approved preview, if any.
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

    /// Why an owner has to look again although the call is allowed: the tool is
    /// not what it was when it was allowed (COMP-3). Its preview then shows what
    /// has changed.
    fn is_news(&self, _call: &Invocation) -> Option<String> {
        None
    }
}
