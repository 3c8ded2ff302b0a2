//! Renders memory for a model, in blocks that their content cannot close.

use crate::index::Query;
use crate::text::{cut, sentences, terms};
use crate::{FoundIn, Hit};
use crabtalk_domain::tags::{escape, line};
use std::collections::HashSet;

/// Bytes per token in the domain's estimate.
const TOKEN_BYTES: usize = 4;

/// The maximum text of a block of hits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) tokens: usize,
    pub(crate) tokens_per_hit: usize,
}

/// Selects the best sentences of a passage for a query, in order, within a limit.
pub(crate) fn snippet(text: &str, query: &Query, max_bytes: usize) -> String {
    let text = text.trim();
    if text.len() <= max_bytes {
        return one_line(text);
    }
    let wanted: HashSet<&str> = query.terms().collect();
    let ranges = sentences(text);
    let found = |range: &std::ops::Range<usize>| {
        let own: HashSet<String> = terms(&text[range.clone()]).into_iter().collect();
        own.iter()
            .filter(|term| wanted.contains(term.as_str()))
            .count()
    };
    // Of equal ones, the first.
    let best = (0..ranges.len())
        .rev()
        .max_by_key(|at| found(&ranges[*at]))
        .unwrap_or(0);
    let (mut from, mut to) = (best, best + 1);
    let length = |from: usize, to: usize| ranges[to - 1].end - ranges[from].start;
    while to < ranges.len() && length(from, to + 1) <= max_bytes {
        to += 1;
    }
    while from > 0 && length(from - 1, to) <= max_bytes {
        from -= 1;
    }
    one_line(&cut(
        &text[ranges[from].start..ranges[to - 1].end],
        max_bytes,
    ))
}

/// Hits as list items, as many as the budget allows.
pub(crate) fn items(hits: &[Hit], budget: Budget) -> String {
    let mut out = String::new();
    for hit in hits {
        let text = cut(&hit.snippet, budget.tokens_per_hit * TOKEN_BYTES);
        let item = format!("- {}: {}\n", heading(hit), escape(&text));
        if out.len() + item.len() > budget.tokens * TOKEN_BYTES && !out.is_empty() {
            break;
        }
        out.push_str(&item);
    }
    out
}

/// The source and time of a hit.
fn heading(hit: &Hit) -> String {
    let title = escape(&cut(&one_line(&hit.title), 200)).into_owned();
    let mut notes = Vec::new();
    let kind = match &hit.source {
        FoundIn::Entry { sender, .. } => {
            if !sender.is_empty() {
                notes.push(format!("from {}", escape(&cut(&one_line(sender), 80))));
            }
            "entry"
        }
        FoundIn::Archive {
            speaker,
            conversation,
            ..
        } => {
            let speaker = escape(&cut(&one_line(speaker), 80)).into_owned();
            notes.push(match speaker == conversation.sender.as_str() {
                true => format!("said by {speaker}"),
                false => format!(
                    "said by {speaker} to {}",
                    line(conversation.sender.as_str())
                ),
            });
            "archive"
        }
    };
    if let Some(day) = hit.at.get(..10) {
        notes.push(escape(day).into_owned());
    }
    match notes.is_empty() {
        true => format!("{kind} \"{title}\""),
        false => format!("{kind} \"{title}\" ({})", notes.join(", ")),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_surrounds_matches_and_ends_at_sentences() {
        let filler = "Here is some filler. ".repeat(20);
        let text = format!("{filler}The key lies under the mat. {filler}");
        let query = Query::parse("where is the key", None);
        let snippet = snippet(&text, &query, 80);
        assert!(snippet.contains("The key lies under the mat."), "{snippet}");
        assert!(snippet.len() <= 80 && snippet.ends_with('.'), "{snippet}");
        assert_eq!(super::snippet("short\ntext", &query, 80), "short text");
    }
}
