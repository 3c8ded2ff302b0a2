//! The text of an entry's file: frontmatter and content.

use serde::Deserialize;
use std::fmt::Write;

/// Nodes, events and aliases a frontmatter may have: it holds seven short
/// fields, and a bomb of aliases must end quickly.
const MAX_YAML_NODES: usize = 1_000;
const MAX_YAML_DEPTH: usize = 16;

const KNOWN: [&str; 7] = [
    "name",
    "description",
    "agent",
    "sender",
    "shared",
    "created",
    "updated",
];

/// A memory as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Its identity, with the sender.
    pub name: String,
    /// One line that helps to find it.
    pub description: String,
    /// The agent that wrote it; empty when a person did.
    pub agent: String,
    /// Who caused it; empty when a person wrote the file, who is an owner.
    pub sender: String,
    /// Whether an owner's entry reaches other senders (MEM-2).
    pub shared: bool,
    /// RFC 3339 instant; empty when a person left it out.
    pub created: String,
    /// RFC 3339 instant of the last change by an agent.
    pub updated: String,
    /// What it says.
    pub content: String,
    /// Lines of the frontmatter that are not ours, kept as they are.
    pub(crate) foreign: String,
}

#[derive(Deserialize, Default)]
struct Front {
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    sender: Option<String>,
    #[serde(default)]
    shared: Option<bool>,
    #[serde(default)]
    created: Option<String>,
    #[serde(default)]
    updated: Option<String>,
}

/// Reads a file's text; an error says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Entry, String> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    let body = text
        .strip_prefix("---\n")
        .ok_or("does not begin with a `---` line")?;
    let (front, content) = split_end(body).ok_or("has no second `---` line")?;
    let fields = match plain_fields(front) {
        Some(fields) => fields,
        None => serde_saphyr::from_str_with_options(front, options())
            .map_err(|e| format!("has a bad frontmatter: {}", first_line(&e.to_string())))?,
    };
    let name = fields
        .name
        .map(|n| n.trim().to_owned())
        .filter(|n| !n.is_empty());
    Ok(Entry {
        name: name.ok_or("has no `name:` in its frontmatter")?,
        description: fields.description.unwrap_or_default().trim().to_owned(),
        agent: fields.agent.unwrap_or_default(),
        sender: fields.sender.unwrap_or_default(),
        shared: fields.shared.unwrap_or_default(),
        created: fields.created.unwrap_or_default(),
        updated: fields.updated.unwrap_or_default(),
        content: content.trim().to_owned(),
        foreign: foreign_lines(front),
    })
}

/// The file's text.
pub(super) fn render(entry: &Entry) -> String {
    let mut out = String::from("---\n");
    let mut field = |key: &str, value: &str| {
        if !value.is_empty() {
            writeln!(out, "{key}: {}", scalar(value)).expect("a String takes all");
        }
    };
    field("name", &entry.name);
    field("description", &entry.description);
    field("agent", &entry.agent);
    field("sender", &entry.sender);
    field("created", &entry.created);
    field("updated", &entry.updated);
    if entry.shared {
        out.push_str("shared: true\n");
    }
    out.push_str(&entry.foreign);
    out.push_str("---\n\n");
    out.push_str(entry.content.trim());
    out.push('\n');
    out
}

fn split_end(body: &str) -> Option<(&str, &str)> {
    if let Some(content) = body.strip_prefix("---\n") {
        return Some(("", content));
    }
    let at = body.match_indices("\n---").find(|(at, _)| {
        let rest = &body[at + 4..];
        rest.is_empty() || rest.starts_with('\n')
    })?;
    Some((&body[..=at.0], &body[at.0 + 4..]))
}

/// Fields that we do not know, with the lines that belong to them.
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

/// Reads what `render` writes, many times faster than YAML is read; `None` for
/// everything that is not exactly so.
fn plain_fields(front: &str) -> Option<Front> {
    let mut fields = Front::default();
    for line in front.lines() {
        let (key, value) = line.split_once(": ")?;
        if (key, value) == ("shared", "true") {
            fields.shared = Some(true);
            continue;
        }
        let value = match value.starts_with('"') {
            true => serde_json::from_str(value).ok()?,
            false => is_plain(value).then(|| value.to_owned())?,
        };
        let field = match key {
            "name" => &mut fields.name,
            "description" => &mut fields.description,
            "agent" => &mut fields.agent,
            "sender" => &mut fields.sender,
            "created" => &mut fields.created,
            "updated" => &mut fields.updated,
            _ => return None,
        };
        if field.replace(value).is_some() {
            return None;
        }
    }
    Some(fields)
}

/// A YAML scalar: plain where that is safe, else as JSON, which YAML includes.
fn scalar(text: &str) -> String {
    match is_plain(text) {
        true => text.to_owned(),
        false => serde_json::to_string(text).expect("text is JSON"),
    }
}

/// Whether the text means itself in YAML.
fn is_plain(text: &str) -> bool {
    let harmless =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | ',' | '(' | ')');
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    text.starts_with(char::is_alphabetic)
        && !text.ends_with(' ')
        && !word
        && text.chars().all(harmless)
}

fn options() -> serde_saphyr::Options {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_nodes = MAX_YAML_NODES;
    budget.max_events = 4 * MAX_YAML_NODES;
    budget.max_depth = MAX_YAML_DEPTH;
    budget.max_aliases = 0;
    budget.max_anchors = 0;
    budget.max_documents = 1;
    budget.max_inclusion_depth = 0;
    let mut options = serde_saphyr::Options::default();
    options.budget = Some(budget);
    options
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
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
    fn the_fast_way_reads_like_yaml() {
        let text = render(&Entry {
            foreign: String::new(),
            ..entry()
        });
        let front = split_end(text.strip_prefix("---\n").unwrap()).unwrap().0;
        let fast = plain_fields(front).expect("our own writing");
        let slow: Front = serde_saphyr::from_str_with_options(front, options()).unwrap();
        assert_eq!((&fast.name, &fast.sender), (&slow.name, &slow.sender));
        assert_eq!((&fast.created, fast.shared), (&slow.created, slow.shared));
        for other in [
            "name: [x]",
            "name: yes",
            "name: a # b",
            "name: a\nname: b",
            "tags: x",
            "name:",
        ] {
            assert!(plain_fields(other).is_none(), "{other}");
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
            ("---\nname: [x\n---\n", "has a bad frontmatter"),
            ("---\nname: {a: b}\n---\n", "has a bad frontmatter"),
            (&bomb, "has a bad frontmatter"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }
}
