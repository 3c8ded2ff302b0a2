//! Makes a history valid for every provider (CONV-5, STORE-7).
//!
//! Invariant: after [`repair`], every tool call has a unique id and exactly one
//! result, results follow their calls in order, and no result lacks its call.

use crabtalk_domain::{Message, Role, ToolCall};
use std::collections::HashSet;
use std::sync::Arc;

/// Result of a call that the sender cancelled.
pub(crate) const CANCELLED: &str = "cancelled: the run was stopped before this call had a result";

/// Result of a call that a crash interrupted (STORE-7).
pub(crate) const UNKNOWN: &str = "unknown: the daemon stopped while this call was running, so it may \
     or may not have taken effect; check before doing it again";

/// Result of a call whose approval a crash interrupted, so that it never began
/// (RUN-7).
pub(crate) const NOT_APPROVED: &str = "not executed: the daemon stopped while this call waited for an \
     approval; make it again if it is still wanted";

/// Result of a question that a crash interrupted (RUN-7).
pub(crate) const UNANSWERED: &str = "not answered: the daemon stopped while this question waited; ask \
     again if it still matters";

/// Result of a call that a panic interrupted.
pub(crate) const FAILED: &str = "unknown: the run failed while this call was running, so it may or may \
     not have taken effect; check before doing it again";

/// A valid history.
pub(crate) struct Repaired {
    pub(crate) history: Vec<Arc<Message>>,
    /// Synthetic results to append to the log. A result that is missing further up cannot
    /// be inserted in the log and exists only in memory.
    pub(crate) added: Vec<Arc<Message>>,
}

/// Makes a valid history from the messages of a log.
pub(crate) fn repair(
    messages: Vec<Message>,
    missing: impl Fn(&ToolCall) -> &'static str,
) -> Repaired {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut added = Vec::new();
    let mut taken = HashSet::new();
    let mut rest = messages.into_iter().peekable();
    while let Some(mut message) = rest.next() {
        match message.role {
            // A result without its call is dropped.
            Role::Tool => continue,
            Role::User => out.push(Arc::new(message)),
            Role::Assistant => {
                // Results are matched by the logged ids.
                let logged: Vec<String> = ids(&message).map(str::to_owned).collect();
                name_calls(&mut message, |id| taken.contains(id));
                taken.extend(ids(&message).map(str::to_owned));
                let calls = message.tool_calls.clone();
                out.push(Arc::new(message));
                let mut results = Vec::new();
                while let Some(result) = rest.next_if(|m| m.role == Role::Tool) {
                    results.push(result);
                }
                for (call, logged) in calls.into_iter().zip(logged) {
                    let found = results.iter().position(|r| r.tool_call_id == logged);
                    let mut result = match found {
                        Some(at) => results.remove(at),
                        None => {
                            let synthetic = Message::tool(logged, missing(&call), true);
                            if rest.peek().is_none() {
                                added.push(Arc::new(synthetic.clone()));
                            }
                            synthetic
                        }
                    };
                    result.tool_call_id = call.id;
                    out.push(Arc::new(result));
                }
            }
        }
    }
    Repaired {
        history: out,
        added,
    }
}

/// Gives each call of a message a unique id: some servers omit ids, or repeat them
/// within or across answers.
pub(crate) fn name_calls(message: &mut Message, is_taken: impl Fn(&str) -> bool) {
    let mut own = HashSet::new();
    for call in &mut message.tool_calls {
        let said = match call.id.as_str() {
            "" => "call".to_owned(),
            id => id.to_owned(),
        };
        let is_free = |id: &String| !own.contains(id) && !is_taken(id);
        call.id = std::iter::once(said.clone())
            .chain((2..).map(|n: u64| format!("{said}_{n}")))
            .find(is_free)
            .expect("the numbers do not end before the ids do");
        own.insert(call.id.clone());
    }
}

/// The ids of a message's calls.
pub(crate) fn ids(message: &Message) -> impl Iterator<Item = &str> {
    message.tool_calls.iter().map(|call| call.id.as_str())
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
    fn missing_results_are_added_and_stray_ones_dropped() {
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
    fn calls_get_unique_ids() {
        let mut message = calls(&["", "x", "x"]);
        name_calls(&mut message, |id| id == "x");
        let ids: Vec<&str> = ids(&message).collect();
        assert_eq!(ids, ["call", "x_2", "x_3"]);
    }

    #[test]
    fn logs_with_repeated_call_ids_are_repaired() {
        let log = vec![
            calls(&["a", "a"]),
            Message::tool("a", "1", false),
            Message::tool("a", "2", false),
            calls(&["a"]),
            Message::tool("a", "3", false),
            calls(&["a"]),
        ];
        let Repaired { history, added } = repair(log, |_| "?");
        let want =
            r#"assistant["a", "a_2"] a=1 a_2=2 assistant["a_3"] a_3=3 assistant["a_4"] a_4=?"#;
        assert_eq!(show(&history), want);
        assert_eq!(show(&added), "a=?", "as the log has it");
    }
}
