//! The text of an entry's file: frontmatter and content.

use crabtalk_files::Frontmatter;
use crabtalk_files::yaml::{self, Bounds};
use serde::{Deserialize, Deserializer, Serialize};

/// Limits of a frontmatter: seven short fields, and those that people add.
const BOUNDS: Bounds = Bounds {
    nodes: 1_000,
    depth: 16,
    aliases: 0,
};

const KNOWN: [&str; 7] = [
    "name",
    "description",
    "agent",
    "sender",
    "shared",
    "created",
    "updated",
];

/// An entry as in its file, with the fields in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// The name, which together with the sender identifies the entry.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// A line that helps to find the entry.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// The agent that wrote the entry; empty if a person did.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub agent: String,
    /// The sender who caused the entry; empty if a person wrote the file, which counts as an
    /// owner's.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub sender: String,
    /// RFC 3339 instant; empty if a person omitted it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub created: String,
    /// RFC 3339 instant of the last change by an agent.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub updated: String,
    /// Whether other senders can see an owner's entry (MEM-2).
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub shared: bool,
    /// The text of the entry.
    #[serde(skip)]
    pub content: String,
    /// Frontmatter lines with unknown fields, preserved verbatim.
    #[serde(skip)]
    pub(crate) foreign: String,
}

/// Reads a field that may be null.
fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Parses the text of a file; the error describes the fault.
pub(crate) fn parse(text: &str) -> Result<Entry, String> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    let (front, content) = match Frontmatter::of(&text) {
        Frontmatter::Found { front, body } => (front, body),
        Frontmatter::Missing => return Err("does not begin with a `---` line".into()),
        Frontmatter::Unended => return Err("has no second `---` line".into()),
    };
    let mut entry = match yaml::read::<Option<Entry>>(front, BOUNDS) {
        Ok(entry) => entry.unwrap_or_default(),
        Err(e) => return Err(format!("has an invalid frontmatter: {e}")),
    };
    for line in [&mut entry.name, &mut entry.description] {
        *line = line.trim().to_owned();
    }
    if entry.name.is_empty() {
        return Err("has no `name:` in its frontmatter".into());
    }
    content.trim().clone_into(&mut entry.content);
    entry.foreign = foreign_lines(front);
    Ok(entry)
}

/// Formats the text of the file.
pub(super) fn render(entry: &Entry) -> String {
    let front = yaml::write(entry);
    let (foreign, content) = (&entry.foreign, entry.content.trim());
    format!("---\n{front}{foreign}---\n\n{content}\n")
}

/// Unknown fields with their lines.
fn foreign_lines(front: &str) -> String {
    let mut out = String::new();
    let mut foreign = false;
    for line in front.lines() {
        let key = line
            .split_once(':')
            .map(|(key, _)| key.trim_matches(['"', '\'']));
        if !line.starts_with([' ', '\t', '-']) {
            foreign = key.is_none_or(|key| !KNOWN.contains(&key));
        }
        if foreign {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            name: "Pricing: solo \"dev\" tools".into(),
            description: "What we decided, #1".into(),
            agent: "crab".into(),
            sender: "tg:1".into(),
            shared: true,
            created: "2026-04-03T10:00:00Z".into(),
            updated: "2026-04-04T10:00:00Z".into(),
            content: "Ten dollars.\n\n---\nNot more.".into(),
            foreign: "tags:\n  - money\n".into(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(parse(&render(&entry())), Ok(entry()));
        for name in [
            "true", "null", "1.5", "- x", "é: #", "日本", "a\tb", "x ", "'q'", "@at", "~",
        ] {
            let one = Entry {
                name: name.trim().into(),
                content: "x".into(),
                ..Entry::default()
            };
            assert_eq!(parse(&render(&one)), Ok(one), "{name}");
        }
    }

    #[test]
    fn files_of_people_are_read() {
        let text = "\u{feff}---\r\nname: Entry Name\r\ndescription: Short\r\n---\r\n\r\nLong.\r\n";
        let want = Entry {
            name: "Entry Name".into(),
            description: "Short".into(),
            content: "Long.".into(),
            ..Entry::default()
        };
        assert_eq!(parse(text), Ok(want));
        assert_eq!(
            parse("---\nname: 2024\ncreated: 2024-01-01\n---")
                .unwrap()
                .name,
            "2024"
        );
    }

    #[test]
    fn missing_values_parse_as_empty_and_yes_only_for_sharing() {
        let text = "---\nname: yes\ndescription:\nsender: ~\nshared: yes\n---\nx\n";
        let want = Entry {
            name: "yes".into(),
            shared: true,
            content: "x".into(),
            ..Entry::default()
        };
        assert_eq!(parse(text), Ok(want));
    }

    #[test]
    fn broken_files_are_named_by_their_fault() {
        let bomb = format!("---\na: &a [x]\nb: [{}]\nname: n\n---\n", "*a,".repeat(500));
        for (text, want) in [
            ("", "does not begin with a `---` line"),
            ("# Title", "does not begin with a `---` line"),
            ("---\nname: x\n", "has no second `---` line"),
            (
                "---\ndescription: x\n---\n",
                "has no `name:` in its frontmatter",
            ),
            ("---\nname: [x\n---\n", "has an invalid frontmatter"),
            ("---\nname: {a: b}\n---\n", "has an invalid frontmatter"),
            (&bomb, "has an invalid frontmatter"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }
}
