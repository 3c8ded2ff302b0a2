//! What is remembered of servers from one start of the daemon to the next: which
//! tools a program has, so that it need not run to be known, and what a tool said
//! of itself when it was last allowed (COMP-3).
//!
//! Invariants: no credential is in it; it is bounded, so that what was written can be
//! read again, and no server takes the place of another's; a file that cannot be read
//! is as none, and whoever is asked is asked once more.

use crabtalk_files::Existing;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest file: some thousands of tools.
const MAX_BYTES: u64 = 16 << 20;

/// Tools whose descriptions are remembered.
const MAX_ALLOWED: usize = 4096;

/// Programs whose lists are remembered.
const MAX_LISTS: usize = 256;

/// Bytes of all lists as they are written: half of the file.
const MAX_LIST_BYTES: usize = 8 << 20;

/// Bytes of all that tools said when they were allowed: a quarter of the file.
const MAX_DESCRIBED_BYTES: usize = 4 << 20;

/// Bytes that one byte of a text may take in the file.
const LONGEST_ESCAPE: usize = 6;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Kept {
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

/// What a tool was when it was last allowed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Allowed {
    pub(crate) print: String,
    /// Empty if all tools together said more than is kept: then a change is shown as a
    /// whole.
    pub(crate) described: String,
}

impl Kept {
    /// Forgets lists that do not fit, the longest first: their programs are started once
    /// more to be known.
    fn fit_lists(&mut self) {
        let mut sizes: Vec<(usize, String)> = self
            .tools
            .iter()
            .map(|(name, listed)| (written(listed), name.clone()))
            .collect();
        sizes.sort_unstable();
        let mut all: usize = sizes.iter().map(|(size, _)| size).sum();
        while (self.tools.len() > MAX_LISTS || all > MAX_LIST_BYTES)
            && let Some((size, name)) = sizes.pop()
        {
            self.tools.remove(&name);
            all -= size;
        }
    }

    /// Forgets tools of the server that has most of them, and what the longest of all
    /// said. What a tool was is never forgotten for another server's tools.
    fn fit_allowed(&mut self) {
        while self.allowed.len() > MAX_ALLOWED {
            let mut of = BTreeMap::<&str, (usize, &String)>::new();
            for name in self.allowed.keys() {
                let server = name.split_once("__").map_or("", |(server, _)| server);
                of.entry(server).or_insert((0, name)).0 += 1;
            }
            let most = of.into_values().max_by_key(|(count, _)| *count);
            let Some(first) = most.map(|(_, name)| name.clone()) else {
                return;
            };
            self.allowed.remove(&first);
        }
        let all = self.allowed.values().map(|allowed| allowed.described.len());
        if all.sum::<usize>() * LONGEST_ESCAPE <= MAX_DESCRIBED_BYTES {
            return;
        }
        let mut sizes: Vec<(usize, String)> = self
            .allowed
            .iter()
            .map(|(name, allowed)| (written(&allowed.described), name.clone()))
            .collect();
        sizes.sort_unstable();
        let mut all: usize = sizes.iter().map(|(size, _)| size).sum();
        while all > MAX_DESCRIBED_BYTES
            && let Some((size, name)) = sizes.pop()
            && let Some(longest) = self.allowed.get_mut(&name)
        {
            longest.described = String::new();
            all -= size;
        }
    }
}

/// Bytes of something in the file.
fn written(what: &impl Serialize) -> usize {
    serde_json::to_vec(what).map_or(usize::MAX / MAX_LISTS, |bytes| bytes.len())
}

/// The file, and what is in it.
pub(crate) struct Seen {
    path: PathBuf,
    /// `None` until somebody asks.
    kept: Mutex<Option<Kept>>,
    writing: Mutex<()>,
}

impl Seen {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            kept: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        // Whole after each line, so a panic spoils nothing.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
        look(self.kept().get_or_insert_with(Kept::default))
    }

    /// Reads the file, once. Blocks.
    pub(crate) fn load(&self) {
        if self.kept().is_some() {
            return;
        }
        let bytes = crabtalk_files::if_there(crabtalk_files::read(&self.path, MAX_BYTES));
        let read = match bytes {
            Ok(None) => Kept::default(),
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(file = %self.path.display(), %error, "what was remembered of MCP servers cannot be read, and is begun anew");
                Kept::default()
            }),
            Err(error) => {
                tracing::warn!(file = %self.path.display(), %error, "what was remembered of MCP servers cannot be read");
                Kept::default()
            }
        };
        self.kept().get_or_insert(read);
    }

    /// The tools that a program had when it last ran, if it is still the same.
    pub(crate) fn tools(&self, server: &str, print: &str) -> Option<Vec<Tool>> {
        self.with(|kept| {
            let listed = kept.tools.get(server)?;
            (listed.print == print).then(|| listed.tools.clone())
        })
    }

    /// Notes the tools of a program; whether that is news.
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
            kept.fit_lists();
            true
        })
    }

    /// What a tool was when it was last allowed.
    pub(crate) fn allowed(&self, tool: &str) -> Option<Allowed> {
        self.with(|kept| kept.allowed.get(tool).cloned())
    }

    /// Notes what a tool is that was allowed; whether that is news.
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
            kept.fit_allowed();
            true
        })
    }

    /// Writes all of it. Blocks.
    pub(crate) fn save(&self) {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.with(|kept| kept.clone());
        let written = serde_json::to_vec(&kept)
            .map_err(std::io::Error::other)
            .and_then(|bytes| crabtalk_files::write(&self.path, &bytes, Existing::Replace));
        if let Err(error) = written {
            tracing::warn!(file = %self.path.display(), %error, "what is known of MCP servers could not be kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(folder: &tempfile::TempDir) -> Seen {
        Seen::new(folder.path().join("mcp.json"))
    }

    fn allowed(print: &str, described: String) -> Allowed {
        Allowed {
            print: print.to_owned(),
            described,
        }
    }

    #[test]
    fn a_server_of_many_tools_takes_the_place_of_its_own_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let seen = seen(&folder);
        seen.note_allowed("files__read", allowed("1", "reads".into()));
        for at in 0..MAX_ALLOWED + 100 {
            seen.note_allowed(&format!("zoo__{at}"), allowed("2", String::new()));
        }
        assert!(seen.allowed("files__read").is_some());
        assert_eq!(seen.with(|kept| kept.allowed.len()), MAX_ALLOWED);
    }

    #[test]
    fn what_servers_say_without_end_leaves_a_file_that_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = seen(&folder);
        first.note_allowed("files__read", allowed("1", "reads".into()));
        let tool = |says: String| -> Tool {
            let tool = json!({"name": "t", "description": says, "inputSchema": {}});
            serde_json::from_value(tool).expect("a tool")
        };
        first.note_tools("files", "1", vec![tool("reads".into())]);
        for at in 0..8 {
            // Each byte takes six in the file.
            let says = "\u{1}".repeat(1 << 20);
            first.note_tools(&format!("loud{at}"), "1", vec![tool(says.clone())]);
            first.note_allowed(&format!("loud{at}__t"), allowed("2", says));
        }
        first.save();
        let second = seen(&folder);
        second.load();
        let kept = second.allowed("files__read").expect("still known");
        assert_eq!(
            (kept.print.as_str(), kept.described.as_str()),
            ("1", "reads")
        );
        assert!(second.tools("files", "1").is_some());
        for at in 0..8 {
            // That a tool has changed is noticed even so.
            let loud = second.allowed(&format!("loud{at}__t")).expect("known");
            assert_eq!(loud.print, "2");
        }
    }
}
