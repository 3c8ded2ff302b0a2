//! An event in a run's log, or consecutive pieces of one text.

use crabtalk_domain::AgentEvent;

/// An event, or consecutive pieces of one text.
#[derive(Debug)]
pub(super) struct Entry {
    first: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Event(AgentEvent),
    Deltas(Deltas),
    /// Dropped to limit the memory of a long run.
    Dropped,
}

/// Consecutive pieces of one text: the whole text, and the offset where each
/// piece ends.
#[derive(Debug)]
struct Deltas {
    thinking: bool,
    text: String,
    ends: Vec<u32>,
}

impl Entry {
    pub(super) fn one(seq: u64, event: AgentEvent) -> Self {
        Self {
            first: seq,
            body: Body::Event(event),
        }
    }

    pub(super) fn delta(seq: u64, thinking: bool, text: &str) -> Self {
        Self {
            first: seq,
            body: Body::Deltas(Deltas {
                thinking,
                text: text.to_owned(),
                ends: vec![text.len() as u32],
            }),
        }
    }

    /// Appends the next piece of the same text; returns `false` for any other.
    pub(super) fn append(&mut self, thinking: bool, piece: &str) -> bool {
        let Body::Deltas(deltas) = &mut self.body else {
            return false;
        };
        // Offsets are limited to 4 GiB of text.
        let Ok(end) = u32::try_from(deltas.text.len() + piece.len()) else {
            return false;
        };
        if deltas.thinking != thinking {
            return false;
        }
        deltas.text.push_str(piece);
        deltas.ends.push(end);
        true
    }

    /// Bytes of the texts in an event.
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
            Body::Event(_) | Body::Dropped => self.first,
        }
    }

    /// Whether the event is the ask with this id.
    pub(super) fn is_ask(&self, id: &str) -> bool {
        matches!(&self.body, Body::Event(AgentEvent::AskUser(ask)) if ask.id == id)
    }

    /// Number of the next event here for a reader that has read up to `seen`: one piece,
    /// or the last piece of a replay.
    pub(super) fn upto(&self, seen: u64, replay_upto: u64) -> u64 {
        self.last().min(replay_upto).max(seen + 1).max(self.first)
    }

    /// The event after `seen` up to `upto`; `None` if it was dropped.
    pub(super) fn event(&self, seen: u64, upto: u64) -> Option<AgentEvent> {
        let deltas = match &self.body {
            Body::Event(event) => return Some(event.clone()),
            Body::Deltas(deltas) => deltas,
            Body::Dropped => return None,
        };
        let offset = |seq: u64| match seq.checked_sub(self.first) {
            Some(at) => deltas.ends.get(at as usize).map(|end| *end as usize),
            None => Some(0),
        };
        let text = deltas.text.get(offset(seen)?..offset(upto)?)?.to_owned();
        Some(match deltas.thinking {
            true => AgentEvent::Thinking(text),
            false => AgentEvent::Text(text),
        })
    }

    /// Drops the event unless it describes the run's start; returns the bytes of its
    /// texts.
    pub(super) fn drop_event(&mut self) -> usize {
        let bytes = match &self.body {
            Body::Deltas(deltas) => deltas.text.len(),
            Body::Event(AgentEvent::Start { .. } | AgentEvent::UserMessage { .. }) => return 0,
            Body::Event(event) => Self::weight(event),
            Body::Dropped => 0,
        };
        self.first = self.last();
        self.body = Body::Dropped;
        bytes
    }
}
