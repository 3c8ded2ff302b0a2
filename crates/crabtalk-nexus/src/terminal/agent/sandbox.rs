//! An agent's program in CrabTalk's sandbox: the window runs a guardian, and the
//! guardian runs the program in the window's terminal.
//!
//! Invariants: in NEXUS's folder the program can write only the file of its hooks, which
//! it cannot replace; the guardian's order is in a file that it can only read.

use super::Shared;
use crate::backend::Failure;
use crate::terminal::cannot_write;
use crate::terminal::tmux::windows::Program;
use crabtalk_guardian::{
    GuardianCommand, PinnedPath, PolicyBuilder, Run, SandboxConfig, TerminalCommand,
};
use std::ffi::OsString;
use std::path::PathBuf;

/// Access of an agent's program beyond its working folder.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The guardian, which the window runs.
    pub guardian: GuardianCommand,
    /// CrabTalk's home, which is closed to the program.
    pub crabtalk_home: PathBuf,
    /// Hosts that the guardian's proxy can reach.
    pub hosts: Vec<String>,
    /// Files and folders that the program may change, in addition to those of its kind.
    pub writable: Vec<PathBuf>,
    /// Files and folders that the program may read, in addition to those of its kind.
    pub readable: Vec<PathBuf>,
    /// Variables before those of the kind and the agent.
    pub environment: Vec<(OsString, OsString)>,
}

impl Shared {
    /// The command line for the window. Writes the guardian's order to disk.
    pub(super) fn boxed(&self, program: Program) -> Result<Program, Failure> {
        let Some(sandbox) = &self.spec.sandbox else {
            return Ok(self.marked(program));
        };
        let failed = |said: String| {
            let agent = &self.spec.name;
            Failure::Failed(format!("cannot start {agent} in the sandbox: {said}"))
        };
        let own = program
            .environment
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment: Vec<_> = sandbox.environment.iter().cloned().chain(own).collect();
        let at_home = |paths: &[String]| -> Vec<PathBuf> {
            let home = self.home.display().to_string();
            let paths = paths.iter().map(|path| path.replace("{home}", &home));
            paths.map(PathBuf::from).collect()
        };
        let mut writable = at_home(&self.spec.kind.writable);
        writable.extend(sandbox.writable.iter().cloned());
        writable.push(self.hooks_file());
        let mut config = SandboxConfig {
            read: at_home(&self.spec.kind.readable),
            ..SandboxConfig::default()
        };
        config.read.extend(sandbox.readable.iter().cloned());
        let cwd = PinnedPath::judge(&program.folder);
        let policy = PolicyBuilder {
            config: &config,
            cwd: &cwd.map_err(|e| failed(format!("{}: {e}", program.folder.display())))?,
            read_only: false,
            write: &[],
            hosts: &sandbox.hosts,
            home: &sandbox.crabtalk_home,
            user_home: Some(&self.home),
            environment: &environment,
            readable: std::slice::from_ref(&self.state),
            own: &writable,
            caches: Some(&self.state.join("caches")),
            namespaces: true,
        };
        let sandbox_policy = policy.build().map_err(failed)?;
        let mut words = program.words.into_iter();
        let command = TerminalCommand {
            run: Run::Program {
                program: words.next().unwrap_or_default(),
                arguments: words.collect(),
            },
            environment,
            sandbox: sandbox_policy,
        };
        let file = self.state.join("order.json");
        let words = command
            .write(&file, &sandbox.guardian)
            .map_err(cannot_write(&file))?;
        Ok(Program {
            words: displayed(&words),
            ..program
        })
    }

    fn marked(&self, program: Program) -> Program {
        let Some(marker) = &self.spec.marker else {
            return program;
        };
        let words = marker.marked(program.words.iter().map(OsString::from));
        Program {
            words: displayed(&words),
            ..program
        }
    }
}

fn displayed(words: &[OsString]) -> Vec<String> {
    let words = words.iter().map(|word| word.display().to_string());
    words.collect()
}
