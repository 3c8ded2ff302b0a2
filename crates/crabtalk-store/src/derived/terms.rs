//! Splits texts and queries into search terms.
//!
//! Scripts without spaces are split into pairs of characters, so that a word is found
//! anywhere in a text.

/// Longest term in bytes; the rest of a longer word is ignored.
const MAX_TERM: usize = 64;

/// Bytes of a text that are indexed; longer than a typical message.
const MAX_TEXT: usize = 64 * 1024;

/// Characters from which a query word also matches as a prefix.
const PREFIX_CHARS: usize = 3;

/// The terms of a text, separated by blanks.
pub(crate) fn of_text(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let mut terms = String::with_capacity(text.len());
    cut(text, |term| {
        if !terms.is_empty() {
            terms.push(' ');
        }
        terms.push_str(term);
    });
    terms
}

/// The terms of a query, and whether each also matches as a prefix.
pub(crate) fn of_query(words: &[String]) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for word in words {
        let mut terms = Vec::new();
        cut(word, |term| terms.push((term.to_owned(), false)));
        let is_pairs = word.chars().any(is_unspaced);
        // The last character of a run is also a term, since it may begin a pair.
        if is_pairs && terms.len() > 1 {
            terms.pop_if(|(last, _)| last.chars().count() == 1);
        }
        if let Some((last, is_prefix)) = terms.last_mut() {
            *is_prefix = is_pairs || last.chars().count() >= PREFIX_CHARS;
        }
        all.append(&mut terms);
    }
    all
}

/// A term that occurs only in texts of an agent's conversations.
pub(crate) fn of_agent(agent: &str) -> String {
    scope('§', agent)
}

/// A term that occurs only in texts of a sender's conversations.
pub(crate) fn of_sender(sender: &str) -> String {
    scope('¶', sender)
}

/// Prefixes a name with a character that words never contain.
fn scope(sign: char, name: &str) -> String {
    let mut term = sign.to_string();
    term.extend(name.bytes().map(|byte| format!("{byte:02x}")));
    term
}

fn cut(text: &str, mut add: impl FnMut(&str)) {
    let mut word = String::new();
    let mut last: Option<char> = None;
    for c in text.chars().flat_map(char::to_lowercase) {
        let is_part = c.is_alphanumeric();
        if is_part && !is_unspaced(c) {
            if let Some(last) = last.take() {
                add(last.encode_utf8(&mut [0; 4]));
            }
            if word.len() < MAX_TERM {
                word.push(c);
            }
            continue;
        }
        if !word.is_empty() {
            add(&word);
            word.clear();
        }
        let before = last.take();
        last = is_part.then_some(c);
        if let Some(before) = before {
            add(&before.to_string().chars().chain(last).collect::<String>());
        }
    }
    if !word.is_empty() {
        add(&word);
    }
    if let Some(last) = last {
        add(&last.to_string());
    }
}

/// Whether a character is Thai, Lao, Myanmar, Khmer, Han, kana or Hangul.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3000}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..)
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_queries_are_cut_alike() {
        for (text, terms) in [
            ("The door's GREEN, foo_bar", "the door s green foo bar"),
            ("東京都 and 山", "東京 京都 都 and 山"),
            ("", ""),
        ] {
            assert_eq!(of_text(text), terms);
        }
        for (query, terms) in [
            ("green DO", vec![("green", true), ("do", false)]),
            ("foo_barn", vec![("foo", false), ("barn", true)]),
            ("東京", vec![("東京", true)]),
            ("京", vec![("京", true)]),
            ("\" * ->", vec![]),
        ] {
            let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
            let found = of_query(&words);
            let found: Vec<_> = found.iter().map(|(term, all)| (&**term, *all)).collect();
            assert_eq!(found, terms, "{query}");
        }
    }
}
