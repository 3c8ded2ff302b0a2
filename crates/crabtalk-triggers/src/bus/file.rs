//! Reads and edits `subscriptions.toml`, keeping comments.
//!
//! Invariants: a broken subscription does not affect others; an unreadable file is
//! never overwritten; a concurrent change is a conflict.

use crate::bus::Subscription;
use crabtalk_files::tables::{Kind, TablesError, id_of};
use std::path::Path;
use toml_edit::Table;

/// Largest file: all subscriptions with comments.
const MAX_BYTES: u64 = 1024 * 1024;

/// Maximum number of subscriptions, all of which are compared with each event.
pub const MAX_SUBSCRIPTIONS: usize = 1000;

const ENTRIES: &str = "subscription";

/// The head of a file that the daemon creates.
const HEAD: &str = "# Subscriptions start agents when an event is published. `crabtalk subscriptions` changes them.\n\
     # After an edit by hand, run `crabtalk daemon reload`.\n";

/// `[[subscription]]` tables.
pub const SUBSCRIPTIONS: Kind = Kind {
    key: ENTRIES,
    head: HEAD,
    limit: MAX_BYTES,
};

/// An invalid part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The error and the remedy.
    pub why: String,
}

/// The content of the file.
#[derive(Debug, Default)]
pub struct Read {
    /// Valid subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// Invalid parts.
    pub findings: Vec<Finding>,
    /// The text; `None` if the file does not exist.
    pub text: Option<String>,
}

/// Reads the subscriptions of the file; a missing file has none.
///
/// # Errors
///
/// The file cannot be read or is not TOML.
pub fn read_subscriptions(path: &Path) -> Result<Read, TablesError> {
    let tables = SUBSCRIPTIONS.read(path)?;
    let line_of = |span| tables.line_of(span);
    let mut read = Read {
        text: tables.text.clone(),
        ..Read::default()
    };
    for (key, item) in tables.document.as_table().iter() {
        let Some(entries) = item.as_array_of_tables().filter(|_| key == ENTRIES) else {
            read.findings.push(Finding {
                line: line_of(item.span()),
                why: format!("{key:.64?} is unknown: subscriptions are [[{ENTRIES}]]"),
            });
            continue;
        };
        for table in entries {
            let known = |id| read.subscriptions.iter().any(|s| s.id == id);
            let taken = match subscription(table) {
                Ok(subscription) if known(subscription.id) => Err(format!(
                    "another subscription has the id {}",
                    subscription.id
                )),
                Ok(_) if read.subscriptions.len() >= MAX_SUBSCRIPTIONS => Err(format!(
                    "there are more than {MAX_SUBSCRIPTIONS} subscriptions"
                )),
                taken => taken,
            };
            match taken {
                Ok(subscription) => read.subscriptions.push(subscription),
                Err(why) => read.findings.push(Finding {
                    line: line_of(table.span()),
                    why,
                }),
            }
        }
    }
    Ok(read)
}

/// Converts a subscription to its table.
pub fn table(subscription: &Subscription) -> Table {
    let mut table = Table::new();
    let id = i64::try_from(subscription.id).unwrap_or(i64::MAX);
    table.insert("id", id.into());
    table.insert("source", subscription.source.as_str().into());
    table.insert("target_agent", subscription.agent.as_str().into());
    if subscription.once {
        table.insert("once", true.into());
    }
    if !subscription.by.is_empty() {
        table.insert("by", subscription.by.as_str().into());
    }
    if !subscription.prompt.is_empty() {
        table.insert("prompt", subscription.prompt.as_str().into());
    }
    table
}

fn subscription(table: &Table) -> Result<Subscription, String> {
    let names = ["source", "target_agent", "by", "prompt"];
    let (mut once, mut texts) = (false, names.map(|name| (name, "")));
    for (key, item) in table.iter() {
        match key {
            "id" => {}
            "once" => once = item.as_bool().ok_or("once must be true or false")?,
            _ => {
                let known = texts.iter_mut().find(|(name, _)| *name == key);
                let (_, to) = known.ok_or_else(|| format!("the key {key:.64?} is unknown"))?;
                let text = item.as_str();
                *to = text.ok_or_else(|| format!("{key} must be a string in quotes"))?;
            }
        }
    }
    let [source, agent, by, prompt] = texts.map(|(_, text)| text);
    let id = id_of(table).unwrap_or_default();
    let one = Subscription::new(id, source, agent, once, by).map_err(|error| error.to_string())?;
    Ok(Subscription {
        prompt: prompt.to_owned(),
        ..one
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("subscriptions.toml");
        std::fs::write(&path, text).expect("written");
        (folder, path)
    }

    const TWO: &str = "# mine\n[[subscription]]\nid = 3 # three\nsource = \"build:*\"\n\
        target_agent = \"crab\"\n\n[[subscription]]\nid = 4\nsource = \"x\"\ntarget_agent = \"crab\"\nonce = true\n";

    #[test]
    fn edits_keep_comments() {
        let (_folder, path) = file(TWO);
        let read = read_subscriptions(&path).expect("read");
        assert_eq!(read.findings, []);
        let ids: Vec<u64> = read.subscriptions.iter().map(|s| s.id).collect();
        assert_eq!(ids, [3, 4]);
        let mut edit = SUBSCRIPTIONS
            .edit(&path, read.text.as_deref())
            .expect("unchanged");
        let five = Subscription {
            prompt: "Say \"hi\".\nThen stop.".into(),
            ..Subscription::new(5, "y:*", "crab", true, "user").expect("one")
        };
        edit.add(table(&five)).expect("added");
        assert!(edit.remove(4) && !edit.remove(99));
        edit.save().expect("saved");
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(
            text.starts_with("# mine\n") && text.contains("id = 3 # three"),
            "{text}"
        );
        let read = read_subscriptions(&path).expect("read again");
        assert_eq!(read.subscriptions[1], five);
    }

    #[test]
    fn new_files_have_a_head() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("subscriptions.toml");
        let mut edit = SUBSCRIPTIONS.edit(&path, None).expect("none yet");
        let one = Subscription::new(1, "y", "crab", false, "").expect("one");
        edit.add(table(&one)).expect("added");
        edit.save().expect("saved");
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(text.starts_with("# Subscriptions start agents"), "{text}");
        assert_eq!(
            read_subscriptions(&path).expect("read").subscriptions,
            [one]
        );
    }

    #[test]
    fn concurrent_edits_are_conflicts() {
        let (_folder, path) = file(TWO);
        let taken = read_subscriptions(&path).expect("read").text;
        std::fs::write(&path, format!("{TWO}# later\n")).expect("edited");
        let late = SUBSCRIPTIONS.edit(&path, taken.as_deref());
        assert!(matches!(late, Err(TablesError::Conflict(_))));
    }

    #[test]
    fn broken_subscriptions_are_reported_by_line() {
        let (_folder, path) = file(
            "[[subscription]]\nsource = \"x\"\ntarget_agent = \"crab\"\n\
             [[subscription]]\nid = 1\nsource = \"a b\"\ntarget_agent = \"crab\"\n\
             [[subscription]]\nid = 2\nsource = \"x\"\ntarget_agent = \"crab\"\n\
             [[subscription]]\nid = 2\nsource = \"y\"\ntarget_agent = \"crab\"\n\
             [[subscription]]\nid = 5\nsource = 7\ntarget_agent = \"crab\"\n\
             [[subscription]]\nid = 6\nsource = \"x\"\ntarget_agent = \"crab\"\nonec = true\n\
             [other]\n",
        );
        let read = read_subscriptions(&path).expect("read");
        assert_eq!(read.subscriptions.len(), 1);
        let lines: Vec<usize> = read.findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 4, 12, 16, 20, 25], "{:?}", read.findings);
        let (_folder, path) = file("\n[[subscription]\n");
        let broken = read_subscriptions(&path);
        assert!(
            matches!(broken, Err(TablesError::Broken { line: 2, .. })),
            "{broken:?}"
        );
    }
}
