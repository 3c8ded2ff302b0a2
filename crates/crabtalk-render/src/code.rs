//! Highlights code line by line.
//!
//! Invariants: grammars are loaded at the first code block; code in an unknown language, an
//! overlong line, and a line on which a grammar fails are shown
//! plain.

use crate::clean::clean;
use crate::line::{Line, Span};
use crate::theme;
use anstyle::Style;
use std::sync::OnceLock;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

/// Maximum bytes of a highlighted line; grammars are slow on long lines.
const MAX_LINE_BYTES: usize = 2_000;

/// Columns between tab stops.
const TAB: usize = 4;

/// Styles of scopes; the last match applies.
const STYLES: &[(&str, Style)] = &[
    ("comment", theme::COMMENT),
    ("string", theme::STRING),
    ("constant", theme::CONSTANT),
    ("constant.character.escape", theme::CONSTANT),
    ("keyword", theme::KEYWORD),
    ("keyword.operator", theme::PLAIN),
    ("storage", theme::KEYWORD),
    ("support.function", theme::NAME),
    ("entity.name", theme::NAME),
    ("variable.function", theme::NAME),
    ("markup.inserted", theme::ADDED),
    ("markup.deleted", theme::REMOVED),
    ("markup.heading", theme::HEADING),
    ("meta.diff.range", theme::CONSTANT),
    ("entity.name.tag", theme::KEYWORD),
    ("punctuation.definition.comment", theme::COMMENT),
];

struct Grammars {
    syntaxes: SyntaxSet,
    styles: Vec<(Scope, Style)>,
}

fn grammars() -> &'static Grammars {
    static GRAMMARS: OnceLock<Grammars> = OnceLock::new();
    GRAMMARS.get_or_init(|| Grammars {
        syntaxes: two_face::syntax::extra_newlines(),
        styles: STYLES
            .iter()
            .filter_map(|(name, style)| Some((Scope::new(name).ok()?, *style)))
            .collect(),
    })
}

/// Highlights the lines of one block in order.
pub(crate) struct Code {
    /// `None` shows lines plain.
    state: Option<(ParseState, ScopeStack)>,
}

impl Code {
    /// Creates a highlighter for a language name of a code block.
    pub(crate) fn new(language: &str) -> Self {
        let word = language
            .split([' ', ',', '{', ':'])
            .next()
            .unwrap_or_default();
        let plain = word.is_empty() || matches!(word, "text" | "txt" | "plain" | "console");
        let state = (!plain).then(|| {
            let syntaxes = &grammars().syntaxes;
            let syntax = syntaxes.find_syntax_by_token(word)?;
            Some((ParseState::new(syntax), ScopeStack::new()))
        });
        Self {
            state: state.flatten(),
        }
    }

    /// Creates a highlighter for a file name.
    pub(crate) fn of_file(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit('.').next().unwrap_or(name);
        Self::new(extension)
    }

    /// Highlights the next line, given without its end.
    pub(crate) fn line(&mut self, line: &str) -> Line {
        let line = untabbed(&clean(line));
        self.colored(&line).unwrap_or_else(|| {
            // After a failure the state is invalid for later lines.
            self.state = None;
            Line::plain(&line)
        })
    }

    fn colored(&mut self, line: &str) -> Option<Line> {
        let (state, scopes) = self.state.as_mut()?;
        if line.len() > MAX_LINE_BYTES {
            return Some(Line::plain(line));
        }
        let grammars = grammars();
        let mut ended = line.to_owned();
        ended.push('\n');
        let operations = state.parse_line(&ended, &grammars.syntaxes).ok()?;
        let mut spans = Vec::new();
        let mut at = 0;
        for (next, operation) in operations {
            let next = next.min(line.len());
            if next > at {
                spans.push(Span::new(&line[at..next], style(scopes, &grammars.styles)));
                at = next;
            }
            scopes.apply(&operation).ok()?;
        }
        if at < line.len() {
            spans.push(Span::new(&line[at..], style(scopes, &grammars.styles)));
        }
        Some(Line::from(spans))
    }
}

/// The style of the innermost scope with a style.
fn style(scopes: &ScopeStack, styles: &[(Scope, Style)]) -> Style {
    let of = |scope: &Scope| {
        let fits = styles.iter().rev();
        fits.filter(|(known, _)| known.is_prefix_of(*scope))
            .max_by_key(|(known, _)| known.len())
            .map(|(_, style)| *style)
    };
    scopes.scopes.iter().rev().find_map(of).unwrap_or_default()
}

/// Expands tabs to spaces.
fn untabbed(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for c in line.chars() {
        if c == '\t' {
            let spaces = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            out.push(c);
            column += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style_of(line: &Line, text: &str) -> Style {
        let span = line.spans().iter().find(|span| span.text().contains(text));
        span.unwrap_or_else(|| panic!("no {text:?} in {line:?}"))
            .style()
    }

    #[test]
    fn known_language_is_highlighted() {
        let mut code = Code::new("rust");
        let line = code.line("fn main() { let x = \"a\"; } // why");
        assert_eq!(line.text(), "fn main() { let x = \"a\"; } // why");
        assert_eq!(style_of(&line, "fn"), theme::KEYWORD);
        assert_eq!(style_of(&line, "main"), theme::NAME);
        assert_eq!(style_of(&line, "a"), theme::NAME, "main comes first");
        assert_eq!(style_of(&line, "why"), theme::COMMENT);
        for known in ["toml", "typescript", "py", "sh", "json", "diff"] {
            assert!(Code::new(known).state.is_some(), "{known}");
        }
    }

    #[test]
    fn unknown_language_is_plain() {
        let mut code = Code::new("klingon");
        assert_eq!(code.line("\tfn x\x1b"), Line::plain("    fn x<U+001B>"));
        assert!(Code::of_file("/a/b.rs").state.is_some());
        assert!(Code::of_file("/a/Makefile").state.is_some());
    }
}
