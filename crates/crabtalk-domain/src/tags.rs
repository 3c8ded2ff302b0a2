//! Tags that separate the daemon's text from quoted content.
//!
//! Invariants: content from people, files, skills, memories and models passes through
//! [`escape`] before it is placed where a tag could occur, so that it cannot open or
//! close a tag of the daemon; [`TAGS`] lists every such tag; escaping is idempotent.

use std::borrow::Cow;

/// Every tag that the daemon writes. Add the tag of a new block here.
pub const TAGS: [&str; 10] = [
    "environment",
    "from",
    "identity",
    "memory",
    "project",
    "recall",
    "scope",
    "skill",
    "skills",
    "system",
];

/// The closing tag of a skill's block.
const SKILL_END: &str = "</skill>";

/// Wraps foreign content in a tag of the daemon.
pub fn block(tag: &str, content: &str) -> String {
    debug_assert!(TAGS.contains(&tag), "a tag that is not in TAGS");
    format!("<{tag}>\n{}\n</{tag}>", escape(content.trim()))
}

/// Escapes every opening and closing tag of the daemon, regardless of spacing, case
/// and invisible characters.
pub fn escape(text: &str) -> Cow<'_, str> {
    disarm(text, &TAGS)
}

/// Escapes one tag only.
pub(crate) fn escape_only<'t>(text: &'t str, tag: &str) -> Cow<'t, str> {
    disarm(text, &[tag])
}

/// Escapes a message of a person, except a skill's block at its beginning, which
/// comes from a slash command.
pub(crate) fn escape_message(text: &str) -> Cow<'_, str> {
    let block = text
        .strip_prefix("<skill name=\"")
        .and_then(|rest| rest.split_once(SKILL_END));
    let Some((within, behind)) = block else {
        return escape(text);
    };
    let (within, behind) = (escape(within), escape(behind));
    if let (Cow::Borrowed(_), Cow::Borrowed(_)) = (&within, &behind) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("<skill name=\"{within}{SKILL_END}{behind}"))
}

/// Escapes a text for an attribute: one line without quotes or angle brackets.
pub fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes a text for one line of a block.
pub fn line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    escape(text).replace(breaks, "\u{fffd}")
}

fn disarm<'t>(text: &'t str, tags: &[&str]) -> Cow<'t, str> {
    let mut out = String::new();
    let mut done = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        if begins_tag(&text[at + 1..], tags) {
            out.push_str(&text[done..at]);
            out.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Whether the text after a `<` begins with the name of one of these tags.
fn begins_tag(rest: &str, tags: &[&str]) -> bool {
    let rest = rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace() || is_unseen(c));
    tags.iter().any(|tag| {
        let mut seen = rest.chars().filter(|c| !is_unseen(*c));
        let is_name = tag
            .chars()
            .all(|want| seen.next().is_some_and(|c| c.eq_ignore_ascii_case(&want)));
        // A longer name is a different tag.
        is_name
            && seen
                .next()
                .is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_')))
    })
}

/// Removes invisible characters, which could hide instructions. Line breaks and tabs
/// remain.
pub fn seen(text: &str) -> Cow<'_, str> {
    match text.chars().any(is_unseen) {
        true => Cow::Owned(text.chars().filter(|c| !is_unseen(*c)).collect()),
        false => Cow::Borrowed(text),
    }
}

/// Whether a character is invisible.
fn is_unseen(c: char) -> bool {
    (c.is_control() && !c.is_whitespace())
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffc}' | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests;
