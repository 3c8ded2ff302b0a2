//! A call on its way through the gate, and what is known of it.

use crabtalk_domain::tool::{Invocation, Subject, ToolProvider, ToolSpec};
use std::sync::Arc;

/// A call and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) spec: &'a ToolSpec,
    /// `None` for a tool of the runtime itself.
    pub(super) provider: Option<&'a Arc<dyn ToolProvider>>,
    pub(super) call: &'a Invocation,
    pub(super) subject: &'a Subject,
    pub(super) arguments: &'a str,
}
