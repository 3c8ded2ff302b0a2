//! A summary of a conversation from its first sentences.

use crabtalk_domain::{Message, Role};

/// Maximum characters of a sentence.
const MAX_SENTENCE_CHARS: usize = 120;
/// Maximum number of quoted messages.
const MAX_SENTENCES: usize = 20;

/// Summarizes the messages.
pub(super) fn of(messages: &[&Message]) -> String {
    let spoken: Vec<&&Message> = messages
        .iter()
        .filter(|m| m.role != Role::Tool && !m.auto_injected && !m.content.trim().is_empty())
        .collect();
    let begin = spoken
        .first()
        .map_or("", |message| first_sentence(&message.content));
    let mut lines = vec![format!("{} messages about: {begin}", messages.len())];
    for message in &spoken[spoken.len().saturating_sub(MAX_SENTENCES)..] {
        let who = if message.agent.is_empty() {
            message.role.as_str()
        } else {
            &message.agent
        };
        let sentence: String = first_sentence(&message.content)
            .chars()
            .take(MAX_SENTENCE_CHARS)
            .collect();
        lines.push(format!("- {who}: {sentence}"));
    }
    lines.join("\n")
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let line = text.lines().next().unwrap_or("");
    let end = line.match_indices(['.', '!', '?']).find(|(at, _)| {
        let after = &line[at + 1..];
        after.is_empty() || after.starts_with(' ')
    });
    end.map_or(line, |(at, _)| &line[..=at])
}
