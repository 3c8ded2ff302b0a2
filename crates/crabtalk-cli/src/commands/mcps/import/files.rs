//! What other programs' files say of servers, as tables of ours.

use crate::error::Error;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MAX_BYTES: u64 = 8 << 20;

/// Where programs keep it, below the user's home and below the current folder.
const AT_HOME: [&str; 6] = [
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".codeium/windsurf/mcp_config.json",
    ".gemini/settings.json",
];
const HERE: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];

/// What the table of servers is called.
const KEYS: [&str; 3] = ["mcpServers", "servers", "mcp_servers"];

/// Variables that other programs set by themselves, and that no environment has.
const THEIRS: [&str; 5] = [
    "workspaceFolder",
    "workspaceFolderBasename",
    "userHome",
    "pathSeparator",
    "cwd",
];

/// What says nothing beyond what is taken of a server.
const SAYS_NOTHING: [&str; 5] = ["type", "transport", "disabled", "description", "name"];

/// What becomes of a server.
#[derive(Debug)]
pub(super) enum Fate {
    Take(Taken),
    Leave(String),
}

/// A server as ours are.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) table: Value,
    /// What else it says, which has no place here.
    pub(super) without: Vec<String>,
}

/// A server of some file.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) fate: Fate,
    pub(super) file: PathBuf,
}

/// Files of other programs that are there.
pub(super) fn usual_places(home: Option<&Path>, here: Option<&Path>) -> Vec<PathBuf> {
    let below_home = AT_HOME.iter().filter_map(|place| Some(home?.join(place)));
    let below_here = HERE.iter().filter_map(|place| Some(here?.join(place)));
    let mut places: Vec<PathBuf> = Vec::new();
    for path in below_home.chain(below_here) {
        if path.is_file() && !places.contains(&path) {
            places.push(path);
        }
    }
    places
}

/// The servers of a file; `None` if it is no such file.
pub(super) fn read(file: &Path) -> Result<Option<Vec<Candidate>>, Error> {
    let failed = |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", file.display()));
    let text = crabtalk_files::read_text(file, MAX_BYTES).map_err(|e| failed(&e))?;
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str::<IgnoredAny>(text).map_err(|e| failed(&format!("it is no JSON: {e}")))?;
    let top: Pairs<'_> = serde_json::from_str(text).unwrap_or_default();
    // One program keeps those of each project in the file of all.
    let here = std::env::current_dir().unwrap_or_default();
    let project = top
        .object("projects")
        .and_then(|all| all.object(&here.to_string_lossy()));
    let tables = [servers(&top), project.as_ref().and_then(servers)];
    if tables.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut candidates = Vec::new();
    for Pairs(pairs) in tables.into_iter().flatten() {
        for (at, (name, server)) in pairs.iter().enumerate() {
            let again = pairs[at + 1..].iter().any(|(later, _)| later == name);
            let fate = match (again, serde_json::from_str(server.get())) {
                (true, _) => Fate::Leave("the file has it once more, and the last counts".into()),
                (false, Ok(server)) => fate(&server),
                (false, Err(_)) => Fate::Leave("it cannot be read".to_owned()),
            };
            candidates.push(Candidate {
                name: our_name(name),
                fate,
                file: file.to_owned(),
            });
        }
    }
    Ok(Some(candidates))
}

/// An object in its order, with each name as often as it is there.
#[derive(Default)]
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Pairs<'a> {
    /// What is called so and is an object; of several the last.
    fn object(&self, name: &str) -> Option<Pairs<'a>> {
        let mut from_the_end = self.0.iter().rev();
        let (_, found) = from_the_end.find(|(known, _)| known == name)?;
        serde_json::from_str(found.get()).ok()
    }
}

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<'de>, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// The table of servers, if it is one.
fn servers<'a>(of: &Pairs<'a>) -> Option<Pairs<'a>> {
    let found = KEYS.iter().find_map(|key| of.object(key))?;
    let is_object = |(_, server): &(String, &RawValue)| server.get().starts_with('{');
    found.0.iter().any(is_object).then_some(found)
}

/// A name as ours are: plain, and without what parts it from a tool's.
fn our_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    let mut name = parts.join("-");
    name.truncate(48);
    if name.is_empty() {
        "server".to_owned()
    } else {
        name
    }
}

/// What of a server can be taken over.
fn fate(server: &Value) -> Fate {
    let Some(server) = server.as_object() else {
        return Fate::Leave("it is no object".to_owned());
    };
    let kind = server.get("type").or(server.get("transport"));
    if kind.is_some_and(|kind| kind == "sse") {
        return Fate::Leave("it speaks the older SSE transport".to_owned());
    }
    let mut table = Map::new();
    let url = ["url", "httpUrl", "serverUrl"]
        .into_iter()
        .find(|key| server.contains_key(*key));
    let (key, theirs, besides): (_, _, &[&str]) = match (server.contains_key("command"), url) {
        (true, _) => ("command", "command", &["args", "env"]),
        (false, Some(url)) => ("url", url, &["headers"]),
        (false, None) => return Fate::Leave("it has neither a command nor a url".to_owned()),
    };
    match server[theirs].as_str() {
        None => return Fate::Leave(format!("its {theirs} is no text")),
        Some("") => return Fate::Leave(format!("its {theirs} is empty")),
        Some(text) => table.insert(key.to_owned(), text.into()),
    };
    for key in besides {
        let Some(value) = server.get(*key).filter(|value| !value.is_null()) else {
            continue;
        };
        // A value that we would refuse is told without it: it may be a secret.
        if !is_text(value) {
            return Fate::Leave(format!("its {key} has a value that is no text"));
        }
        table.insert((*key).to_owned(), value.clone());
    }
    for (key, value) in &mut table {
        if let Some(unknown) = variables(value) {
            return Fate::Leave(format!("its {key} has {unknown} no counterpart here"));
        }
    }
    if server.get("disabled") == Some(&Value::Bool(true)) {
        table.insert("enabled".to_owned(), false.into());
    }
    let is_taken = |key: &&String| *key == theirs || besides.contains(&key.as_str());
    let without = server
        .keys()
        .filter(|key| !is_taken(key) && !SAYS_NOTHING.contains(&key.as_str()));
    Fate::Take(Taken {
        table: Value::Object(table),
        without: without.cloned().collect(),
    })
}

/// Whether there is nothing but texts in a list or a table.
fn is_text(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Object(map) => map.values().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Writes variables as ours are; the first that cannot be, for a sentence.
fn variables(value: &mut Value) -> Option<String> {
    match value {
        Value::String(text) => {
            *text = text.replace("${env:", "${");
            let plain = |name: &str, more: &str| {
                let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || more.contains(c);
                !name.is_empty() && name.chars().all(known)
            };
            let mut rest = text.as_str();
            while let Some((_, behind)) = rest.split_once("${") {
                // Without an end it is none.
                let (name, after) = behind.split_once('}')?;
                if !plain(name, "") || THEIRS.contains(&name) {
                    // What else stands there may be part of a secret.
                    return Some(match plain(name, ":.") {
                        true => format!("${{{name}}}, which has"),
                        false => "a ${...} that has".to_owned(),
                    });
                }
                rest = after;
            }
            None
        }
        Value::Array(items) => items.iter_mut().find_map(variables),
        Value::Object(map) => map.values_mut().find_map(variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_other_programs_write_becomes_a_table_of_ours() {
        let program = json!({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"KEY": "${env:KEY}"}, "disabled": true});
        let want = json!({"command": "npx", "args": ["-y", "x"], "env": {"KEY": "${KEY}"}, "enabled": false});
        assert_eq!(table(&program), want);
        let remote = json!({"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}});
        let want = json!({"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}});
        assert_eq!(table(&remote), want);
    }

    fn table(server: &Value) -> Value {
        match fate(server) {
            Fate::Take(taken) => taken.table,
            Fate::Leave(why) => panic!("{why}"),
        }
    }

    #[test]
    fn what_cannot_be_taken_is_left_out_with_its_reason() {
        for (server, why) in [
            (json!({"type": "sse", "url": "https://x"}), "older SSE"),
            (json!({"env": {}}), "neither"),
            (
                json!({"command": "x", "args": ["${input:key}"]}),
                "its args has ${input:key}, which",
            ),
            (
                json!({"command": "x", "args": ["${workspaceFolder}/y"]}),
                "${workspaceFolder}, which",
            ),
            (json!({"url": 5}), "its url is no text"),
            (json!({"command": ""}), "its command is empty"),
            (json!("x"), "no object"),
            (
                json!({"command": "x", "env": {"PIN": 4711}}),
                "its env has a value that is no text",
            ),
            (json!({"command": ["x"]}), "its command is no text"),
        ] {
            let Fate::Leave(said) = fate(&server) else {
                panic!("{server}")
            };
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_told_and_the_later_one_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("twice.json");
        let text = r#"{"mcpServers": {"a": {"command": "old"}, "b": {"command": "b"}, "a": {"command": "new"}}}"#;
        std::fs::write(&path, text).unwrap();
        let fates: Vec<(String, Fate)> = read(&path)
            .unwrap()
            .unwrap()
            .into_iter()
            .map(|one| (one.name, one.fate))
            .collect();
        let [(a, first), (b, _), (again, last)] = &fates[..] else {
            panic!("{fates:?}")
        };
        assert_eq!([a, b, again], ["a", "b", "a"]);
        let Fate::Leave(why) = first else {
            panic!("{fates:?}")
        };
        assert!(why.contains("once more"), "{why}");
        assert!(
            matches!(last, Fate::Take(taken) if taken.table["command"] == "new"),
            "{fates:?}"
        );
    }

    #[test]
    fn what_is_not_taken_of_a_server_is_named() {
        let server = json!({"type": "stdio", "command": "x", "cwd": "/srv", "envFile": ".env", "disabled": false, "args": null});
        let Fate::Take(taken) = fate(&server) else {
            panic!("it is taken")
        };
        assert_eq!(taken.without, ["cwd", "envFile"]);
        let Fate::Take(whole) = fate(&json!({"command": "x", "args": ["y"]})) else {
            panic!("it is taken")
        };
        assert!(whole.without.is_empty(), "{:?}", whole.without);
    }

    #[test]
    fn what_may_be_part_of_a_secret_is_not_in_a_reason() {
        for secret in ["s3c${ret word!}", "${s3cret:-ret}"] {
            let server = json!({"command": "x", "env": {"KEY": secret}});
            let Fate::Leave(why) = fate(&server) else {
                panic!("{secret}")
            };
            assert_eq!(why, "its env has a ${...} that has no counterpart here");
        }
        // What is no variable anywhere is a part of the value.
        let server = json!({"command": "x", "env": {"KEY": "s3c${ret"}});
        assert!(matches!(fate(&server), Fate::Take(_)));
    }

    #[test]
    fn names_are_made_plain() {
        for (theirs, ours) in [
            ("files", "files"),
            ("My Server", "My-Server"),
            ("a__b_", "a-b"),
            ("@scope/x", "scope-x"),
            ("!", "server"),
        ] {
            assert_eq!(our_name(theirs), ours);
        }
    }

    #[test]
    fn a_file_without_servers_is_none_and_a_broken_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        for text in [
            "{}",
            r#"{"mcpServers": {}}"#,
            r#"{"servers": {"a": 1}}"#,
            "[]",
        ] {
            assert!(read(&file("none.json", text)).unwrap().is_none(), "{text}");
        }
        let why = read(&file("broken.json", "{")).unwrap_err().to_string();
        assert!(why.contains("it is no JSON"), "{why}");
        let two = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"url": "https://b"}}}"#;
        let two = read(&file("two.json", &format!("\u{feff}{two}")))
            .unwrap()
            .unwrap();
        assert_eq!(two.len(), 2);
    }
}
