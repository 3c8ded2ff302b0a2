//! Reads the folder of agent files.
//!
//! Invariant: a broken file affects only its own agent.

use super::AgentFile;
use crate::error::{Diagnostic, Error, Warning};
use crate::name::{NAME_RULE, is_name};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of agents, which are all read at every start.
const MAX_AGENTS: usize = 4_096;

/// A file of the folder.
#[derive(Debug)]
pub struct AgentEntry {
    /// The agent's name: that of the file, without `.md`.
    pub name: String,
    /// The content of the file, or its error.
    pub agent: Result<(AgentFile, Vec<Warning>), Error>,
}

/// Reads every `NAME.md` of a folder, by name. Skips hidden files; a missing folder is
/// empty.
///
/// # Errors
/// The folder cannot be read. Errors in one file are in its entry.
pub fn load_agents(folder: &Path) -> Result<Vec<AgentEntry>, Error> {
    let mut files = agent_files(folder)?;
    files.sort();
    if files.len() > MAX_AGENTS {
        let message = format!("{} agents, the limit is {MAX_AGENTS}", files.len());
        return Err(invalid(folder, message));
    }
    let mut entries: Vec<AgentEntry> = Vec::with_capacity(files.len());
    for (name, path) in files {
        let twin = entries.iter().find(|e| e.name.eq_ignore_ascii_case(&name));
        let agent = if !is_name(&name) {
            Err(invalid(
                &path,
                format!("{name:?} is not an agent's name: use {NAME_RULE}"),
            ))
        } else if let Some(twin) = twin {
            let message = format!(
                "the name of the agent {} differs only in case: rename one of the files",
                twin.name
            );
            Err(invalid(&path, message))
        } else {
            AgentFile::load(&path).and_then(|agent| {
                agent.ok_or_else(|| invalid(&path, "the file has gone, or its link is broken"))
            })
        };
        entries.push(AgentEntry { name, agent });
    }
    Ok(entries)
}

fn agent_files(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list", folder, e)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("list", folder, e))?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        if let Some(name) = file_name.strip_suffix(".md")
            && !name.starts_with('.')
        {
            files.push((name.to_owned(), entry.path()));
        }
    }
    Ok(files)
}

fn invalid(file: &Path, message: impl Into<String>) -> Error {
    Error::Invalid(Diagnostic::of_whole(file, message))
}
