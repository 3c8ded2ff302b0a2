//! Reads MCP servers from the configuration files of other programs.

use crate::error::Error;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Maximum file size.
const MAX_BYTES: u64 = 8 << 20;

/// Files below the user's home and below the current folder.
const AT_HOME: [&str; 6] = [
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".codeium/windsurf/mcp_config.json",
    ".gemini/settings.json",
];
const HERE: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];

/// Names of the table of servers.
const KEYS: [&str; 3] = ["mcpServers", "servers", "mcp_servers"];

/// Variables that only editors can replace.
const THEIRS: [&str; 5] = [
    "workspaceFolder",
    "workspaceFolderBasename",
    "userHome",
    "pathSeparator",
    "cwd",
];

/// Keys of a server that need no import.
const IGNORED: [&str; 5] = ["type", "transport", "disabled", "description", "name"];

/// The result of converting a server.
#[derive(Debug)]
pub(super) enum Fate {
    Take(Taken),
    Leave(String),
}

/// A server as a table of CrabTalk's configuration.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) table: Value,
    /// Keys without an equivalent.
    pub(super) without: Vec<String>,
}

/// A server in a file.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) fate: Fate,
    pub(super) file: PathBuf,
}

/// The usual files that exist.
pub(super) fn usual_places(home: Option<&Path>, here: Option<&Path>) -> Vec<PathBuf> {
    let below_home = AT_HOME.iter().filter_map(|place| Some(home?.join(place)));
    let below_here = HERE.iter().filter_map(|place| Some(here?.join(place)));
    let mut places: Vec<PathBuf> = below_home.chain(below_here).collect();
    places.retain(|path| path.is_file());
    // The home may be the current folder.
    places.sort();
    places.dedup();
    places
}

/// The servers of a file; `None` if it has no table of servers.
pub(super) fn read(file: &Path) -> Result<Option<Vec<Candidate>>, Error> {
    let failed = |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", file.display()));
    let text = crabtalk_files::read_text(file, MAX_BYTES).map_err(|e| failed(&e))?;
    let text = text.trim_start_matches('\u{feff}');
    let top: Value =
        serde_json::from_str(text).map_err(|e| failed(&format!("invalid JSON: {e}")))?;
    // Claude Code keeps the servers of each project in one file.
    let here = std::env::current_dir().unwrap_or_default();
    let project = &top["projects"][here.to_string_lossy().as_ref()];
    let tables = [servers(&top), servers(project)];
    if tables.iter().all(Option::is_none) {
        return Ok(None);
    }
    let candidates = tables.into_iter().flatten().flatten();
    let candidates = candidates.map(|(name, server)| Candidate {
        name: our_name(name),
        fate: fate(server),
        file: file.to_owned(),
    });
    Ok(Some(candidates.collect()))
}

/// The table of servers in a value, if any.
fn servers(of: &Value) -> Option<&Map<String, Value>> {
    let found = KEYS.iter().find_map(|key| of.get(key)?.as_object())?;
    found.values().any(Value::is_object).then_some(found)
}

/// Converts a name: letters, digits and single hyphens.
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

/// Converts a server.
fn fate(server: &Value) -> Fate {
    let Some(server) = server.as_object() else {
        return Fate::Leave("not an object".to_owned());
    };
    let kind = server.get("type").or(server.get("transport"));
    if kind.is_some_and(|kind| kind == "sse") {
        return Fate::Leave("uses the old SSE transport".to_owned());
    }
    let mut table = Map::new();
    let url = ["url", "httpUrl", "serverUrl"]
        .into_iter()
        .find(|key| server.contains_key(*key));
    let (key, theirs, besides): (_, _, &[&str]) = match (server.contains_key("command"), url) {
        (true, _) => ("command", "command", &["args", "env"]),
        (false, Some(url)) => ("url", url, &["headers"]),
        (false, None) => return Fate::Leave("has neither command nor url".to_owned()),
    };
    match server[theirs].as_str() {
        None => return Fate::Leave(format!("{theirs} is not a string")),
        Some("") => return Fate::Leave(format!("{theirs} is empty")),
        Some(text) => table.insert(key.to_owned(), text.into()),
    };
    for key in besides {
        let Some(value) = server.get(*key).filter(|value| !value.is_null()) else {
            continue;
        };
        // The reason omits the value, which may be a secret.
        if !is_text(value) {
            return Fate::Leave(format!("{key} has a value that is not a string"));
        }
        table.insert((*key).to_owned(), value.clone());
    }
    for (key, value) in &mut table {
        if !variables(value) {
            return Fate::Leave(format!("{key} uses a variable of the other program"));
        }
    }
    if server.get("disabled") == Some(&Value::Bool(true)) {
        table.insert("enabled".to_owned(), false.into());
    }
    let is_taken = |key: &&String| *key == theirs || besides.contains(&key.as_str());
    let without = server
        .keys()
        .filter(|key| !is_taken(key) && !IGNORED.contains(&key.as_str()));
    Fate::Take(Taken {
        table: Value::Object(table),
        without: without.cloned().collect(),
    })
}

/// Whether a list or table has only strings.
fn is_text(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Object(map) => map.values().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Converts `${env:NAME}` to `${NAME}`; false for variables that only the other program
/// knows.
fn variables(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            *text = text.replace("${env:", "${");
            let is_known = |name: &str| {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !name.is_empty() && name.chars().all(plain) && !THEIRS.contains(&name)
            };
            let behind = text.split("${").skip(1);
            let mut names = behind.filter_map(|behind| Some(behind.split_once('}')?.0));
            names.all(is_known)
        }
        Value::Array(items) => items.iter_mut().all(variables),
        Value::Object(map) => map.values_mut().all(variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_of_other_programs_become_tables() {
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
    fn servers_without_an_equivalent_are_skipped_with_a_reason() {
        for (server, why) in [
            (json!({"type": "sse", "url": "https://x"}), "SSE"),
            (json!({"env": {}}), "neither"),
            (
                json!({"command": "x", "args": ["${input:key}"]}),
                "args uses a variable",
            ),
            (
                json!({"command": "x", "args": ["${workspaceFolder}/y"]}),
                "args uses a variable",
            ),
            (json!({"url": 5}), "url is not a string"),
            (json!({"command": ""}), "command is empty"),
            (json!("x"), "not an object"),
            (
                json!({"command": "x", "env": {"PIN": 4711}}),
                "env has a value that is not a string",
            ),
            (json!({"command": ["x"]}), "command is not a string"),
        ] {
            let Fate::Leave(said) = fate(&server) else {
                panic!("{server}")
            };
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn ignored_keys_are_reported() {
        let server = json!({"type": "stdio", "command": "x", "cwd": "/srv", "envFile": ".env", "disabled": false, "args": null});
        let Fate::Take(taken) = fate(&server) else {
            panic!("imported")
        };
        assert_eq!(taken.without, ["cwd", "envFile"]);
        let Fate::Take(whole) = fate(&json!({"command": "x", "args": ["y"]})) else {
            panic!("imported")
        };
        assert!(whole.without.is_empty(), "{:?}", whole.without);
    }

    #[test]
    fn names_become_plain() {
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
    fn files_without_servers_are_none_and_bad_json_fails() {
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
        assert!(why.contains("invalid JSON"), "{why}");
        let two = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"url": "https://b"}}}"#;
        let two = read(&file("two.json", &format!("\u{feff}{two}")))
            .unwrap()
            .unwrap();
        assert_eq!(two.len(), 2);
    }
}
