//! The agents' tools for memory: `remember`, `forget`, `recall` and `memory` (0038).

use crate::render::{self, Budget};
use crate::{Error, Memory, NewEntry, Recalled, Viewer};
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{BoxFuture, Permission};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// Maximum text that one call of `recall` returns.
const BUDGET: Budget = Budget {
    tokens: 2_000,
    tokens_per_hit: 250,
};

/// Note in results while archives are not indexed yet.
const INCOMPLETE: &str = "\nSome archives were not searched: they are still being indexed, or \
                          cannot be read. Try again later.\n";

#[derive(Deserialize)]
struct Forget {
    name: String,
}

#[derive(Deserialize)]
struct Recall {
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct Overview {
    content: String,
}

/// A call with parsed arguments.
enum Call {
    Remember(NewEntry),
    Forget(Forget),
    Recall(Recall),
    Overview(Overview),
}

impl Call {
    fn parse(name: &str, arguments: &Value) -> Result<Self, String> {
        fn read<T: DeserializeOwned>(name: &str, arguments: &Value) -> Result<T, String> {
            T::deserialize(arguments).map_err(|e| format!("{name}: {e}"))
        }
        match name {
            "remember" => read(name, arguments).map(Self::Remember),
            "forget" => read(name, arguments).map(Self::Forget),
            "recall" => read(name, arguments).map(Self::Recall),
            "memory" => read(name, arguments).map(Self::Overview),
            other => Err(format!("unknown memory tool {other}")),
        }
    }
}

impl ToolProvider for Memory {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        if !self.settings().enabled {
            return Vec::new();
        }
        SPECS.clone()
    }

    fn subject<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        let parsed = Call::parse(&call.name, &call.arguments);
        Box::pin(std::future::ready(parsed.map(|_| Subject::Other)))
    }

    fn call<'a>(
        &'a self,
        call: &'a Invocation,
        _subject: &'a Subject,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let viewer = self.viewer(&call.key, &call.origin);
            match Call::parse(&call.name, &call.arguments) {
                Err(reason) => ToolOutput::error(reason),
                Ok(parsed) => match self.run(&viewer, parsed).await {
                    Ok(said) => ToolOutput::ok(said),
                    Err(error) => ToolOutput::error(error.to_string()),
                },
            }
        })
    }
}

/// Result of a search without matches.
const NOTHING: &str = "Nothing found. Search matches words: try other words that the text may \
                       contain.";

/// Result of a query without searchable words.
const COMMON_WORDS: &str = "Nothing was searched: these words occur nearly everywhere. Try \
                            names, things or dates that the text may contain.";

impl Memory {
    async fn run(&self, viewer: &Viewer, call: Call) -> Result<String, Error> {
        match call {
            Call::Remember(entry) => {
                let said = format!("Remembered {:?}.", entry.name.trim());
                self.remember(viewer, entry).await?;
                Ok(said)
            }
            Call::Forget(Forget { name }) => {
                self.forget(viewer, &name).await?;
                Ok(format!("Forgot {:?}.", name.trim()))
            }
            Call::Recall(Recall { query, limit }) => {
                let limit = limit.unwrap_or(self.settings().recall_limit).max(1);
                let Recalled {
                    hits,
                    complete,
                    only_common,
                } = self.recall(viewer, &query, limit).await;
                let mut found = match hits.is_empty() {
                    true if only_common => COMMON_WORDS.to_owned(),
                    true => NOTHING.to_owned(),
                    false => render::items(&hits, BUDGET),
                };
                if !complete {
                    found.push_str(INCOMPLETE);
                }
                Ok(found)
            }
            Call::Overview(Overview { content }) => {
                self.write_overview(viewer, content).await?;
                Ok("Wrote MEMORY.md.".to_owned())
            }
        }
    }
}

/// Created once, since every step of every run uses them.
static SPECS: LazyLock<Vec<Arc<ToolSpec>>> =
    LazyLock::new(|| specs().into_iter().map(Arc::new).collect());

fn specs() -> [ToolSpec; 4] {
    let text = |description: &str| json!({ "type": "string", "description": description });
    [
        spec(
            "remember",
            "Store a fact, preference or decision beyond this conversation. An existing entry of \
             the same name is overwritten.",
            json!({
                "name": text("Name of the entry: a short title of one line."),
                "description": text("One line that helps to find the entry."),
                "content": text("Text to remember."),
                "shared": { "type": "boolean", "description":
                    "Whether runs for other senders may recall it; only an owner can share. \
                     Default: false." },
            }),
            &["name", "description", "content"],
        ),
        spec(
            "forget",
            "Delete a memory entry.",
            json!({ "name": text("Name of the entry.") }),
            &["name"],
        ),
        spec(
            "recall",
            "Search memory entries and the archived parts of this conversation. The search matches \
             words: use words that the text is likely to contain, with speakers and dates if you \
             know them; try again with other words.",
            json!({
                "query": text("Words to search for."),
                "limit": { "type": "integer", "minimum": 1, "maximum": crate::MAX_HITS,
                    "description": "Maximum number of results." },
            }),
            &["query"],
        ),
        spec(
            "memory",
            "Overwrite MEMORY.md, the overview that every run for an owner contains. \
             Give the whole new text.",
            json!({ "content": text("The new text, in Markdown.") }),
            &["content"],
        ),
    ]
}

/// Creates a spec. The tools change only memory files, so they need no approval; the rights
/// of the sender are checked for each entry.
fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
        .into(),
        default_permission: Permission::Allow,
    }
}
