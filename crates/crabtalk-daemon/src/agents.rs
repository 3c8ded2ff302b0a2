//! Reads and writes the agents in `config/agents/` for clients.
//!
//! Invariants: one change at a time; names differ in more than case; a text that cannot
//! be parsed is never written.

use crate::error::Error;
use crabtalk_config::{AgentFile, check_name, load_agents, write_atomic};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tokio::sync::Mutex;

pub(crate) struct AgentFiles {
    folder: PathBuf,
    /// Locked during a change of the folder.
    changing: Mutex<()>,
}

/// A kind of change to an agent's file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The file must be absent.
    Create,
    /// The file must exist, or the agent must be built in.
    Update {
        /// The prompt of a built-in agent without a file.
        built_in: Option<&'static str>,
    },
}

impl AgentFiles {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            changing: Mutex::new(()),
        }
    }

    /// The frontmatter of every readable file, by agent.
    pub(crate) async fn frontmatters(&self) -> Result<HashMap<String, String>, Error> {
        blocking(self.folder.clone(), |folder| {
            let entries = load_agents(folder).map_err(|e| Error::Failed(e.with_causes()))?;
            let readable = entries.into_iter().filter_map(|entry| {
                let (file, _) = entry.agent.ok()?;
                Some((entry.name, file.frontmatter))
            });
            Ok(readable.collect())
        })
        .await
    }

    pub(crate) async fn write(
        &self,
        change: Change,
        name: String,
        config: String,
        prompt: String,
    ) -> Result<(), Error> {
        let _changing = self.changing.lock().await;
        blocking(self.folder.clone(), move |folder| {
            check_name(&name).map_err(Error::Invalid)?;
            let path = folder.join(format!("{name}.md"));
            match (change, taken(folder, &name)?) {
                (Change::Create, Some(twin)) => {
                    return Err(Error::Conflict(format!(
                        "the agent {twin} exists; choose another name or update it"
                    )));
                }
                (Change::Update { .. }, Some(twin)) if twin != name => {
                    return Err(unknown(&name));
                }
                (Change::Update { built_in: None }, None) => return Err(unknown(&name)),
                (Change::Create, None) | (Change::Update { .. }, _) => {}
            }
            let prompt = match change {
                // An empty prompt keeps the present one (WIRE-5).
                Change::Update { built_in } if prompt.trim().is_empty() => {
                    let kept = AgentFile::load(&path)
                        .map_err(|e| Error::Conflict(e.with_causes()))?
                        .map(|(file, _)| file.prompt);
                    kept.unwrap_or_else(|| built_in.unwrap_or_default().to_owned())
                }
                Change::Create | Change::Update { .. } => prompt,
            };
            let file = AgentFile::of(&config, &prompt);
            let (file, _) = file.map_err(|e| Error::Invalid(e.with_causes()))?;
            write_atomic(&path, &file.to_text()).map_err(|e| Error::Failed(e.with_causes()))
        })
        .await
    }

    pub(crate) async fn remove(&self, name: String) -> Result<(), Error> {
        let _changing = self.changing.lock().await;
        blocking(self.folder.clone(), move |folder| {
            check_name(&name).map_err(Error::Invalid)?;
            if taken(folder, &name)?.as_deref() != Some(name.as_str()) {
                return Err(unknown(&name));
            }
            let path = folder.join(format!("{name}.md"));
            std::fs::remove_file(&path)
                .map_err(|e| Error::Failed(format!("cannot remove {}: {e}", path.display())))
        })
        .await
    }
}

/// The agent whose file has this name, ignoring case.
fn taken(folder: &Path, name: &str) -> Result<Option<String>, Error> {
    let entries = load_agents(folder).map_err(|e| Error::Failed(e.with_causes()))?;
    let mut names = entries.into_iter().map(|entry| entry.name);
    Ok(names.find(|known| known.eq_ignore_ascii_case(name)))
}

fn unknown(name: &str) -> Error {
    Error::NotFound(format!("agent file {name}.md does not exist"))
}

async fn blocking<T: Send + 'static>(
    folder: PathBuf,
    work: impl FnOnce(&Path) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(move || work(&folder)).await;
    done.unwrap_or_else(|_| {
        Err(Error::Failed(
            "the agents' files could not be reached".into(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(done: Result<(), Error>) -> u32 {
        done.err()
            .map_or(0, |error| crabtalk_proto::Status::from(error).code)
    }

    async fn write(files: &AgentFiles, change: Change, name: &str, config: &str) -> u32 {
        let done = files.write(change, name.into(), config.into(), "You are.".into());
        code(done.await)
    }

    #[tokio::test]
    async fn agents_are_written_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let files = AgentFiles::new(dir.path().to_owned());
        let (create, update) = (Change::Create, Change::Update { built_in: None });
        for (change, name, config, code) in [
            (update, "rev", "model: m", 404),
            (create, "rev", "# why\nmodel: m", 0),
            (create, "REV", "", 409),
            (update, "REV", "", 404),
            (create, "../x", "", 400),
            (create, "", "", 400),
            (create, "bad", "thinking: 4", 400),
            (create, "bad", "model: [", 400),
            (update, "rev", r#"{"tools": ["read"]}"#, 0),
            (
                Change::Update {
                    built_in: Some("You are built in."),
                },
                "crab",
                "",
                0,
            ),
        ] {
            assert_eq!(
                write(&files, change, name, config).await,
                code,
                "{name} {config}"
            );
        }
        let read = files.frontmatters().await.unwrap();
        assert_eq!(read["rev"], "{\"tools\": [\"read\"]}\n");
        assert_eq!(read.len(), 2);
        assert_eq!(code(files.remove("Rev".into()).await), 404);
        files.remove("rev".into()).await.unwrap();
        assert_eq!(code(files.remove("rev".into()).await), 404);
    }

    #[tokio::test]
    async fn an_empty_prompt_keeps_the_one_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let files = AgentFiles::new(dir.path().to_owned());
        let update = Change::Update {
            built_in: Some("You are built in."),
        };
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let empty = |name: &str| files.write(update, name.into(), "model: n".into(), " ".into());
        write(&files, Change::Create, "rev", "model: m").await;
        empty("rev").await.unwrap();
        assert_eq!(read("rev.md"), "---\nmodel: n\n---\nYou are.\n");
        empty("crab").await.unwrap();
        assert_eq!(read("crab.md"), "---\nmodel: n\n---\nYou are built in.\n");
        std::fs::write(dir.path().join("rev.md"), "\0").unwrap();
        assert_eq!(code(empty("rev").await), 409);
    }

    #[tokio::test]
    async fn comments_of_what_was_given_stay() {
        let dir = tempfile::tempdir().unwrap();
        let files = AgentFiles::new(dir.path().to_owned());
        write(&files, Change::Create, "rev", "# why\nmodel: m").await;
        let text = std::fs::read_to_string(dir.path().join("rev.md")).unwrap();
        assert_eq!(text, "---\n# why\nmodel: m\n---\nYou are.\n");
    }
}
