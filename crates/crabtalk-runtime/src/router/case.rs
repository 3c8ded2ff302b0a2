//! A call during judgement.

use crabtalk_domain::tool::{Invocation, Subject, ToolProvider, ToolSpec};
use std::sync::Arc;

/// A call, its subject and its tool.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) spec: &'a ToolSpec,
    /// `None` for a tool of the runtime.
    pub(super) provider: Option<&'a Arc<dyn ToolProvider>>,
    pub(super) call: &'a Invocation,
    pub(super) subject: &'a Subject,
    pub(super) arguments: &'a str,
}
