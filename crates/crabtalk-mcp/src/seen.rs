//! What is remembered of servers from one start of the daemon to the next: which
//! tools a program has, so that it need not run to be known, and what a tool said
//! of itself when it was last allowed (COMP-3).
//!
//! Invariants: no credential is in it; it is bounded; a file that cannot be read
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
    pub(crate) described: String,
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
            while kept.tools.len() > MAX_LISTS {
                kept.tools.pop_first();
            }
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
            while kept.allowed.len() > MAX_ALLOWED {
                kept.allowed.pop_first();
            }
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
