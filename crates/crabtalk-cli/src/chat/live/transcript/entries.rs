//! Shows messages of a history in the transcript.

use super::Transcript;
use crate::text::{call_summary, summary};
use crabtalk_proto::HistoryEntry;

impl Transcript {
    pub(in super::super) fn entries(&mut self, entries: &[HistoryEntry]) {
        for entry in entries {
            match entry.role.as_str() {
                _ if entry.compact && entry.rewound_to.is_some() => {
                    self.note("an archive was resumed here");
                }
                _ if entry.compact && entry.content.trim().is_empty() => {
                    self.note("new conversation; older messages are archived");
                }
                _ if entry.compact => {
                    let said = format!("summary of older messages: {}", summary(&entry.content));
                    self.note(&said);
                }
                "user" => {
                    self.person(&entry.content, None);
                    for image in &entry.images {
                        self.shown(image);
                    }
                }
                "tool" => {}
                _ if entry.content.trim().is_empty() => {}
                _ => self.said(&entry.agent, &entry.content),
            }
            for call in &entry.tool_calls {
                let said = format!("{} {}", call.name, call_summary(&call.arguments));
                self.note(&said);
                self.recall_todo(call);
            }
            if let Some(to) = entry.rewound_to.filter(|_| !entry.compact) {
                let target = entries.iter().find(|entry| entry.index == to);
                let said = target.map_or("an earlier message".to_owned(), |entry| {
                    summary(&entry.content)
                });
                self.note(&format!("Rewound to: {said}"));
            }
            if let Some(run) = &entry.failed {
                let said = format!("run {}: {}", run.run, summary(&run.error));
                self.note(&said);
            }
        }
    }
}
