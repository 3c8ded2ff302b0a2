//! Words in everything that was said.
//!
//! Invariants: logs are read as they are, so that nothing is found late or in a
//! place where it is not any more; a search reads a page at a time, and ends with its
//! time or its client; what a client does not reach is not read.

use super::Session;
use crate::error::Error;
use crabtalk_domain::storage::{LogEntry, LogPart, Summary};
use crabtalk_proto::*;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Messages that are found when the client does not say.
const DEFAULT_FOUND: usize = 20;

/// Messages that are found at most.
const MAX_FOUND: usize = 500;

/// Messages that are read at a time: others get their turn at the disk in between.
const PAGE: usize = 100;

/// How long a search may take: who waits longer looks for something else.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Bytes of a query; what is longer are no words.
const MAX_QUERY: usize = 1024;

/// Characters around the first word that is found.
const AROUND: usize = 80;

/// What is looked for.
struct Words(Vec<String>);

impl Words {
    fn of(query: &str) -> Result<Self, Error> {
        if query.len() > MAX_QUERY {
            return Err(Error::Invalid(format!(
                "the query is longer than {MAX_QUERY} bytes"
            )));
        }
        let words: Vec<_> = query.split_whitespace().map(str::to_lowercase).collect();
        match words.is_empty() {
            true => Err(Error::Invalid("the query is empty; name some words".into())),
            false => Ok(Self(words)),
        }
    }

    /// Some of a text that has all of the words.
    fn snippet(&self, text: &str) -> Option<String> {
        let folded = text.to_lowercase();
        let places = self.0.iter().map(|word| folded.find(word.as_str()));
        let first = places.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        // Folding may change lengths: characters are counted, which hardly ever
        // does.
        let at = folded[..first].chars().count();
        let from = at.saturating_sub(AROUND);
        let cut: String = text.chars().skip(from).take(2 * AROUND).collect();
        let more = text.chars().nth(from + 2 * AROUND).is_some();
        let (begin, end) = (if from > 0 { "…" } else { "" }, if more { "…" } else { "" });
        Some(format!("{begin}{cut}{end}"))
    }
}

fn found(summary: &Summary, snippet: String) -> FoundMessage {
    FoundMessage {
        agent: summary.key.agent.to_string(),
        sender: summary.key.sender.to_string(),
        title: summary.meta.title.clone(),
        snippet,
        at: summary.meta.created_at.clone(),
        ..FoundMessage::default()
    }
}

/// The messages of a page that have the words, newest first.
fn matches(words: &Words, summary: &Summary, entries: Vec<LogEntry>) -> Vec<FoundMessage> {
    let entries = entries.into_iter().rev().filter(|entry| !entry.compact);
    let found = entries.filter_map(|entry| {
        let snippet = words.snippet(&entry.message.content)?;
        Some(FoundMessage {
            index: Some(entry.index),
            role: entry.message.role.as_str().to_owned(),
            at: entry.message.at,
            ..found(summary, snippet)
        })
    });
    found.collect()
}

impl Session {
    pub(super) async fn search_everywhere(
        &self,
        request: SearchConversationsMsg,
    ) -> Result<FoundMessageList, Error> {
        let words = Arc::new(Words::of(&request.query)?);
        let most = super::as_many(request.limit, DEFAULT_FOUND, MAX_FOUND);
        let deadline = Instant::now() + MAX_TIME;
        let summaries = self.summaries(&request.agent, &request.sender, 0).await?;
        let mut answer = FoundMessageList::default();
        for summary in summaries {
            let summary = Arc::new(summary);
            let title = summary.meta.title.as_str();
            if let Some(snippet) = words.snippet(title) {
                answer.messages.push(found(&summary, snippet));
            }
            let mut before = None;
            loop {
                if answer.messages.len() >= most || Instant::now() >= deadline {
                    answer.incomplete = true;
                    answer.messages.truncate(most);
                    return Ok(answer);
                }
                let part = LogPart::File(summary.file.clone());
                let storage = self.node.runtime.storage();
                let page = match storage.page(&part, before, PAGE).await {
                    Ok(page) => page,
                    Err(error) => {
                        let error = Error::from(error).to_string();
                        tracing::warn!(log = summary.file, error, "not searched");
                        answer.incomplete = true;
                        break;
                    }
                };
                before = page.entries.first().map(|entry| entry.index);
                let more = page.more && before.is_some();
                // Folding what was said takes a while where much was said.
                let (words, of) = (Arc::clone(&words), Arc::clone(&summary));
                let found = spawn_blocking(move || matches(&words, &of, page.entries)).await;
                let found = found.map_err(|_| Error::Failed("the search was given up".into()))?;
                answer.messages.extend(found);
                if !more {
                    break;
                }
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn all_words_have_to_be_there_and_some_text_is_shown_around_the_first() {
        let snippet = |query: &str, text: &str| Words::of(query).unwrap().snippet(text);
        assert_eq!(
            snippet("GREEN door", "The door is green.").as_deref(),
            Some("The door is green.")
        );
        assert_eq!(snippet("green window", "The door is green."), None);
        let long = format!("{}Straße{}", "ä".repeat(200), "ö".repeat(200));
        let cut = snippet("straße", &long).unwrap();
        assert!(cut.starts_with("…ä") && cut.ends_with("ö…"), "{cut}");
        assert!(
            cut.contains("Straße") && cut.chars().count() == 162,
            "{cut}"
        );
        assert!(Words::of("  ").is_err());
        assert!(Words::of(&"x".repeat(2000)).is_err());
    }
}
