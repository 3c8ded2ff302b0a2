//! `mcps import`: servers that other programs have in their configuration.
//!
//! Invariants: nothing that is there already is replaced; what is found without
//! being named is taken only when somebody says so; every server is accounted for.

use super::{Context, set};
use crate::error::Error;
use crabtalk_proto::{Client, ListMcpsMsg};
use serde_json::{Map, Value, json};
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

/// What becomes of a server.
#[derive(Debug, PartialEq)]
enum Fate {
    Take(Value),
    Leave(String),
}

/// A server of some file.
#[derive(Debug)]
struct Candidate {
    name: String,
    fate: Fate,
    file: PathBuf,
}

pub(super) async fn run(
    context: &mut Context,
    file: Option<&Path>,
    yes: bool,
) -> Result<(), Error> {
    let mut candidates = Vec::new();
    match file {
        Some(file) => candidates.extend(read(file)?),
        None => {
            for path in usual_places(context) {
                // One that is none of ours need not be whole.
                candidates.extend(read(&path).unwrap_or_default());
            }
        }
    }
    let listed = context
        .connection()
        .await?
        .list_mcps(ListMcpsMsg {})
        .await?;
    let mut known: Vec<String> = listed.mcps.into_iter().map(|mcp| mcp.name).collect();
    let takes = file.is_some() || yes;
    let mut rows = Vec::new();
    for candidate in candidates {
        let Candidate { name, fate, file } = candidate;
        let there = known.iter().any(|known| known.eq_ignore_ascii_case(&name));
        let said = match fate {
            Fate::Leave(why) => format!("left out: {why}"),
            Fate::Take(_) if there => "left out: there is one of that name already".to_owned(),
            Fate::Take(_) if !takes => "would be taken".to_owned(),
            Fate::Take(table) => match set(context, &name, &table).await {
                Ok(()) => "taken".to_owned(),
                Err(error) => format!("refused: {error}"),
            },
        };
        known.push(name.clone());
        rows.push((name, said, file));
    }
    if context.global.json {
        for (name, said, file) in &rows {
            let row = json!({"name": name, "outcome": said, "file": file.to_string_lossy()});
            context.console.screen.json(&row)?;
        }
        return Ok(());
    }
    let waits = rows.iter().any(|(_, said, _)| said == "would be taken");
    let rows = rows
        .into_iter()
        .map(|(name, said, file)| vec![name, said, file.display().to_string()])
        .collect();
    let none = "crabtalk: no file with `mcpServers` was found; name one";
    context.print_table(&["server", "outcome", "file"], rows, none)?;
    if waits {
        let said = "crabtalk: nothing was changed; take them with `crabtalk mcps import --yes`";
        context.console.screen.note(said)?;
    }
    Ok(())
}

fn usual_places(context: &Context) -> Vec<PathBuf> {
    let home = context.home.user_home().map(Path::to_owned);
    let below_home = AT_HOME
        .iter()
        .filter_map(|place| Some(home.as_ref()?.join(place)));
    let here = std::env::current_dir().ok();
    let below_here = HERE
        .iter()
        .filter_map(|place| Some(here.as_ref()?.join(place)));
    let mut places: Vec<PathBuf> = below_home
        .chain(below_here)
        .filter(|path| path.is_file())
        .collect();
    places.dedup();
    places
}

fn read(file: &Path) -> Result<Vec<Candidate>, Error> {
    let failed = |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", file.display()));
    let text = crabtalk_files::read_text(file, MAX_BYTES).map_err(|e| failed(&e))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| failed(&e))?;
    let servers = ["mcpServers", "servers", "mcp_servers"];
    let servers = servers.iter().find_map(|key| json[*key].as_object());
    let servers = servers.ok_or_else(|| failed(&"it has no `mcpServers`"))?;
    let candidate = |(name, server): (&String, &Value)| Candidate {
        name: our_name(name),
        fate: fate(server),
        file: file.to_owned(),
    };
    Ok(servers.iter().map(candidate).collect())
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
        if let Some(value) = server.get(*key).filter(|value| !value.is_null()) {
            table.insert((*key).to_owned(), value.clone());
        }
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
}
