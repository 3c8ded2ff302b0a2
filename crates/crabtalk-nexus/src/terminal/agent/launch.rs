//! Starts an agent, continues its session, or reconnects to it.
//!
//! Invariant: processes of an earlier life are ended before another one begins.

use super::session::Life;
use super::{Shared, Terminal, slug};
use crate::backend::{Failure, Launch};
use crate::terminal::cannot_write;
use crate::terminal::processes::{self, MARK};
use crate::terminal::tmux::windows::Window;
use crate::terminal::tmux::windows::{Program, real};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Variable with the path of the hook file: a hook appends one JSON object per line.
const HOOKS: &str = "CRABTALK_HOOKS";

/// Suffix of the life ids in the sandbox; others end in a number.
const SANDBOXED: &str = ".sandboxed";

/// Prefix of the name of a session that has no transcript yet.
const UNNAMED: &str = "new-";

impl Terminal {
    pub(super) async fn start(&self, launch: Launch) -> Result<(), Failure> {
        let shared = &self.shared;
        let session = match launch {
            Launch::Adopt { session } => return shared.adopt(session).await,
            Launch::Fresh => None,
            Launch::Resume { session } => Some(session),
        };
        let found = session.and_then(|session| shared.session().file_of(&session));
        let window = shared.empty_window().await?;
        let mut life = new_life(&shared.spec.name);
        if shared.spec.sandbox.is_some() {
            life.push_str(SANDBOXED);
        }
        let name = found
            .as_ref()
            .map_or_else(|| format!("{UNNAMED}{life}"), |f| f.session.clone());
        let program = shared.program(&life, found.as_ref().map(|found| found.session.as_str()));
        let hooks = shared.write_files()?;
        let program = shared.boxed(program)?;
        let mut life = Life {
            window: Window {
                life,
                ..window.clone()
            },
            since: SystemTime::now(),
            is_over: true,
            is_ready: false,
            is_found: false,
            deadline: Instant::now() + Duration::from_secs(shared.spec.kind.ready.within_secs),
        };
        shared.session().begin(life.clone(), name, found, &hooks);
        shared.tmux.fill(&window, &program).await?;
        let filled = shared.tmux.window_of(&shared.spec.name).await?;
        life.window = filled.ok_or_else(|| shared.gone())?;
        life.is_over = false;
        shared.session().life = Some(life);
        shared.wake.notify_one();
        Ok(())
    }
}

impl Shared {
    /// A window in which no process of an earlier life runs.
    async fn empty_window(&self) -> Result<Window, Failure> {
        let Some(window) = self.tmux.window_of(&self.spec.name).await? else {
            // The server may have ended with all its windows.
            self.tmux.open_session(&self.at).await?;
            return self.tmux.open_window(&self.at, &self.spec.name).await;
        };
        let over = |life: &mut Life| life.is_over = true;
        self.session().life.as_mut().map(over);
        let left = processes::end(&window.life).await;
        if left > 0 {
            let text = format!(
                "{left} processes of an earlier {} do not end",
                self.spec.name
            );
            return Err(Failure::Failed(text));
        }
        Ok(window)
    }

    async fn adopt(&self, session: String) -> Result<(), Failure> {
        let window = self.tmux.window_of(&self.spec.name).await?;
        let window = window.filter(|window| !window.is_dead && !window.life.is_empty());
        let window = window.ok_or_else(|| self.gone())?;
        if self.spec.sandbox.is_some() && !window.life.ends_with(SANDBOXED) {
            // The agent's rules assume the sandbox: it is ended, and started again in it.
            let text = format!("{} runs outside of its sandbox", self.spec.name);
            return Err(Failure::NotRunning(text));
        }
        let found = self.session().file_of(&session);
        let life = Life {
            window,
            since: SystemTime::UNIX_EPOCH,
            is_over: false,
            is_ready: false,
            is_found: true,
            deadline: Instant::now() + Duration::from_secs(self.spec.kind.ready.within_secs),
        };
        self.session()
            .begin(life, session, found, &self.hooks_file());
        self.wake.notify_one();
        Ok(())
    }

    fn gone(&self) -> Failure {
        Failure::NotRunning(format!("no window runs {}", self.spec.name))
    }

    pub(super) fn hooks_file(&self) -> PathBuf {
        self.state.join("hooks.jsonl")
    }

    /// Writes the files of the kind.
    fn write_files(&self) -> Result<PathBuf, Failure> {
        crabtalk_files::create_folder(&self.state).map_err(cannot_write(&self.state))?;
        for file in &self.spec.kind.files {
            // Only the file name of the path is used.
            let name = Path::new(&file.name).file_name().unwrap_or_default();
            let path = self.state.join(name);
            std::fs::write(&path, &file.text).map_err(cannot_write(&path))?;
        }
        let hooks = self.hooks_file();
        std::fs::write(&hooks, "").map_err(cannot_write(&hooks))?;
        Ok(hooks)
    }

    pub(crate) fn program(&self, life: &str, session: Option<&str>) -> Program {
        let kind = &self.spec.kind;
        let folder = real(&self.spec.folder);
        let expand = |text: &String| {
            text.replace("{state}", &self.state.display().to_string())
                .replace("{hooks}", &self.hooks_file().display().to_string())
                .replace("{home}", &self.home.display().to_string())
                .replace("{crabtalk}", &self.crabtalk.display().to_string())
                .replace("{name}", &slug(&self.spec.name))
                .replace("{folder}", &folder.display().to_string())
                .replace("{session}", session.unwrap_or_default())
        };
        let words = match session {
            Some(_) if !kind.resume.is_empty() => &kind.resume,
            _ => &kind.command,
        };
        let own = [
            (MARK.to_owned(), life.to_owned()),
            (HOOKS.to_owned(), self.hooks_file().display().to_string()),
        ];
        let given = kind.env.iter().chain(&self.spec.env);
        let environment = given.map(|(name, value)| (name.clone(), expand(value)));
        Program {
            words: words.iter().map(expand).collect(),
            environment: environment.chain(own).collect(),
            folder,
            life: life.to_owned(),
        }
    }
}

/// Creates an id for a life that is unique among all supervisors.
fn new_life(agent: &str) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos());
    format!("{agent}-{}-{now}", std::process::id())
}

/// A name for a new session in the same process.
pub(super) fn unnamed(agent: &str) -> String {
    format!("{UNNAMED}{}", new_life(agent))
}
