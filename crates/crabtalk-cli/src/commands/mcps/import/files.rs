//! What other programs' files say of servers, as tables of ours.

use crate::error::Error;
use serde_json::{Map, Value};
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

/// What becomes of a server.
#[derive(Debug, PartialEq)]
pub(super) enum Fate {
    Take(Value),
    Leave(String),
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
    let json: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|e| failed(&format!("it is no JSON: {e}")))?;
    let of = |json: &Value| {
        let found = KEYS.iter().find_map(|key| json[*key].as_object().cloned());
        found.filter(|servers| servers.values().any(Value::is_object))
    };
    // One program keeps those of each project in the file of all.
    let here = std::env::current_dir().unwrap_or_default();
    let here = of(&json["projects"][here.to_string_lossy().as_ref()]);
    let all = [of(&json), here];
    if all.iter().all(Option::is_none) {
        return Ok(None);
    }
    let all = all.into_iter().flatten().flatten();
    let candidate = |(name, server): (String, Value)| Candidate {
        name: our_name(&name),
        fate: fate(&server),
        file: file.to_owned(),
    };
    Ok(Some(all.map(candidate).collect()))
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
        .iter()
        .find_map(|key| server.get(*key));
    let taken: &[&str] = match (server.get("command"), url) {
        (Some(command), _) => {
            if !command.is_string() {
                return Fate::Leave("its command is no text".to_owned());
            }
            table.insert("command".to_owned(), command.clone());
            &["args", "env"]
        }
        (None, Some(url)) => {
            table.insert("url".to_owned(), url.clone());
            &["headers"]
        }
        (None, None) => return Fate::Leave("it has neither a command nor a url".to_owned()),
    };
    for key in taken {
        let Some(value) = server.get(*key).filter(|value| !value.is_null()) else {
            continue;
        };
        // A value that we would refuse is told without it: it may be a secret.
        if !is_text(value) {
            return Fate::Leave(format!("its {key} has a value that is no text"));
        }
        table.insert((*key).to_owned(), value.clone());
    }
    if server.get("disabled") == Some(&Value::Bool(true)) {
        table.insert("enabled".to_owned(), false.into());
    }
    let mut table = Value::Object(table);
    match variables(&mut table) {
        Some(unknown) => Fate::Leave(format!("{unknown} has no counterpart here")),
        None => Fate::Take(table),
    }
}

/// Whether there is nothing but texts in a list or a table.
fn is_text(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Object(map) => map.values().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Writes variables as ours are; the first that cannot be.
fn variables(value: &mut Value) -> Option<String> {
    match value {
        Value::String(text) => {
            *text = text.replace("${env:", "${");
            let known = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let mut rest = text.as_str();
            while let Some((_, behind)) = rest.split_once("${") {
                let (name, after) = behind.split_once('}')?;
                if !known(name) {
                    return Some(format!("${{{name}}}"));
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
        assert_eq!(fate(&program), Fate::Take(want));
        let remote = json!({"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}});
        let want = json!({"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}});
        assert_eq!(fate(&remote), Fate::Take(want));
    }

    #[test]
    fn what_cannot_be_taken_is_left_out_with_its_reason() {
        for (server, why) in [
            (json!({"type": "sse", "url": "https://x"}), "older SSE"),
            (json!({"env": {}}), "neither"),
            (
                json!({"command": "x", "args": ["${input:key}"]}),
                "${input:key}",
            ),
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
