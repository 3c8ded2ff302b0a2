//! The format of an event's fields in a log line.
//!
//! Invariants, since senders, models and files choose many values: no value ends its
//! line, controls the terminal or imitates another field; invisible characters and those
//! that change the direction of text are escaped.

use std::borrow::Cow;
use std::fmt::{self, Debug, Write};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The field of an event's own text.
const MESSAGE: &str = "message";

/// Writes fields as `name=value`, quoting values that need it.
pub(super) struct Quoted;

impl<'w> FormatFields<'w> for Quoted {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line {
            writer,
            first: true,
            written: Ok(()),
        };
        fields.record(&mut line);
        line.written
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    first: bool,
    written: fmt::Result,
}

impl Line<'_> {
    fn write(&mut self, name: &str, text: &str) -> fmt::Result {
        if !self.first {
            self.writer.write_char(' ')?;
        }
        self.first = false;
        if name == MESSAGE {
            return visible(&mut self.writer, text);
        }
        write!(self.writer, "{name}={}", value(text))
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, text: &str) {
        self.written = self.written.and_then(|()| self.write(field.name(), text));
    }

    fn record_debug(&mut self, field: &Field, shown: &dyn Debug) {
        self.record_str(field, &format!("{shown:?}"));
    }
}

/// A value, quoted unless it is unambiguous.
fn value(text: &str) -> Cow<'_, str> {
    let plain = |c: char| is_visible(c) && !matches!(c, ' ' | '"' | '=' | '\\');
    if !text.is_empty() && text.chars().all(plain) || is_quoted(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text:?}"))
    }
}

/// Whether a text is already quoted, in the format of `Debug`.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return false;
    };
    let mut escaped = false;
    for c in inner.chars() {
        match c {
            _ if !is_visible(c) => return false,
            '"' if !escaped => return false,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    !escaped
}

/// Writes text with its invisible characters escaped.
fn visible(to: &mut impl Write, text: &str) -> fmt::Result {
    for c in text.chars() {
        if is_visible(c) {
            to.write_char(c)?;
        } else {
            write!(to, "{}", c.escape_debug())?;
        }
    }
    Ok(())
}

/// Whether a character is visible: not a control character, a direction mark, of zero
/// width, or a space other than the blank.
fn is_visible(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_testkit::Buffer;

    /// The log lines of `work`.
    fn logged(work: impl FnOnce()) -> String {
        let lines = Buffer::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .fmt_fields(Quoted)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        lines.text()
    }

    const HOSTILE: &str = "x code=0\n2026-01-01T00:00:00Z  INFO security: all is well\r\
        \u{1b}[2J\u{1b}]0;title\u{7}\u{202e}gpj.exe\u{200b}\u{2028}\u{85}\u{9b}31m";

    #[test]
    fn values_cannot_forge_lines_fields_or_controls() {
        let log = logged(|| {
            tracing::warn!(sender = HOSTILE, code = 403, "a text");
            tracing::warn!(sender = %HOSTILE, code = 403, "a display");
            tracing::warn!(sender = ?HOSTILE, code = 403, "a debug");
            tracing::warn!(sender = ?Some(HOSTILE), code = 403, "a part");
            let error = std::io::Error::other(HOSTILE);
            tracing::warn!(%error, code = 403, "an error");
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, code = 403, "as such");
            tracing::warn!(code = 403, "a message of {HOSTILE}");
        });
        assert_eq!(log.lines().count(), 7, "{log}");
        let strange = |c: char| c != '\n' && !is_visible(c);
        assert_eq!(log.find(strange), None, "{log}");
        for line in log.lines().take(6) {
            // Outside of quotes only the true code appears.
            let outside: String = line.split(" code=403").collect();
            assert!(line.contains(" code=403"), "{line}");
            assert!(
                !outside.contains(" code=0")
                    || outside.contains("\"x code=0")
                    || outside.contains("\\\"x code=0"),
                "{line}"
            );
        }
    }

    #[test]
    fn plain_values_are_written_unchanged() {
        let log = logged(|| {
            let path = std::path::Path::new("/home/jürgen/it's/a.md");
            tracing::info!(path = %path.display(), n = 7, took = ?std::time::Duration::from_millis(15), "say \"hi\" to C:\\x");
        });
        assert_eq!(
            log,
            " INFO say \"hi\" to C:\\x path=/home/jürgen/it's/a.md n=7 took=15ms\n"
        );
    }

    #[test]
    fn ambiguous_values_are_quoted_once() {
        for (text, shown) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a=b", r#""a=b""#),
            (r#""a b""#, r#""a b""#),
            (r#""a" b="c""#, r#""\"a\" b=\"c\"""#),
            (r#""a\""#, r#""\"a\\\"""#),
            ("Some(1)", "Some(1)"),
        ] {
            assert_eq!(value(text), shown, "{text}");
        }
    }
}
