//! Requests about memory entries, with the rights of the conversation's sender (MEM-2).

use super::Session;
use crate::error::Error;
use crabtalk_memory::{Entry, Error as Refused, NewEntry, Viewer};
use crabtalk_proto::*;

/// Default number of entries in a page.
const DEFAULT_PAGE: usize = 200;

/// Maximum number of entries in a page, far below the frame's limit (WIRE-1) since names
/// and descriptions are bounded.
const MAX_PAGE: usize = 1000;

impl Session {
    /// The viewer of a client's request.
    fn viewer(&self, agent: &str, sender: &str) -> Result<Viewer, Error> {
        let key = self.key(agent, sender)?;
        Ok(self.node.memory().viewer(&key, &self.origin(sender)))
    }

    /// Whether the client may see an agent's entry. An entry without an agent was written by
    /// a person for all.
    pub(super) fn reaches_note(&self, agent: &str) -> bool {
        agent.is_empty() || self.reaches_agent(agent)
    }

    pub(super) async fn memory_page(&self, request: ListMemoryMsg) -> Result<MemoryList, Error> {
        let viewer = self.viewer(&request.agent, &request.sender)?;
        let limit = super::as_many(request.limit, DEFAULT_PAGE, MAX_PAGE);
        let memory = self.node.memory();
        let offset = request.offset as usize;
        // Warnings contain file names, which only owners may see.
        let warnings = if offset == 0 && viewer.is_owner {
            memory.warnings().await
        } else {
            Vec::new()
        };
        let mut entries = memory.entries(&viewer).await;
        entries.retain(|entry| self.reaches_note(&entry.agent));
        entries.sort_by(|a, b| (&a.name, &a.sender).cmp(&(&b.name, &b.sender)));
        let more = entries.len() > offset.saturating_add(limit);
        let page = entries.into_iter().skip(offset).take(limit);
        Ok(MemoryList {
            entries: page
                .map(|entry| MemoryEntry {
                    content: String::new(),
                    ..to_wire(entry)
                })
                .collect(),
            more,
            warnings: warnings.iter().map(passed_over).collect(),
        })
    }

    pub(super) async fn memory_entry(&self, request: GetMemoryMsg) -> Result<MemoryEntry, Error> {
        let viewer = self.viewer(&request.agent, &request.sender)?;
        let entry = self.node.memory().entry(&viewer, &request.name).await;
        let entry = entry.and_then(|entry| match self.reaches_note(&entry.agent) {
            true => Ok(entry),
            false => Err(Refused::NotFound(request.name.clone())),
        });
        entry.map(to_wire).map_err(Error::from)
    }

    pub(super) async fn remember_entry(&self, request: RememberMsg) -> Result<(), Error> {
        let viewer = self.viewer(&request.agent, &request.sender)?;
        super::refuse_reserved(&viewer.sender)?;
        if request.shared == Some(true) && !viewer.is_owner {
            return Err(Refused::OwnersOnly("share an entry").into());
        }
        let entry = NewEntry {
            name: request.name,
            description: request.description,
            content: request.content,
            shared: request.shared,
        };
        Ok(self.node.memory().remember(&viewer, entry).await?)
    }

    pub(super) async fn forget_entry(&self, request: ForgetMsg) -> Result<(), Error> {
        let viewer = self.viewer(&request.agent, &request.sender)?;
        let memory = self.node.memory();
        if !self.reaches_everything()
            && let Ok(entry) = memory.entry(&viewer, &request.name).await
            && !self.reaches_note(&entry.agent)
        {
            return Err(Refused::NotFound(request.name).into());
        }
        Ok(memory.forget(&viewer, &request.name).await?)
    }

    pub(super) async fn import_notes(
        &self,
        request: ImportMemoryMsg,
    ) -> Result<MemoryImport, Error> {
        let viewer = self.viewer(&request.agent, &request.sender)?;
        if !viewer.is_owner {
            return Err(Refused::OwnersOnly("import notes").into());
        }
        let folder = self.check_folder("path", &request.path).await?;
        let report = self.node.memory().import(&viewer, &folder).await?;
        let to_wire = |(file, name): (std::path::PathBuf, String)| ImportedMemory {
            file: file.to_string_lossy().into_owned(),
            name,
        };
        Ok(MemoryImport {
            imported: report.imported.into_iter().map(to_wire).collect(),
            skipped: report.skipped.iter().map(passed_over).collect(),
        })
    }
}

fn passed_over(warning: &crabtalk_memory::Warning) -> String {
    format!("{} {}", warning.file.display(), warning.reason)
}

fn to_wire(entry: Entry) -> MemoryEntry {
    MemoryEntry {
        name: entry.name,
        description: entry.description,
        agent: entry.agent,
        sender: entry.sender,
        shared: entry.shared,
        created: entry.created,
        updated: entry.updated,
        content: entry.content,
    }
}
