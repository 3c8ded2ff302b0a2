//! Cuts text at the ends of sentences.

use std::ops::Range;

/// Longest passage: about 150 words. A chat message is one passage; a pasted report does
/// not outweigh other texts by its length.
const MAX_PASSAGE_BYTES: usize = 1_000;

/// The sentences of a text, which together cover it.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' | '؟' | '।' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            out.push(start..end);
            start = end;
        }
    }
    if start < text.len() {
        out.push(start..text.len());
    }
    out
}

/// Cuts a text into passages of whole sentences if possible.
pub(crate) fn passages(text: &str) -> Vec<Range<usize>> {
    if text.len() <= MAX_PASSAGE_BYTES {
        return std::iter::once(0..text.len()).collect();
    }
    let mut out: Vec<Range<usize>> = Vec::new();
    for sentence in sentences(text) {
        match out.last_mut() {
            Some(last) if sentence.end - last.start <= MAX_PASSAGE_BYTES => last.end = sentence.end,
            _ => out.extend(hard_cuts(text, sentence)),
        }
    }
    out.retain(|range| !text[range.clone()].trim().is_empty());
    out
}

/// Cuts a sentence that is too long between words, or else between characters.
fn hard_cuts(text: &str, mut rest: Range<usize>) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    while rest.len() > MAX_PASSAGE_BYTES {
        let most = text.floor_char_boundary(rest.start + MAX_PASSAGE_BYTES);
        let piece = &text[rest.start..most];
        let end = piece
            .rfind(char::is_whitespace)
            .filter(|at| *at > 0)
            .map_or(most, |at| {
                rest.start + text[rest.start..].ceil_char_boundary(at + 1)
            });
        out.push(rest.start..end);
        rest.start = end;
    }
    out.push(rest);
    out
}

/// Shortens a text to `max_bytes` at the end of a sentence, or between words with an
/// ellipsis if no sentence fits.
pub(crate) fn cut(text: &str, max_bytes: usize) -> String {
    let text = text.trim();
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let whole = sentences(text)
        .into_iter()
        .map(|s| s.end)
        .take_while(|end| *end <= max_bytes);
    if let Some(end) = whole.last().filter(|end| !text[..*end].trim().is_empty()) {
        return text[..end].trim_end().to_owned();
    }
    let most = text.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8()));
    let piece = &text[..most];
    let end = piece.rfind(char::is_whitespace).unwrap_or(most);
    format!("{}…", piece[..end].trim_end())
}
