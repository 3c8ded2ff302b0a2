//! The `<skill>` block for the model.
//!
//! Invariant: neither the skill's text nor a file's name nor an argument can end the block
//! or begin another one.

use crate::skills::skill::{Skill, SkillSummary};
use crabtalk_domain::tags::{attribute, escape};
use std::fmt::Write;

/// Maximum files in a block; the model can list the folder for others.
const MAX_LISTED_FILES: usize = 100;

/// Maximum skills in a list.
const MAX_LISTED_SKILLS: usize = 200;

/// Maximum characters of a description in a list. The format allows 1,024.
const MAX_LISTED_DESCRIPTION: usize = 300;

/// The placeholder for all arguments, after its `$`.
const ALL: &str = "ARGUMENTS";

/// Renders the block of a skill. Arguments replace `$ARGUMENTS`, `$1`, `$2` and
/// `$ARGUMENTS[0]`, `$ARGUMENTS[1]`; without a placeholder they follow the block.
pub(crate) fn render(skill: &Skill, arguments: &str) -> String {
    let arguments = arguments.trim();
    let (body, placed) = substitute(&skill.body, arguments);
    let mut out = format!(
        "<skill name=\"{}\" folder=\"{}\">\n{}\n",
        skill.summary.name,
        attribute(&skill.summary.folder.to_string_lossy()),
        escape(&body)
    );
    let files = &skill.files.paths;
    if !files.is_empty() {
        out.push_str("\nFiles of this skill, relative to its folder:\n");
        for path in files.iter().take(MAX_LISTED_FILES) {
            line(&mut out, format_args!("- {}", attribute(path)));
        }
        if let Some(more) = files.len().checked_sub(MAX_LISTED_FILES)
            && more > 0
        {
            line(&mut out, format_args!("- and {more} more"));
        }
    }
    out.push_str("</skill>");
    if !placed && !arguments.is_empty() {
        out.push_str("\n\n");
        out.push_str(&escape(arguments));
    }
    out
}

/// A list of skills, one per line.
pub fn render_list(skills: &[SkillSummary]) -> String {
    let mut out = String::new();
    for skill in skills.iter().take(MAX_LISTED_SKILLS) {
        let description = one_line(&skill.description);
        let cut = description
            .char_indices()
            .nth(MAX_LISTED_DESCRIPTION)
            .map(|(at, _)| at);
        let (shown, dots) = match cut {
            Some(at) => (&description[..at], "..."),
            None => (description.as_str(), ""),
        };
        line(
            &mut out,
            format_args!("- {}: {}{dots}", skill.name, escape(shown)),
        );
    }
    if let Some(more) = skills.len().checked_sub(MAX_LISTED_SKILLS)
        && more > 0
    {
        line(&mut out, format_args!("- and {more} more"));
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a String takes all");
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Replaces the placeholders by the arguments; returns whether there was one. A number
/// beyond the arguments is unchanged, so that `$1` in a shell example survives; `\$`
/// escapes any placeholder. Replacements are not expanded again.
fn substitute(body: &str, arguments: &str) -> (String, bool) {
    let words = words(arguments);
    let (mut out, mut placed) = (String::with_capacity(body.len()), false);
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        let (before, place) = rest.split_at(at);
        let digits = place[1..].bytes().take_while(u8::is_ascii_digit).count();
        let (value, len) = if let Some(after) = place[1..].strip_prefix(ALL)
            && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        {
            match indexed(after) {
                Some((n, len)) => (words.get(n).copied(), 1 + ALL.len() + len),
                None => (Some(arguments), 1 + ALL.len()),
            }
        } else {
            let number = place[1..=digits].parse::<usize>().ok();
            let word = number.and_then(|n| words.get(n.checked_sub(1)?));
            (word.copied(), 1 + digits)
        };
        match (value, before.strip_suffix('\\')) {
            (Some(_), Some(before)) => {
                out.push_str(before);
                out.push_str(&place[..len]);
            }
            (Some(value), None) => {
                out.push_str(before);
                out.push_str(value);
                placed = true;
            }
            (None, _) => {
                out.push_str(before);
                out.push_str(&place[..len]);
            }
        }
        rest = &place[len..];
    }
    out.push_str(rest);
    (out, placed)
}

/// The number in `[n]`, from 0, and the length of the whole text.
fn indexed(after: &str) -> Option<(usize, usize)> {
    let (number, _) = after.strip_prefix('[')?.split_once(']')?;
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    plain.then_some((number.parse().ok()?, number.len() + 2))
}

/// Splits arguments at white space outside of quotes.
fn words(arguments: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = arguments.trim_start();
    while let Some(first) = rest.chars().next() {
        let quoted = matches!(first, '"' | '\'')
            .then(|| rest[1..].split_once(first))
            .flatten();
        let (word, after) = match quoted {
            Some(pair) => pair,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        out.push(word);
        rest = after.trim_start();
    }
    out
}

#[cfg(test)]
mod tests;
