//! Deferred schemas for large sets of tools.
//!
//! If the schemas of MCP tools exceed a budget, requests contain only their names and
//! short descriptions, and two more tools: one searches schemas, one calls a tool by its
//! name. Found schemas are part of the history, so that the provider's cache of tools
//! and prompt stays valid.
//!
//! Invariants: tools out of scope are neither listed nor found; a call by name is
//! judged as a call of the named tool; the list depends on the tools only.

use crabtalk_domain::tool::{ToolOutput, ToolSpec};
use crabtalk_domain::{Permission, ToolCall};
use crabtalk_gate::scope;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// Searches tools and returns their schemas.
pub(crate) const SEARCH: &str = "tool_search";

/// Calls a tool by its name.
pub(crate) const CALL: &str = "tool_call";

/// Maximum characters of a tool's description in the list.
const MAX_LINE: usize = 60;

/// Maximum bytes of the list: above it descriptions are omitted, then tools.
const MAX_LISTED: usize = 24 << 10;

/// Maximum number of tools in a search result, and maximum bytes of their schemas.
const MAX_FOUND: usize = 10;
const MAX_FOUND_BYTES: usize = 48 << 10;

/// The tools of a step.
#[derive(Debug, Default)]
pub(crate) struct Toolset {
    /// The tools in the request, with schemas.
    pub(crate) offered: Arc<Vec<Arc<ToolSpec>>>,
    /// All tools in scope.
    pub(crate) all: Arc<Vec<Arc<ToolSpec>>>,
}

impl Toolset {
    /// Defers the tools of servers if their schemas exceed `budget` bytes.
    pub(crate) fn new(all: Vec<Arc<ToolSpec>>, budget: usize) -> Self {
        let all = Arc::new(all);
        let foreign = || all.iter().filter(|spec| is_deferrable(spec));
        let bytes: usize = foreign().map(|spec| weight(spec)).sum();
        if bytes <= budget {
            return Self {
                offered: Arc::clone(&all),
                all,
            };
        }
        let mut offered: Vec<_> = all.iter().filter(|s| !is_deferrable(s)).cloned().collect();
        offered.push(Arc::new(search_spec(foreign())));
        offered.push(Arc::new(call_spec()));
        Self {
            offered: Arc::new(offered),
            all,
        }
    }

    pub(crate) fn is_deferred(&self) -> bool {
        !Arc::ptr_eq(&self.offered, &self.all)
    }

    /// A tool in scope.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        let own = self.offered.iter().find(|spec| spec.name == name);
        own.or_else(|| self.all.iter().find(|spec| spec.name == name))
    }

    /// Converts a call by name to the call of the named tool; `None` for any other call.
    pub(crate) fn meant(&self, call: &ToolCall) -> Option<Result<ToolCall, String>> {
        if call.name != CALL || !self.is_deferred() {
            return None;
        }
        let arguments: Value = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Some(Err(format!("the arguments are not valid JSON ({error})"))),
        };
        let Some(name) = arguments["name"].as_str() else {
            return Some(Err("give the tool's name under \"name\"".into()));
        };
        if name == CALL || name == SEARCH {
            return Some(Err(format!("call {name} directly")));
        }
        let given = match &arguments["arguments"] {
            Value::Null => "{}".to_owned(),
            // Models also send the object as JSON text.
            Value::String(text) => text.clone(),
            other @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_)) => {
                other.to_string()
            }
        };
        Some(Ok(ToolCall {
            id: call.id.clone(),
            name: name.to_owned(),
            arguments: given,
        }))
    }

    /// Searches the tools in scope.
    pub(crate) fn search(&self, arguments: &Value) -> ToolOutput {
        let query = arguments["query"].as_str().unwrap_or_default();
        let words = words(query);
        if words.is_empty() {
            return ToolOutput::error("give a tool's name, or words about its purpose");
        }
        let foreign = self.all.iter().filter(|spec| is_deferrable(spec));
        let mut ranked: Vec<(usize, &Arc<ToolSpec>)> = foreign
            .map(|spec| (score(spec, query, &words), spec))
            .filter(|(score, _)| *score > 0)
            .collect();
        ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        if ranked.is_empty() {
            return ToolOutput::ok("no tool matches; try other words, or a name from the list");
        }
        let (mut text, total) = (String::new(), ranked.len());
        let mut shown = 0;
        for (_, spec) in ranked.into_iter().take(MAX_FOUND) {
            let one = format!(
                "{}: {}\narguments: {}\n\n",
                spec.name,
                spec.description,
                spec.parameters.as_str()
            );
            if shown > 0 && text.len() + one.len() > MAX_FOUND_BYTES {
                break;
            }
            text.push_str(&one);
            shown += 1;
        }
        if shown < total {
            let _ = write!(
                text,
                "({} more tools match; use a more precise query to see them)",
                total - shown
            );
        }
        ToolOutput::ok(text.trim_end())
    }
}

/// Whether a tool may be listed without its schema.
fn is_deferrable(spec: &ToolSpec) -> bool {
    scope::mcp_server(&spec.name).is_some()
}

/// Bytes of a tool in a request.
fn weight(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.as_str().len()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The rank of a tool for a query; matches in the name weigh more.
fn score(spec: &ToolSpec, query: &str, wanted: &[String]) -> usize {
    if spec.name == query.trim() {
        return usize::MAX;
    }
    let (name, says) = (words(&spec.name), words(&spec.description));
    let fits = |word: &String, all: &[String]| {
        all.iter().any(|known| known == word)
            || (word.len() > 3 && all.iter().any(|known| known.starts_with(word.as_str())))
    };
    wanted
        .iter()
        .map(|word| 3 * usize::from(fits(word, &name)) + usize::from(fits(word, &says)))
        .sum()
}

/// The short description of a tool.
fn line(spec: &ToolSpec) -> String {
    let first = spec
        .description
        .split(['\n', '.'])
        .next()
        .unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    match first.char_indices().nth(MAX_LINE) {
        Some((cut, _)) => format!("{}..", &first[..cut]),
        None => first,
    }
}

fn search_spec<'a>(foreign: impl Iterator<Item = &'a Arc<ToolSpec>>) -> ToolSpec {
    let foreign: Vec<&Arc<ToolSpec>> = foreign.collect();
    let mut list: String = foreign
        .iter()
        .map(|spec| format!("{}: {}\n", spec.name, line(spec)))
        .collect();
    if list.len() > MAX_LISTED {
        list = foreign
            .iter()
            .map(|spec| format!("{}\n", spec.name))
            .collect();
    }
    list.truncate(list.floor_char_boundary(MAX_LISTED));
    ToolSpec {
        name: SEARCH.into(),
        description: format!(
            "Get the schemas of the tools below that match a name or words about their purpose. \
             Then call a tool with {CALL}.\n\n{list}"
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "a tool's name, or words about its purpose"}
            },
            "required": ["query"]
        }).into(),
        default_permission: Permission::Allow,
    }
}

fn call_spec() -> ToolSpec {
    ToolSpec {
        name: CALL.into(),
        description: format!(
            "Call a tool that {SEARCH} found, by its name, with arguments that match its schema."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "the tool's name"},
                "arguments": {"type": "object", "description": "arguments that match the tool's schema"}
            },
            "required": ["name", "arguments"]
        })
        .into(),
        default_permission: Permission::Allow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, description: &str) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string", "description": "an absolute path of a file or folder"}}}).into(),
            default_permission: Permission::Ask,
        })
    }

    fn many(servers: usize, tools: usize) -> Vec<Arc<ToolSpec>> {
        let mut all = vec![spec("bash", "Runs a command.")];
        for server in 0..servers {
            for tool in 0..tools {
                let says = format!(
                    "Does thing {tool} to what server {server} holds. Then more words that explain when it is right to do so, and what comes back."
                );
                all.push(spec(&format!("server{server}__tool{tool}"), &says));
            }
        }
        all
    }

    fn names(specs: &[Arc<ToolSpec>]) -> Vec<&str> {
        specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: arguments.to_string(),
        }
    }

    #[test]
    fn few_tools_are_told_whole() {
        let tools = Toolset::new(many(1, 3), 1 << 20);
        assert!(!tools.is_deferred());
        assert_eq!(tools.offered.len(), 4);
        assert!(tools.meant(&call(CALL, json!({"name": "bash"}))).is_none());
    }

    #[test]
    fn many_tools_are_told_by_name_and_found_by_words() {
        let tools = Toolset::new(many(3, 4), 100);
        assert_eq!(names(&tools.offered), ["bash", SEARCH, CALL]);
        let listed = &tools.offered[1].description;
        assert!(
            listed.contains("server2__tool3: Does thing 3 to what server 2 holds\n"),
            "{listed}"
        );
        let found = tools.search(&json!({"query": "server1__tool2"}));
        let first = found.content.lines().next().unwrap_or_default();
        assert!(first.starts_with("server1__tool2: "), "{}", found.content);
        assert!(
            found.content.contains("absolute path"),
            "the schema is there"
        );
        assert!(
            tools
                .search(&json!({"query": "nonsense"}))
                .content
                .starts_with("no tool")
        );
        assert!(tools.search(&json!({})).is_error);
    }

    #[test]
    fn a_call_by_name_is_the_call_that_it_means() {
        let tools = Toolset::new(many(3, 4), 100);
        for arguments in [json!({"path": "/x"}), json!("{\"path\":\"/x\"}")] {
            let by_name = call(
                CALL,
                json!({"name": "server0__tool1", "arguments": arguments}),
            );
            let meant = tools
                .meant(&by_name)
                .expect("by name")
                .expect("well formed");
            assert_eq!(
                (meant.name.as_str(), meant.arguments.as_str()),
                ("server0__tool1", "{\"path\":\"/x\"}")
            );
            assert_eq!(meant.id, "c");
        }
        for wrong in [json!({}), json!({"name": CALL}), json!({"name": SEARCH})] {
            assert!(tools.meant(&call(CALL, wrong)).expect("by name").is_err());
        }
    }

    /// The provider caches tools and prompt.
    #[test]
    fn what_is_offered_depends_on_the_tools_alone() {
        let (one, other) = (
            Toolset::new(many(10, 30), 100),
            Toolset::new(many(10, 30), 100),
        );
        one.search(&json!({"query": "server1"}));
        assert_eq!(one.offered, other.offered);
    }

    #[test]
    fn ten_servers_of_thirty_tools_cost_a_fraction_of_their_schemas() {
        let all = many(10, 30);
        let tokens = |specs: &[Arc<ToolSpec>]| specs.iter().map(|s| weight(s)).sum::<usize>() / 4;
        let whole = tokens(&all);
        let deferred = tokens(&Toolset::new(all, 32 << 10).offered);
        assert!(deferred * 3 < whole, "{deferred} of {whole}");
    }

    #[test]
    fn the_list_is_bounded() {
        let tools = Toolset::new(many(50, 100), 100);
        assert!(tools.offered[1].description.len() < MAX_LISTED + 1000);
    }
}
