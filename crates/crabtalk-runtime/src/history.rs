//! Keeps a history valid for every provider (CONV-5, STORE-7).
//!
//! Invariant: after [`repair`], every tool call has exactly one result, the
//! results follow their calls in the calls' order, and no result stands alone.

use crabtalk_domain::{Message, Role, ToolCall};
use std::collections::HashSet;
use std::sync::Arc;

/// Result of a call that the sender cancelled.
pub(crate) const CANCELLED: &str = "cancelled: the run was stopped before this call had a result";

/// Result of a call that a crash cut off (STORE-7).
pub(crate) const UNKNOWN: &str = "unknown: the daemon stopped while this call was running, so it may \
     or may not have taken effect; check before doing it again";

/// Result of a call whose approval a crash cut off: it is known that it never
/// began (RUN-7).
pub(crate) const NOT_APPROVED: &str = "not executed: the daemon stopped while this call waited for an \
     approval; make it again if it is still wanted";

/// Result of a question that a crash cut off (RUN-7).
pub(crate) const UNANSWERED: &str = "not answered: the daemon stopped while this question waited; ask \
     again if it still matters";

/// Result of a call that a panic cut off.
pub(crate) const FAILED: &str = "unknown: the run failed while this call was running, so it may or may \
     not have taken effect; check before doing it again";

/// A history made valid.
pub(crate) struct Repaired {
    pub(crate) history: Vec<Arc<Message>>,
    /// Synthetic results that belong at the end of the log. One that is
    /// missing further up cannot be put there and stays in memory.
    pub(crate) added: Vec<Arc<Message>>,
}

/// Brings what a log holds into a valid order.
pub(crate) fn repair(
    messages: Vec<Message>,
    missing: impl Fn(&ToolCall) -> &'static str,
) -> Repaired {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut added = Vec::new();
    let mut rest = messages.into_iter().peekable();
    while let Some(mut message) = rest.next() {
        match message.role {
            // A result here answers nothing that was asked.
            Role::Tool => continue,
            Role::User => out.push(Arc::new(message)),
            Role::Assistant => {
                name_calls(&mut message);
                let calls = message.tool_calls.clone();
                out.push(Arc::new(message));
                let mut results = Vec::new();
                while let Some(result) = rest.next_if(|m| m.role == Role::Tool) {
                    results.push(result);
                }
                for call in calls {
                    let found = results.iter().position(|r| r.tool_call_id == call.id);
                    out.push(match found {
                        Some(at) => Arc::new(results.swap_remove(at)),
                        None => {
                            let said = missing(&call);
                            let synthetic = Arc::new(Message::tool(call.id, said, true));
                            if rest.peek().is_none() {
                                added.push(Arc::clone(&synthetic));
                            }
                            synthetic
                        }
                    });
                }
            }
        }
    }
    Repaired {
        history: out,
        added,
    }
}

/// Gives every call of a message an id of its own, since some servers leave
/// it out or repeat it within one answer.
pub(crate) fn name_calls(message: &mut Message) {
    let mut seen = HashSet::new();
    for (index, call) in message.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() || seen.contains(&call.id) {
            call.id = format!("call_{index}_{}", call.id);
        }
        seen.insert(call.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let mut message = Message::assistant("");
        message.tool_calls = ids
            .iter()
            .map(|id| ToolCall {
                id: (*id).into(),
                name: "t".into(),
                arguments: "{}".into(),
            })
            .collect();
        message
    }

    fn show(history: &[Arc<Message>]) -> String {
        let line = |m: &Arc<Message>| match m.role {
            Role::Tool => format!("{}={}", m.tool_call_id, m.content),
            Role::User | Role::Assistant => {
                let ids: Vec<&str> = m.tool_calls.iter().map(|c| c.id.as_str()).collect();
                format!("{}{}{ids:?}", m.role.as_str(), m.content)
            }
        };
        history.iter().map(line).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn results_follow_their_calls_in_call_order() {
        let log = vec![
            calls(&["a", "b"]),
            Message::tool("b", "2", false),
            Message::tool("a", "1", false),
        ];
        let Repaired { history, added } = repair(log, |_| "?");
        assert_eq!(show(&history), r#"assistant["a", "b"] a=1 b=2"#);
        assert!(added.is_empty());
    }

    #[test]
    fn a_call_without_a_result_gets_one_and_a_stray_result_goes() {
        let log = vec![
            Message::tool("z", "stray", false),
            calls(&["a", "b"]),
            Message::tool("b", "2", false),
            Message::user("go on"),
        ];
        let Repaired { history, added } = repair(log, |_| "?");
        assert_eq!(show(&history), r#"assistant["a", "b"] a=? b=2 usergo on[]"#);
        assert!(added.is_empty(), "there is no place for it in the log");
        assert_eq!(show(&repair(vec![calls(&["a"])], |_| "?").added), "a=?");
    }

    #[test]
    fn calls_without_or_with_the_same_id_get_their_own() {
        let mut message = calls(&["", "x", "x"]);
        name_calls(&mut message);
        let ids: Vec<&str> = message.tool_calls.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["call_0_", "x", "call_2_x"]);
    }
}
