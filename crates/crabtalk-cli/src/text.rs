//! Cleans and shortens text for terminals.

use crate::todo::Todo;
use crabtalk_proto::{Image, visible, visible_prose};
use jiff::Timestamp;
use std::borrow::Cow;
use std::path::Path;

/// Maximum characters of a summary.
const SUMMARY_CHARS: usize = 100;

/// Escapes control characters, except newline and tab, and bidirectional
/// controls.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    visible_prose(text)
}

/// One cleaned line of limited length.
pub(crate) fn summary(text: &str) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUMMARY_CHARS {
        return line;
    }
    let cut: String = line.chars().take(SUMMARY_CHARS - 3).collect();
    format!("{cut}...")
}

/// The main argument of a tool call, a todo list in one line, or names of members.
pub(crate) fn call_summary(arguments: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(arguments).ok();
    let telling = ["command", "path", "question", "name", "query"];
    let text = parsed
        .as_ref()
        .and_then(|value| telling.iter().find_map(|key| value.get(key)?.as_str()));
    if let (None, Some(list)) = (text, Todo::parse(arguments)) {
        return list.change(&list);
    }
    let tasks = parsed.as_ref().and_then(|value| value["tasks"].as_array());
    let members = tasks.map(|tasks| tasks.iter().filter_map(|task| task["agent"].as_str()));
    let members = members.map(|names| names.collect::<Vec<_>>().join(", "));
    let members = members.filter(|names| !names.is_empty());
    let text = visible(text.or(members.as_deref()).unwrap_or(arguments));
    match text.lines().count() {
        0 | 1 => summary(&text),
        lines => format!("{} ({lines} lines)", summary(&text)),
    }
}

/// Formats money, as in `$0.0068`.
pub(crate) fn money(money: f64) -> String {
    const SMALLEST: f64 = 0.0001;
    if money > 0.0 && money < SMALLEST {
        return format!("<${SMALLEST}");
    }
    format!("${money:.4}")
}

/// Formats spending; mentions tokens without a price.
pub(crate) fn spent(spent: f64, unpriced_tokens: u64) -> String {
    match (spent > 0.0, unpriced_tokens > 0) {
        (false, true) => "no price".to_owned(),
        (true, true) => format!("{} and more", money(spent)),
        (_, false) => money(spent),
    }
}

/// Placeholder of an image.
pub(crate) fn image_note(image: &Image) -> String {
    let size = match image.data.len() {
        bytes @ 0..1_000 => format!("{bytes} bytes"),
        bytes @ 1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        bytes => format!("{:.1} MB", bytes as f64 / 1e6),
    };
    format!("[{}, {size}]", summary(&image.media_type))
}

/// A count with a regular noun.
pub(crate) fn counted(count: impl TryInto<u64>, what: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

pub(crate) fn written(messages: usize, file: &Path) -> String {
    let are = if messages == 1 { "is" } else { "are" };
    format!(
        "{} {are} in {}",
        counted(messages, "message"),
        file.display()
    )
}

/// Formats a duration in words.
pub(crate) fn duration(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..86_400 => both((secs / 3_600, "h"), (secs % 3_600 / 60, "min")),
        _ => both((secs / 86_400, "d"), (secs % 86_400 / 3_600, "h")),
    }
}

/// Formats two units; a zero second one is omitted.
fn both((large, of): (u64, &str), small: (u64, &str)) -> String {
    match small {
        (0, _) => format!("{large} {of}"),
        (small, than) => format!("{large} {of} {small} {than}"),
    }
}

/// Formats elapsed time for a running clock.
pub(crate) fn ago_secs(passed: std::time::Duration) -> String {
    match passed.as_secs() {
        secs @ 0..60 => format!("{secs}s"),
        secs => format!("{}m{:02}s", secs / 60, secs % 60),
    }
}

/// A duration in milliseconds in words.
pub(crate) fn ago_millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.1} s", millis as f64 / 1e3),
        _ => ago_secs(std::time::Duration::from_millis(millis)),
    }
}

/// Formats a timestamp to the second; other text is unchanged.
pub(crate) fn instant(at: &str) -> String {
    let Ok(then) = at.parse::<Timestamp>() else {
        return at.to_owned();
    };
    then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a timestamp in local time to the second; other text is unchanged.
pub(crate) fn local(at: &str) -> String {
    let Ok(then) = at.parse::<Timestamp>() else {
        return at.to_owned();
    };
    let then = then.to_zoned(crabtalk_files::local_zone());
    then.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats a timestamp as age; other text is unchanged.
pub(crate) fn ago(at: &str, now: Timestamp) -> String {
    let Ok(then) = at.parse::<Timestamp>() else {
        return at.to_owned();
    };
    match now.as_second() - then.as_second() {
        // Clocks differ slightly.
        secs @ -60..60 if secs < 5 => "now".to_owned(),
        secs @ 0.. => format!("{} ago", duration(secs.unsigned_abs())),
        secs => format!("in {}", duration(secs.unsigned_abs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_shown_as_ages() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        for (at, want) in [
            ("2026-11-22T11:59:58.123Z", "now"),
            ("2026-11-22T12:00:03Z", "now"),
            ("2026-11-22T11:59:20Z", "40 s ago"),
            ("2026-11-22T14:30:00+02:00", "in 30 min"),
            ("2026-11-22T10:30:00+00:00", "1 h 30 min ago"),
            ("2026-11-01T12:00:00Z", "21 d ago"),
            ("Yesterday", "Yesterday"),
            ("", ""),
        ] {
            assert_eq!(ago(at, now), want, "{at}");
        }
    }

    #[test]
    fn instant_has_no_fraction() {
        for (at, want) in [
            ("2026-11-23T00:34:29.083409475Z", "2026-11-23T00:34:29Z"),
            ("2026-11-23T02:34:29.5+02:00", "2026-11-23T00:34:29Z"),
            ("-", "-"),
        ] {
            assert_eq!(instant(at), want);
        }
    }

    #[test]
    fn money_is_never_rounded_to_nothing() {
        let shown = [0.0, 0.000_01, 0.000_1, 1.234_56].map(money);
        assert_eq!(shown, ["$0.0000", "<$0.0001", "$0.0001", "$1.2346"]);
        let shown = [(0.0, 0), (0.0, 7), (1.5, 7), (1.5, 0)].map(|(m, t)| spent(m, t));
        assert_eq!(
            shown,
            ["$0.0000", "no price", "$1.5000 and more", "$1.5000"]
        );
    }

    #[test]
    fn image_is_one_line() {
        let notes = [999, 34_567, 2_450_000].map(|bytes| {
            image_note(&Image {
                media_type: "image/png\x1b".into(),
                data: vec![0; bytes].into(),
            })
        });
        assert_eq!(
            notes,
            [
                "[image/png<U+001B>, 999 bytes]",
                "[image/png<U+001B>, 34 KB]",
                "[image/png<U+001B>, 2.5 MB]"
            ]
        );
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(
            clean("a\x1b[2Jb\x07\r\n\tc\u{9b}31m"),
            "a<U+001B>[2Jb<U+0007>\n\tc<U+009B>31m"
        );
        assert_eq!(clean("rm \u{202e}x"), "rm <U+202E>x");
        assert_eq!(clean("héllo 🦀 漢字"), "héllo 🦀 漢字");
    }

    #[test]
    fn summaries_are_one_short_line() {
        assert_eq!(summary("a\n  b\tc"), "a b c");
        assert_eq!(summary(&"x".repeat(200)).chars().count(), 100);
        assert_eq!(
            call_summary(r#"{"command":"ls\n-l","timeout":1}"#),
            "ls -l (2 lines)"
        );
        assert_eq!(call_summary("not json"), "not json");
    }

    #[test]
    fn counted_nouns_have_plurals() {
        let said = [0_usize, 1, 2].map(|count| counted(count, "message"));
        assert_eq!(said, ["0 messages", "1 message", "2 messages"]);
    }

    #[test]
    fn durations_read_well() {
        let said = [0, 59, 60, 3_599, 3_600, 5_400, 86_400, 90_061].map(duration);
        assert_eq!(
            said,
            [
                "0 s",
                "59 s",
                "1 min",
                "59 min",
                "1 h",
                "1 h 30 min",
                "1 d",
                "1 d 1 h"
            ]
        );
    }
}
