//! Splits text and queries into words.
//!
//! The index splits text at characters other than letters and digits, removes accents and
//! reduces words to stems. In scripts without spaces each character is a word, and a
//! query is a phrase of them. `parseRequest` is also found by `parse` and `request`.

use unicode_normalization::UnicodeNormalization;

/// Maximum number of words in a query.
const MAX_WORDS: usize = 32;

/// Whether a character alone is a word, as in scripts without spaces.
fn stands_alone(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff            // Thai, Lao
        | 0x1000..=0x109f          // Burmese
        | 0x1780..=0x17ff          // Khmer
        | 0x3040..=0x30ff          // Hiragana, Katakana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3134f
        | 0xac00..=0xd7af          // Hangul
    )
}

/// Prepares a text for the index.
pub(crate) fn prepare(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut word = String::new();
    for c in text.nfkc() {
        if stands_alone(c) {
            flush(&mut word, &mut out);
            out.push(c);
            out.push(' ');
        } else if c.is_alphanumeric() {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            // Combining marks stay with their letter.
            if !c.is_whitespace() && !c.is_ascii() {
                out.push(c);
            } else {
                out.push(' ');
            }
        }
    }
    flush(&mut word, &mut out);
    out
}

/// Writes a word, and its camel-case parts.
fn flush(word: &mut String, out: &mut String) {
    out.push_str(word);
    let mut parts = String::new();
    let mut before: Option<char> = None;
    for c in word.chars() {
        if c.is_uppercase() && before.is_some_and(char::is_lowercase) {
            parts.push(' ');
        }
        parts.push(c);
        before = Some(c);
    }
    if parts.len() > word.len() {
        out.push(' ');
        out.push_str(&parts);
        out.push(' ');
    }
    word.clear();
}

/// A query: terms of one or more words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The terms in the index's query syntax.
    terms: Vec<String>,
    /// The terms in lower case, for searching lines.
    pub(crate) plain: Vec<String>,
}

impl Question {
    /// Parses words and quoted phrases. `None` without any word.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut terms = Vec::new();
        let mut plain = Vec::new();
        for (at, piece) in text.split('"').enumerate() {
            let phrases: Vec<&str> = match at % 2 {
                1 => vec![piece],
                _ => piece.split_whitespace().collect(),
            };
            for phrase in phrases
                .into_iter()
                .filter(|p| p.chars().any(char::is_alphanumeric))
            {
                let normal: String = phrase.nfkc().collect();
                plain.push(normal.to_lowercase());
                // Without camel-case parts, since the whole word is indexed too.
                let spaced: String = normal
                    .chars()
                    .flat_map(|c| match stands_alone(c) {
                        true => [' ', c, ' '],
                        false => ['\0', c, '\0'],
                    })
                    .filter(|c| *c != '\0')
                    .collect();
                terms.push(format!("\"{}\"", spaced.trim()));
            }
        }
        terms.truncate(MAX_WORDS);
        plain.truncate(MAX_WORDS);
        (!terms.is_empty()).then_some(Self { terms, plain })
    }

    /// The query for texts with all terms.
    pub(crate) fn all(&self) -> String {
        self.terms.join(" AND ")
    }

    /// The query for texts with any term.
    pub(crate) fn any(&self) -> String {
        self.terms.join(" OR ")
    }

    /// The number of terms that occur in a line.
    pub(crate) fn fits(&self, line: &str) -> usize {
        let line: String = line.nfkc().collect::<String>().to_lowercase();
        let has = |term: &&String| {
            // A stem is usually a prefix of its word.
            let short: String = term
                .chars()
                .take(term.chars().count().saturating_sub(2).max(3))
                .collect();
            line.contains(term.as_str()) || line.contains(&short)
        };
        self.plain.iter().filter(has).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_words() {
        for (text, want) in [
            ("a b", "a b"),
            ("日本語x", "日 本 語 x"),
            ("parseRequest(x)", "parseRequest parse Request  x "),
            ("HTTPServer", "HTTPServer"),
            ("ﬁne", "fine"),
        ] {
            assert_eq!(prepare(text), want);
        }
    }

    #[test]
    fn a_question_is_terms_in_quotes() {
        let question = Question::new("some \"exact words\" 日本 x\" - ").expect("words");
        let all = "\"some\" AND \"exact words\" AND \"日  本\" AND \"x\"";
        assert_eq!(question.all(), all);
        assert_eq!(question.fits("Some x"), 2);
        for text in ["", "  ", "\"\"", "- * (", "\""] {
            assert_eq!(Question::new(text), None, "{text}");
        }
        let many = Question::new(&"w ".repeat(500)).expect("words");
        assert_eq!(many.plain.len(), MAX_WORDS);
    }
}
