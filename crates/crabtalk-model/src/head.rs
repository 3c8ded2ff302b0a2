//! What requests of an agent begin with, tools and the system prompt: written
//! once, and shared by all its conversations.
//! Invariant: what is kept is what writing it again would give.

use crate::body::Writer;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::ToolSpec;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Beginnings that are kept: one for each agent that speaks at a time.
const MAX_HEADS: usize = 16;

/// Beginnings of one provider's requests, the latest first.
#[derive(Default)]
pub(crate) struct Heads(Mutex<VecDeque<Head>>);

struct Head {
    variant: u32,
    tool_choice: ToolChoice,
    tools: Arc<Vec<Arc<ToolSpec>>>,
    system: Arc<str>,
    bytes: Bytes,
}

impl Head {
    fn is_of(&self, request: &Request, variant: u32) -> bool {
        let same_tools = || {
            let mut pairs = self.tools.iter().zip(&**request.tools);
            self.tools.len() == request.tools.len()
                && pairs.all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
        };
        self.variant == variant
            && self.tool_choice == request.tool_choice
            && (Arc::ptr_eq(&self.system, &request.system) || self.system == request.system)
            && (Arc::ptr_eq(&self.tools, &request.tools) || same_tools())
    }
}

impl Heads {
    /// Appends what `write` gives for a request's tools and system prompt;
    /// `variant` is whatever else it depends on.
    pub(crate) fn push(
        &self,
        writer: &mut Writer,
        request: &Request,
        variant: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        // What is kept is whole, so a panic elsewhere spoils nothing.
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = heads.iter().position(|head| head.is_of(request, variant));
        let head = found.and_then(|at| heads.remove(at)).unwrap_or_else(|| {
            let mut out = Vec::new();
            write(&mut out);
            out.shrink_to_fit();
            Head {
                variant,
                tool_choice: request.tool_choice.clone(),
                tools: Arc::clone(&request.tools),
                system: Arc::clone(&request.system),
                bytes: out.into(),
            }
        });
        writer.piece(head.bytes.clone());
        heads.truncate(MAX_HEADS - 1);
        heads.push_front(head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::Permission;
    use serde_json::json;

    fn pushed(heads: &Heads, request: &Request, variant: u32) -> *const u8 {
        let mut writer = Writer::new();
        heads.push(&mut writer, request, variant, |out| {
            out.extend_from_slice(request.system.as_bytes());
            for tool in &**request.tools {
                out.extend_from_slice(tool.name.as_bytes());
            }
        });
        let body = writer.finish();
        let first = body.pieces().next().expect("one piece");
        let tools: String = request.tools.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(first, format!("{}{tools}", request.system).as_bytes());
        first.as_ptr()
    }

    fn request(system: &str, tools: &[&str]) -> Request {
        let spec = |name: &&str| {
            Arc::new(ToolSpec {
                name: (*name).into(),
                description: String::new(),
                parameters: json!({"type": "object"}),
                default_permission: Permission::Allow,
            })
        };
        let mut request = Request::new(system, Vec::new());
        request.tools = Arc::new(tools.iter().map(spec).collect());
        request
    }

    #[test]
    fn what_is_the_same_is_written_once() {
        let heads = Heads::default();
        let first = pushed(&heads, &request("brief", &["read"]), 0);
        for (other, variant) in [
            (request("brief", &["read", "bash"]), 0),
            (request("brief", &["bash"]), 0),
            (request("long", &["read"]), 0),
            (request("brief", &["read"]), 1),
        ] {
            assert_ne!(pushed(&heads, &other, variant), first);
        }
        let mut forced = request("brief", &["read"]);
        forced.tool_choice = ToolChoice::Required;
        assert_ne!(pushed(&heads, &forced, 0), first);
        assert_eq!(pushed(&heads, &request("brief", &["read"]), 0), first);
    }

    #[test]
    fn few_are_kept() {
        let heads = Heads::default();
        for agent in 0..3 * MAX_HEADS {
            pushed(&heads, &request(&format!("agent {agent}"), &[]), 0);
        }
        assert_eq!(heads.0.lock().expect("whole").len(), MAX_HEADS);
    }
}
