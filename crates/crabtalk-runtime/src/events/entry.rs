//! What a run's log keeps of an event.

use crabtalk_domain::storage::Position;
use crabtalk_domain::{AgentEvent, Message, Role, ToolCallInfo};

/// One event, or consecutive pieces of one text.
#[derive(Debug)]
pub(super) struct Entry {
    first: u64,
    pub(super) body: Body,
    /// Up to where the conversation's log has to be read to find it there.
    pub(super) stored: Option<Position>,
}

#[derive(Debug)]
pub(super) enum Body {
    Event(AgentEvent),
    Deltas(Deltas),
    /// Tool calls, let go.
    Calls,
    /// A tool's result, let go.
    Result {
        call_id: String,
        duration_ms: u64,
    },
}

/// Consecutive pieces of one text, kept as the whole text and the place where
/// each piece ends.
#[derive(Debug)]
pub(super) struct Deltas {
    pub(super) thinking: bool,
    /// `None` once it was let go.
    text: Option<String>,
    ends: Vec<u32>,
    /// Where the text begins within the stored message's text.
    pub(super) offset: usize,
}

impl Deltas {
    pub(super) fn len(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }
}

impl Entry {
    pub(super) fn one(seq: u64, event: AgentEvent, stored: Option<Position>) -> Self {
        Self {
            first: seq,
            body: Body::Event(event),
            stored,
        }
    }

    pub(super) fn delta(seq: u64, thinking: bool, text: &str) -> Self {
        let deltas = Deltas {
            thinking,
            text: Some(text.to_owned()),
            ends: vec![text.len() as u32],
            offset: 0,
        };
        Self {
            first: seq,
            body: Body::Deltas(deltas),
            stored: None,
        }
    }

    /// Takes the next piece of the same text; `false` if it is none.
    pub(super) fn append(&mut self, thinking: bool, piece: &str) -> bool {
        let Body::Deltas(deltas) = &mut self.body else {
            return false;
        };
        let Some(text) = deltas.text.as_mut().filter(|_| deltas.thinking == thinking) else {
            return false;
        };
        // Past 4 GiB of one text the offsets would not fit: begin anew.
        let Ok(end) = u32::try_from(text.len() + piece.len()) else {
            return false;
        };
        text.push_str(piece);
        deltas.ends.push(end);
        true
    }

    /// Bytes that an event is counted with.
    pub(super) fn weight(event: &AgentEvent) -> usize {
        if let AgentEvent::Text(text) | AgentEvent::Thinking(text) = event {
            text.len()
        } else if let AgentEvent::ToolStart(calls) = event {
            calls.iter().map(|call| call.arguments.len()).sum()
        } else if let AgentEvent::ToolResult { output, images, .. } = event {
            let images = images.iter().map(|image| image.base64().len());
            output.len() + images.sum::<usize>()
        } else {
            0
        }
    }

    pub(super) fn last(&self) -> u64 {
        match &self.body {
            Body::Deltas(deltas) => self.first + deltas.ends.len() as u64 - 1,
            Body::Event(_) | Body::Calls | Body::Result { .. } => self.first,
        }
    }

    /// The number under which a reader that has `seen` so much gets what is
    /// next here: one piece, or all of a replay.
    pub(super) fn upto(&self, seen: u64, replay_upto: u64) -> u64 {
        self.last().min(replay_upto).max(seen + 1).max(self.first)
    }

    /// The event, unless it was let go.
    pub(super) fn event(&self, seen: u64, upto: u64) -> Option<AgentEvent> {
        match &self.body {
            Body::Event(event) => Some(event.clone()),
            Body::Deltas(deltas) => {
                let text = deltas.text.as_ref()?;
                self.piece(deltas, text, seen, upto)
            }
            Body::Calls | Body::Result { .. } => None,
        }
    }

    /// Whether a stored message is the one that this entry tells of.
    pub(super) fn is_of(&self, message: &Message) -> bool {
        match &self.body {
            Body::Result { call_id, .. } => message.tool_call_id == *call_id,
            Body::Deltas(_) | Body::Calls | Body::Event(_) => message.role == Role::Assistant,
        }
    }

    /// The event as the stored message has it.
    pub(super) fn event_of(&self, message: &Message, seen: u64, upto: u64) -> Option<AgentEvent> {
        match &self.body {
            Body::Event(event) => Some(event.clone()),
            Body::Deltas(deltas) if deltas.thinking => {
                let whole: String = message.thinking.iter().map(|t| t.text.as_str()).collect();
                self.piece(deltas, whole.get(deltas.offset..)?, seen, upto)
            }
            Body::Deltas(deltas) => {
                self.piece(deltas, message.content.get(deltas.offset..)?, seen, upto)
            }
            Body::Calls => {
                let info = |call: &crabtalk_domain::ToolCall| ToolCallInfo {
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                };
                Some(AgentEvent::ToolStart(
                    message.tool_calls.iter().map(info).collect(),
                ))
            }
            Body::Result { duration_ms, .. } => Some(AgentEvent::ToolResult {
                call_id: message.tool_call_id.clone(),
                output: message.content.clone(),
                duration_ms: *duration_ms,
                is_error: message.is_error,
                images: message.images.clone(),
            }),
        }
    }

    /// The pieces after `seen` up to `upto`, merged.
    fn piece(&self, deltas: &Deltas, text: &str, seen: u64, upto: u64) -> Option<AgentEvent> {
        let offset = |seq: u64| match seq.checked_sub(self.first) {
            Some(at) => deltas.ends.get(at as usize).map(|end| *end as usize),
            None => Some(0),
        };
        let text = text.get(offset(seen)?..offset(upto)?)?.to_owned();
        Some(if deltas.thinking {
            AgentEvent::Thinking(text)
        } else {
            AgentEvent::Text(text)
        })
    }

    /// Forgets what the conversation's log has; answers how many bytes.
    pub(super) fn let_go(&mut self) -> usize {
        if self.stored.is_none() {
            return 0;
        }
        match &mut self.body {
            Body::Deltas(deltas) => deltas.text.take().map_or(0, |text| text.len()),
            Body::Event(event) => {
                let bytes = Self::weight(event);
                if let AgentEvent::ToolStart(_) = event {
                    self.body = Body::Calls;
                } else if let AgentEvent::ToolResult {
                    call_id,
                    duration_ms,
                    ..
                } = event
                {
                    let (call_id, duration_ms) = (std::mem::take(call_id), *duration_ms);
                    self.body = Body::Result {
                        call_id,
                        duration_ms,
                    };
                } else {
                    return 0;
                }
                bytes
            }
            Body::Calls | Body::Result { .. } => 0,
        }
    }
}
