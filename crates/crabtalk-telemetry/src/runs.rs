//! Spans of runs and of their tool calls, by OpenTelemetry's semantic conventions
//! for generative AI.
//!
//! Invariants: a span is created at its end; spans contain no text of a
//! conversation; runs without a reported end are eventually dropped.

use crabtalk_client::AgentEventMsg;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of open runs.
const MAX_OPEN: usize = 4096;

/// Maximum number of open calls per run.
const MAX_CALLS: usize = 256;

/// Identifies a run: agent, sender and number.
type Key = (String, String, u64);

/// An ended run or call.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: String,
    from: Timestamp,
    to: Timestamp,
    attributes: Vec<(&'static str, Value)>,
    failed: bool,
}

#[derive(Debug)]
struct OpenRun {
    trace: [u8; 16],
    id: [u8; 8],
    began: Timestamp,
    calls: HashMap<String, (String, Timestamp)>,
    done: Vec<Span>,
}

#[derive(Default)]
pub(crate) struct Ended {
    /// The duration; `None` if the beginning was not received.
    pub(crate) took: Option<Duration>,
    /// The spans of the run and of its calls.
    pub(crate) spans: Vec<Span>,
}

/// Open runs.
#[derive(Debug, Default)]
pub(crate) struct Runs(HashMap<Key, OpenRun>);

fn key(event: &AgentEventMsg) -> Key {
    (event.agent.clone(), event.sender.clone(), event.run)
}

fn at(event: &AgentEventMsg) -> Timestamp {
    event.timestamp.parse().unwrap_or_else(|_| Timestamp::now())
}

/// A random id. Zero, which is invalid, is extremely unlikely.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness, spans share an id.
    let _ = getrandom::fill(&mut bytes);
    bytes
}

impl Runs {
    /// Drops all open runs, since their daemon has ended.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    pub(crate) fn begun(&mut self, event: &AgentEventMsg) {
        if self.0.len() >= MAX_OPEN {
            return;
        }
        let open = OpenRun {
            trace: random(),
            id: random(),
            began: at(event),
            calls: HashMap::new(),
            done: Vec::new(),
        };
        self.0.insert(key(event), open);
    }

    pub(crate) fn calls_begun(&mut self, event: &AgentEventMsg) {
        let Some(open) = self.0.get_mut(&key(event)) else {
            return;
        };
        for call in &event.tool_calls {
            if open.calls.len() < MAX_CALLS {
                open.calls
                    .insert(call.call_id.clone(), (call.name.clone(), at(event)));
            }
        }
    }

    /// The tool whose call ended, if its beginning was received.
    pub(crate) fn call_ended(&mut self, event: &AgentEventMsg) -> Option<String> {
        let open = self.0.get_mut(&key(event))?;
        let (tool, began) = open.calls.remove(&event.content)?;
        if open.done.len() < MAX_CALLS {
            open.done.push(Span {
                trace: open.trace,
                id: random(),
                parent: Some(open.id),
                name: format!("execute_tool {tool}"),
                from: began,
                to: at(event),
                attributes: vec![
                    ("gen_ai.operation.name", "execute_tool".into()),
                    ("gen_ai.tool.name", tool.clone().into()),
                    ("gen_ai.tool.call.id", event.content.clone().into()),
                ],
                failed: event.tool_is_error,
            });
        }
        Some(tool)
    }

    /// Ends a run; returns it with its spans. `tokens` are its input and output tokens, if known.
    pub(crate) fn ended(
        &mut self,
        event: &AgentEventMsg,
        failed: bool,
        tokens: Option<(u64, u64)>,
    ) -> Ended {
        let Some(open) = self.0.remove(&key(event)) else {
            return Ended::default();
        };
        let to = at(event);
        let speaker = match event.speaker.is_empty() {
            true => &event.agent,
            false => &event.speaker,
        };
        let mut attributes: Vec<(&'static str, Value)> = vec![
            ("gen_ai.operation.name", "invoke_agent".into()),
            ("gen_ai.agent.name", speaker.clone().into()),
            (
                "gen_ai.conversation.id",
                format!("{}/{}", event.agent, event.sender).into(),
            ),
            ("crabtalk.run", event.run.into()),
        ];
        if let Some((input, output)) = tokens {
            attributes.push(("gen_ai.usage.input_tokens", input.into()));
            attributes.push(("gen_ai.usage.output_tokens", output.into()));
        }
        let mut spans = open.done;
        spans.push(Span {
            trace: open.trace,
            id: open.id,
            parent: None,
            name: format!("invoke_agent {speaker}"),
            from: open.began,
            to,
            attributes,
            failed,
        });
        Ended {
            took: Duration::try_from(to.duration_since(open.began)).ok(),
            spans,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Span {
    /// The span in OTLP's JSON encoding.
    pub(crate) fn to_json(&self) -> Value {
        let attributes = self.attributes.iter().map(|(name, value)| {
            let value = match value.as_u64() {
                // The encoding writes 64-bit numbers as text.
                Some(number) => json!({"intValue": number.to_string()}),
                None => json!({"stringValue": value}),
            };
            json!({"key": name, "value": value})
        });
        let mut span = json!({
            "traceId": hex(&self.trace), "spanId": hex(&self.id), "name": self.name, "kind": 1,
            "startTimeUnixNano": self.from.as_nanosecond().to_string(),
            "endTimeUnixNano": self.to.as_nanosecond().to_string(),
            "attributes": attributes.collect::<Vec<_>>(),
            "status": if self.failed { json!({"code": 2}) } else { json!({}) },
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = hex(parent).into();
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_client::ToolCallInfo;

    fn event(at: &str) -> AgentEventMsg {
        AgentEventMsg {
            agent: "crab".to_owned(),
            sender: "user".to_owned(),
            run: 7,
            timestamp: at.to_owned(),
            ..AgentEventMsg::default()
        }
    }

    #[test]
    fn run_and_tool_call_are_spans_without_text() {
        let mut runs = Runs::default();
        runs.begun(&event("2026-03-01T10:00:00Z"));
        runs.calls_begun(&AgentEventMsg {
            tool_calls: vec![ToolCallInfo {
                name: "bash".to_owned(),
                arguments: "{\"command\":\"secret\"}".to_owned(),
                call_id: "c1".to_owned(),
            }],
            ..event("2026-03-01T10:00:01Z")
        });
        let call = runs.call_ended(&AgentEventMsg {
            content: "c1".to_owned(),
            tool_output: "secret".to_owned(),
            ..event("2026-03-01T10:00:02Z")
        });
        assert_eq!(call.as_deref(), Some("bash"));
        let ended = runs.ended(&event("2026-03-01T10:00:05Z"), false, Some((10, 2)));
        assert_eq!(ended.took, Some(Duration::from_secs(5)));
        let [call, run] = &ended.spans[..] else {
            panic!("{:?}", ended.spans)
        };
        let (call, run) = (call.to_json(), run.to_json());
        assert_eq!(call["traceId"], run["traceId"]);
        assert_eq!(call["parentSpanId"], run["spanId"]);
        assert_eq!(run["name"], "invoke_agent crab");
        assert_eq!(call["name"], "execute_tool bash");
        assert_eq!(call["startTimeUnixNano"], "1772359201000000000");
        assert!(!format!("{call}{run}").contains("secret"));
        assert!(run.to_string().contains("gen_ai.usage.input_tokens"));
    }

    #[test]
    fn an_end_without_a_beginning_is_no_span() {
        let mut runs = Runs::default();
        assert!(runs.call_ended(&event("x")).is_none());
        let ended = runs.ended(&event("x"), true, None);
        assert!(ended.took.is_none() && ended.spans.is_empty());
    }
}
