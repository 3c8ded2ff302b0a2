//! Full-text search over all conversations.

use crate::{ConversationKey, Role};
use std::sync::Arc;

/// Characters shown before and after the first match in a snippet.
const AROUND: usize = 80;

/// A search for messages and titles.
#[derive(Clone)]
pub struct Search {
    /// Required words, case-insensitive; each matches the beginning of a word in the text.
    pub words: Vec<String>,
    /// Restricts the search to this agent.
    pub agent: Option<String>,
    /// Restricts the search to this sender.
    pub sender: Option<String>,
    /// Whether the caller may see a conversation.
    pub reach: Arc<dyn Fn(&ConversationKey) -> bool + Send + Sync>,
    /// Maximum number of hits.
    pub limit: usize,
}

/// A message or title that contains all words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The conversation.
    pub key: ConversationKey,
    /// The conversation's title.
    pub title: String,
    /// Index and author of the message; `None` for a title.
    pub message: Option<(u64, Role)>,
    /// RFC 3339 instant of the message, or of the conversation's creation.
    pub at: String,
    /// The first match with surrounding text.
    pub snippet: String,
}

/// The hits of a search, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// At most `limit` hits.
    pub hits: Vec<Hit>,
    /// Whether more hits may exist.
    pub incomplete: bool,
}

impl Search {
    /// The text around the first match; `None` unless the text contains all words.
    pub fn snippet(&self, text: &str) -> Option<String> {
        let folded = text.to_lowercase();
        let find = |word: &String| folded.find(&word.to_lowercase());
        let first = self.words.iter().map(find).collect::<Option<Vec<_>>>()?;
        let first = first.into_iter().min()?;
        // Case folding rarely changes the number of characters.
        let at = folded[..first].chars().count();
        let from = at.saturating_sub(AROUND);
        let mut rest = text.chars().skip(from);
        let cut: String = rest.by_ref().take(2 * AROUND).collect();
        let begin = if from > 0 { "…" } else { "" };
        let end = if rest.next().is_some() { "…" } else { "" };
        Some(format!("{begin}{cut}{end}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_needs_all_words_and_shows_text_around_the_first() {
        let snippet = |query: &str, text: &str| {
            let words = query.split_whitespace().map(str::to_owned).collect();
            let search = Search {
                words,
                agent: None,
                sender: None,
                reach: Arc::new(|_| true),
                limit: 1,
            };
            search.snippet(text)
        };
        let door = "The door is green.";
        assert_eq!(snippet("GREEN door", door).as_deref(), Some(door));
        assert_eq!(snippet("green window", door), None);
        let long = format!("{}Straße{}", "ä".repeat(200), "ö".repeat(200));
        let cut = snippet("straße", &long).expect("it is there");
        assert!(cut.starts_with("…ä") && cut.ends_with("ö…"), "{cut}");
        assert!(
            cut.contains("Straße") && cut.chars().count() == 162,
            "{cut}"
        );
    }
}
