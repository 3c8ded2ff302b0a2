//! Finds out which walls a sandbox gets here: by building them around a
//! command that does nothing.

use super::{Order, Shell, Workplace};
use crabtalk_guardian::{
    Namespaces, Places, SandboxConfig, SandboxPolicy, Walls, landlock_version,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a try takes on a machine under load, and more.
const WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct Probe<'a> {
    pub(crate) shell: &'a Shell,
    pub(crate) config: Arc<SandboxConfig>,
    /// `$CRABTALK_HOME`.
    pub(crate) home: &'a Path,
    /// The children's `PATH`, taken apart.
    pub(crate) programs: &'a [PathBuf],
}

impl Probe<'_> {
    pub(crate) async fn walls(&self) -> Walls {
        let landlock = landlock_version().map(|here| here.min(self.config.landlock));
        let mut walls = Walls {
            landlock,
            namespaces: Namespaces::None,
            why: Vec::new(),
        };
        let candidates = match &self.config.namespaces {
            _ if landlock.is_none() => Vec::new(),
            Some(Namespaces::None) => {
                walls.why.push("they are switched off".into());
                Vec::new()
            }
            Some(chosen) => vec![chosen.clone()],
            None => self.candidates(),
        };
        for candidate in candidates {
            match self.holds(&candidate).await {
                Ok(()) => {
                    walls.namespaces = candidate;
                    break;
                }
                Err(why) => walls.why.push(why),
            }
        }
        match walls.open() {
            None => tracing::info!(%walls, "the sandbox of commands"),
            Some(open) => tracing::warn!(%walls, "{open}"),
        }
        walls
    }

    /// The best first: ours mount by descriptors, `bwrap` by names.
    fn candidates(&self) -> Vec<Namespaces> {
        let bubblewrap = self
            .programs
            .iter()
            .map(|folder| folder.join("bwrap"))
            .find(|program| program.is_file());
        std::iter::once(Namespaces::BuiltIn)
            .chain(bubblewrap.map(Namespaces::Bubblewrap))
            .collect()
    }

    async fn holds(&self, namespaces: &Namespaces) -> Result<(), String> {
        // Closed to commands, so that nothing of it has to be opened.
        let home = self.home.canonicalize();
        let cwd = Workplace::enter(&home.map_err(|e| e.to_string())?)?;
        // In the closed home, where no command can disturb it: walls that are
        // not found are not built.
        let state = self.home.join("state");
        crabtalk_files::create_folder(&state).map_err(|e| e.to_string())?;
        let output = self.shell.run(Order {
            key: None,
            command: ":".into(),
            sandbox: Some(self.policy(&cwd, namespaces)?),
            environment: vec![("TMPDIR".into(), state.to_string_lossy().into_owned())],
            cwd,
            timeout: WITHIN,
            around: None,
            said: None,
            outputs: self.home.join("state/outputs"),
            prefix: "probe-".into(),
        });
        let output = output.await;
        if output.is_error {
            Err(output.content)
        } else {
            Ok(())
        }
    }

    fn policy(&self, cwd: &Workplace, namespaces: &Namespaces) -> Result<SandboxPolicy, String> {
        Places {
            config: &self.config,
            cwd: cwd.spot(),
            home: self.home,
            user_home: None,
            programs: self.programs,
            readable: &[],
            namespaces,
        }
        .policy()
    }
}
