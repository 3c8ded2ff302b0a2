//! Determines which parts of the sandbox work on this machine, by running an empty command
//! in it.

use super::{Order, Shell, Workplace};
use crabtalk_guardian::{PolicyBuilder, SandboxConfig, Walls, landlock_version};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of the probe, with a margin for a loaded machine.
const WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct Probe<'a> {
    pub(crate) shell: &'a Shell,
    pub(crate) config: Arc<SandboxConfig>,
    /// The home, `$CRABTALK_HOME`.
    pub(crate) home: &'a Path,
    /// The environment of commands.
    pub(crate) environment: &'a [(OsString, OsString)],
}

impl Probe<'_> {
    pub(crate) async fn walls(&self) -> Walls {
        let landlock = landlock_version().map(|here| here.min(self.config.landlock));
        let why = match landlock {
            Some(_) if self.config.namespaces => self.namespaces().await.err(),
            _ => Some("they are switched off".into()),
        };
        let walls = Walls {
            landlock,
            namespaces: why.is_none(),
            why,
        };
        match walls.open() {
            None => tracing::info!(%walls, "the sandbox of commands"),
            Some(open) => tracing::warn!(%walls, "{open}"),
        }
        walls
    }

    /// Runs an empty command in namespaces; the error is the reason why it failed.
    async fn namespaces(&self) -> Result<(), String> {
        // The home is hidden from commands, so nothing below it needs access.
        let home = self.home.canonicalize();
        let cwd = Workplace::enter(&home.map_err(|e| e.to_string())?)?;
        // Commands cannot reach the home and disturb the probe.
        let state = self.home.join("state");
        crabtalk_files::create_folder(&state).map_err(|e| e.to_string())?;
        let builder = PolicyBuilder {
            config: &self.config,
            cwd: cwd.spot(),
            read_only: false,
            write: &[],
            hosts: &[],
            home: self.home,
            user_home: None,
            environment: self.environment,
            readable: &[],
            own: &[],
            caches: None,
            namespaces: true,
        };
        let output = self.shell.run(Order {
            command: ":".into(),
            sandbox: Some(builder.build()?),
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
}
