//! The tools of a server, as offered to agents.
//!
//! Invariants: tools that are left out are named; the order does not depend on the
//! server, so that prompts stay cacheable.

use crate::listed::{Listed, MAX_SHOWN};
use crate::names::{qualified, small_first};
use crate::settings::{Settings, Trust, hex};
use crabtalk_domain::Permission;
use crabtalk_domain::tags::seen;
use crabtalk_domain::tool::{Schema, ToolSpec};
use rmcp::model::Tool;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum bytes of a tool's own name, sixteen times the recommended maximum.
const MAX_RAW_NAME: usize = 2 << 10;

/// Maximum bytes of one tool's description.
const MAX_DESCRIPTION: usize = 16 << 10;

/// Maximum bytes of one tool's schema.
const MAX_SCHEMA: usize = 64 << 10;

/// Maximum number of omitted tools named per server; further ones are counted.
const MAX_TOLD: usize = 16;

/// A tool of a server.
#[derive(Debug, Clone)]
pub(crate) struct ListedTool {
    pub(crate) spec: Arc<ToolSpec>,
    /// The server's name of the tool.
    pub(crate) raw: String,
    pub(crate) read_only: bool,
    /// Hash of the tool's declaration.
    pub(crate) print: String,
}

impl ListedTool {
    /// The tool's declaration, for comparison by a person.
    pub(crate) fn described(&self) -> String {
        let schema = serde_json::from_str::<Value>(self.spec.parameters.as_str());
        let schema = schema.and_then(|schema| serde_json::to_string_pretty(&schema));
        let schema = schema.unwrap_or_default();
        let reads = if self.read_only {
            "it says that it only reads\n"
        } else {
            ""
        };
        format!("{}\n{reads}\n{schema}\n", self.spec.description)
    }
}

/// The tools of a server.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) known: Vec<ListedTool>,
    /// Tools that were left out, with the reason.
    pub(crate) left_out: Vec<String>,
}

impl Tools {
    pub(crate) fn get(&self, name: &str) -> Option<&ListedTool> {
        self.known.iter().find(|known| known.spec.name == name)
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        let prints = |tools: &Self| -> Vec<(String, String)> {
            let known = tools.known.iter();
            known
                .map(|k| (k.spec.name.clone(), k.print.clone()))
                .collect()
        };
        prints(self) == prints(other)
    }

    pub(crate) fn new(settings: &Settings, listed: Listed) -> Self {
        let Listed {
            tools, left_out, ..
        } = listed;
        let (mut all, mut taken) = (Self::default(), HashSet::new());
        all.left_out = left_out;
        // A call by this name is ambiguous, so the first one is used.
        let mut before: Option<String> = None;
        for tool in small_first(tools, |tool| &tool.name) {
            let same = before
                .as_ref()
                .filter(|before| before.eq_ignore_ascii_case(&tool.name));
            if let Some(before) = same {
                let shown = |name: &str| name.chars().take(MAX_SHOWN).collect::<String>();
                let name = shown(&tool.name);
                all.left_out.push(match *before == tool.name {
                    true => format!("{name}: the list contains it twice"),
                    false => {
                        let before = shown(before);
                        format!("{name}: its name differs from {before} in case only")
                    }
                });
                continue;
            }
            before = Some(tool.name.to_string());
            match known(settings, &tool, &taken) {
                Ok(known) if taken.insert(known.spec.name.clone()) => all.known.push(known),
                Ok(_) => {
                    let name: String = tool.name.chars().take(MAX_SHOWN).collect();
                    all.left_out
                        .push(format!("{name}: the list contains it twice"));
                }
                Err(why) => {
                    let name: String = tool.name.chars().take(MAX_SHOWN).collect();
                    all.left_out.push(format!("{name}: {why}"));
                }
            }
        }
        let more = all.left_out.len().saturating_sub(MAX_TOLD);
        if more > 0 {
            all.left_out.truncate(MAX_TOLD);
            all.left_out.push(format!("and {more} more"));
        }
        all
    }
}

fn known(settings: &Settings, tool: &Tool, taken: &HashSet<String>) -> Result<ListedTool, String> {
    let bytes = tool.name.len();
    if bytes > MAX_RAW_NAME {
        return Err(format!(
            "its name has {bytes} bytes, {MAX_RAW_NAME} are the limit"
        ));
    }
    let mut parameters = Value::Object((*tool.input_schema).clone());
    if !parameters["type"].is_string() {
        parameters["type"] = "object".into();
    }
    show_descriptions(&mut parameters);
    let parameters = Schema::from(parameters);
    let bytes = parameters.as_str().len();
    if bytes > MAX_SCHEMA {
        return Err(format!(
            "its schema has {bytes} bytes, {MAX_SCHEMA} are the limit"
        ));
    }
    let annotations = tool.annotations.as_ref();
    let read_only = annotations.and_then(|a| a.read_only_hint).unwrap_or(false);
    let title = tool
        .title
        .as_deref()
        .or(annotations.and_then(|a| a.title.as_deref()));
    let mut description = tool
        .description
        .as_deref()
        .or(title)
        .map(seen)
        .unwrap_or_default()
        .into_owned();
    if description.len() > MAX_DESCRIPTION {
        description.truncate(description.floor_char_boundary(MAX_DESCRIPTION));
        description.push_str(" [cut]");
    }
    let mut hash = Sha256::new();
    for part in [&*tool.name, &description, parameters.as_str()] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.update([u8::from(read_only)]);
    let trusted = settings.trust == Trust::Annotations && read_only;
    Ok(ListedTool {
        spec: Arc::new(ToolSpec {
            name: qualified(&settings.name, &tool.name, taken),
            description,
            parameters,
            default_permission: match trusted {
                true => Permission::Allow,
                false => Permission::Ask,
            },
        }),
        raw: tool.name.to_string(),
        read_only,
        print: hex(&hash.finalize()),
    })
}

/// Escapes invisible characters in the descriptive texts of a schema. Values
/// that a call has to match are not changed.
fn show_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let Value::String(text) = value
                    && matches!(&**key, "description" | "title")
                {
                    *text = seen(text).into_owned();
                } else {
                    show_descriptions(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(show_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Source, Transport};
    use crabtalk_component::PortFile;
    use serde_json::json;

    fn settings(trust: Trust) -> Settings {
        let port = PortFile {
            port: 1,
            instance: None,
        };
        let mut settings = Settings::new("files", Source::PortFile, Transport::Port(port));
        settings.trust = trust;
        settings
    }

    fn tool(value: Value) -> Tool {
        serde_json::from_value(value).expect("a tool")
    }

    #[test]
    fn descriptions_lose_unseen_characters() {
        let hidden = json!({
            "name": "t",
            "description": "Reads\u{202e} a\u{e0041}\u{1b}[2J\nfile.",
            "inputSchema": {"properties": {"description": {"title": "a\u{200b}b", "enum": ["x\u{200b}"]}}},
        });
        let tools = Tools::new(&settings(Trust::None), vec![tool(hidden)].into());
        let spec = &tools.known[0].spec;
        assert_eq!(spec.description, "Reads a[2J\nfile.");
        let schema: Value = serde_json::from_str(spec.parameters.as_str()).expect("a schema");
        let shown = &schema["properties"]["description"];
        assert_eq!(shown, &json!({"title": "ab", "enum": ["x\u{200b}"]}));
    }

    #[test]
    fn a_tool_asks_unless_its_annotations_are_trusted() {
        let reads = json!({"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        let writes = json!({"name": "write", "inputSchema": {"type": "object"}});
        for (trust, want) in [
            (Trust::None, [Permission::Ask, Permission::Ask]),
            (Trust::Annotations, [Permission::Allow, Permission::Ask]),
        ] {
            let tools = Tools::new(
                &settings(trust),
                vec![tool(writes.clone()), tool(reads.clone())].into(),
            );
            let names: Vec<&str> = tools.known.iter().map(|k| k.spec.name.as_str()).collect();
            assert_eq!(names, ["files__read", "files__write"], "sorted");
            let said: Vec<Permission> = tools
                .known
                .iter()
                .map(|k| k.spec.default_permission)
                .collect();
            assert_eq!(said, want);
        }
    }

    #[test]
    fn whatever_a_server_says_of_a_tool_is_in_its_print() {
        let print = |value: Value| {
            Tools::new(&settings(Trust::None), vec![tool(value)].into()).known[0]
                .print
                .clone()
        };
        let plain = json!({"name": "a", "description": "d", "inputSchema": {"type": "object"}});
        let mut all = vec![print(plain.clone())];
        for (key, value) in [
            ("description", json!("other")),
            (
                "inputSchema",
                json!({"type": "object", "properties": {"x": {"type": "string"}}}),
            ),
            ("annotations", json!({"readOnlyHint": true})),
        ] {
            let mut changed = plain.clone();
            changed[key] = value;
            all.push(print(changed));
        }
        let distinct: HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn what_is_too_large_or_doubled_is_left_out_by_name() {
        let large = json!({"name": "large", "inputSchema": {"type": "object", "x": "y".repeat(MAX_SCHEMA)}});
        let named =
            |name: &str, says: &str| json!({"name": name, "description": says, "inputSchema": {}});
        let all = [
            large,
            named("a", "first"),
            named("a", "second"),
            named("a.b", ""),
            named("a_b", ""),
        ];
        let all: Vec<Tool> = all.map(tool).to_vec();
        let of_two_cases = |tools: [&str; 3]| {
            let tools: Vec<Tool> = tools.map(|name| tool(named(name, name))).to_vec();
            let tools = Tools::new(&settings(Trust::None), tools.into());
            let names = tools.known.iter().map(|known| known.raw.clone());
            (names.collect::<Vec<_>>(), tools.left_out)
        };
        let one = of_two_cases(["read", "Read", "ask"]);
        let told = "Read: its name differs from read in case only";
        assert_eq!(one, (vec!["ask".into(), "read".into()], vec![told.into()]));
        assert_eq!(of_two_cases(["Read", "ask", "read"]), one);
        let crowd: Vec<Tool> = (0..99).map(|_| tool(named("a", ""))).collect();
        let crowd = Tools::new(&settings(Trust::None), crowd.into());
        assert_eq!(crowd.left_out.len(), MAX_TOLD + 1);
        assert_eq!(crowd.left_out[MAX_TOLD], "and 82 more");
        let tools = Tools::new(&settings(Trust::None), all.into());
        let names: Vec<_> = tools.known.iter().map(|k| k.spec.name.as_str()).collect();
        assert_eq!(names[0], "files__a");
        assert_eq!(tools.known[0].spec.description, "first");
        assert!(
            names.len() == 3 && names.contains(&"files__a_b"),
            "{names:?}"
        );
        let [double, large] = &tools.left_out[..] else {
            panic!("{:?}", tools.left_out)
        };
        assert_eq!(double, "a: the list contains it twice");
        assert!(large.starts_with("large: its schema"), "{large}");
    }
}
