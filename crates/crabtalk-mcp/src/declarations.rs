//! Facts about servers that survive restarts: the tools of each program, which can then be
//! offered without starting it, and the description of each tool when it was last
//! allowed (COMP-3).
//!
//! Invariants: the file contains no credential; an unreadable file counts as empty, so
//! that owners are asked about tools again.

use crabtalk_files::Existing;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest file that is read: hundreds of servers fit.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Contents {
    #[serde(default)]
    tools: BTreeMap<String, Listed>,
    #[serde(default)]
    allowed: BTreeMap<String, Allowed>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Listed {
    print: String,
    tools: Vec<Tool>,
}

/// A tool when it was last allowed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Allowed {
    pub(crate) print: String,
    pub(crate) described: String,
}

/// The file and its contents.
pub(crate) struct Declarations {
    path: PathBuf,
    /// `None` until it is loaded.
    kept: Mutex<Option<Contents>>,
    writing: Mutex<()>,
}

impl Declarations {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            kept: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Contents>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, look: impl FnOnce(&mut Contents) -> T) -> T {
        look(self.kept().get_or_insert_with(Contents::default))
    }

    /// Reads the file once. Blocks.
    pub(crate) fn load(&self) {
        if self.kept().is_some() {
            return;
        }
        let bytes = crabtalk_files::if_there(crabtalk_files::read(&self.path, MAX_BYTES));
        let read = match bytes {
            Ok(None) => Contents::default(),
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(file = %self.path.display(), %error, "the file of known MCP servers is damaged; starting with an empty one");
                Contents::default()
            }),
            Err(error) => {
                tracing::warn!(file = %self.path.display(), %error, "cannot read the file of known MCP servers");
                Contents::default()
            }
        };
        self.kept().get_or_insert(read);
    }

    /// The tools of a program's last run, if its settings are the same.
    pub(crate) fn tools(&self, server: &str, print: &str) -> Option<Vec<Tool>> {
        self.with(|kept| {
            let listed = kept.tools.get(server)?;
            (listed.print == print).then(|| listed.tools.clone())
        })
    }

    /// Records the tools of a program; returns whether they changed.
    pub(crate) fn note_tools(&self, server: &str, print: &str, tools: Vec<Tool>) -> bool {
        self.with(|kept| {
            let same = kept
                .tools
                .get(server)
                .is_some_and(|listed| listed.print == print && listed.tools == tools);
            if same {
                return false;
            }
            let print = print.to_owned();
            kept.tools
                .insert(server.to_owned(), Listed { print, tools });
            true
        })
    }

    /// The tool's declaration when it was last allowed.
    pub(crate) fn allowed(&self, tool: &str) -> Option<Allowed> {
        self.with(|kept| kept.allowed.get(tool).cloned())
    }

    /// Records a tool that was allowed; returns whether it changed.
    pub(crate) fn note_allowed(&self, tool: &str, now: Allowed) -> bool {
        self.with(|kept| {
            if kept
                .allowed
                .get(tool)
                .is_some_and(|before| before.print == now.print)
            {
                return false;
            }
            kept.allowed.insert(tool.to_owned(), now);
            true
        })
    }

    /// Writes the whole file. Blocks.
    pub(crate) fn save(&self) {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self
            .with(|kept| serde_json::to_vec(kept))
            .map_err(std::io::Error::other)
            .and_then(|bytes| crabtalk_files::write(&self.path, &bytes, Existing::Replace));
        if let Err(error) = written {
            tracing::warn!(file = %self.path.display(), %error, "cannot save the file of known MCP servers");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(folder: &tempfile::TempDir) -> Declarations {
        Declarations::new(folder.path().join("mcp.json"))
    }

    #[test]
    fn tools_and_descriptions_survive_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = seen(&folder);
        let tool: Tool = serde_json::from_value(json!({"name": "t", "inputSchema": {}})).unwrap();
        assert!(first.note_tools("files", "1", vec![tool.clone()]));
        assert!(!first.note_tools("files", "1", vec![tool]));
        let (print, described) = ("1".into(), "reads".into());
        assert!(first.note_allowed("files__t", Allowed { print, described }));
        first.save();
        let second = seen(&folder);
        second.load();
        assert!(second.tools("files", "1").is_some());
        assert!(second.tools("files", "2").is_none(), "another program");
        let kept = second.allowed("files__t").expect("kept");
        assert_eq!(kept.described, "reads");
    }
}
