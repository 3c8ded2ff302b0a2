//! Landlock: limits the files that a process and its descendants can access.

use super::policy::{OpenedPath, Right};
use super::{SandboxPolicy, lacks};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::FileType;
use std::os::fd::{AsFd, OwnedFd};

/// The minimum version (Linux 6.2); before it, files outside could still be
/// truncated.
const NEEDED: ABI = ABI::V3;

/// Kernel files of the machine, for the fallback. `/proc` shows names of other
/// processes, but not their environment or memory, since landlock denies
/// tracing them.
const SHARED_READ: &[&str] = &["/proc", "/dev/random", "/dev/urandom"];

/// Devices to which writing has no effect.
const SHARED_WRITE: &[&str] = &["/dev/null", "/dev/tty", "/dev/zero", "/dev/full"];

/// A landlock ruleset under construction.
pub(crate) struct Fence {
    ruleset: RulesetCreated,
    /// All rights to a file, except connecting to a socket.
    change: BitFlags<AccessFs>,
}

impl Fence {
    /// Creates an empty ruleset, with at most this version of landlock.
    pub(crate) fn new(latest: u8) -> Result<Self, String> {
        let welcome = abi(latest);
        let create = || -> Result<RulesetCreated, RulesetError> {
            let ruleset = Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_all(NEEDED))?
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(welcome))?;
            match Scope::from_all(welcome) {
                scope if scope.is_empty() => ruleset.create(),
                scope => ruleset.scope(scope)?.create(),
            }
        };
        Ok(Self {
            ruleset: create().map_err(|e| missing(&e))?,
            change: AccessFs::from_all(welcome) & !BitFlags::from(AccessFs::ResolveUnix),
        })
    }

    /// Opens the paths of a policy on the machine's file system, except those
    /// that were replaced since they were judged.
    pub(crate) fn open_policy(&mut self, policy: &SandboxPolicy) -> Result<(), String> {
        for OpenedPath { spot, right } in &policy.opened {
            let opened = if *spot == policy.cwd {
                // The current folder was opened when it was judged, and may have moved since.
                super::policy::open(".".as_ref())
            } else {
                spot.open()
            };
            if let Some(opened) = opened.ok().filter(|opened| spot.is(opened)) {
                self.open(&opened, *right == Right::Write)?;
            }
        }
        Ok(())
    }

    /// Opens the parts of a shared `/dev` and `/proc` that every process needs.
    pub(crate) fn open_shared(&mut self) -> Result<(), String> {
        for (paths, change) in [(SHARED_READ, false), (SHARED_WRITE, true)] {
            for path in paths {
                if let Ok(opened) = super::policy::open(path.as_ref()) {
                    self.open(&opened, change)?;
                }
            }
        }
        Ok(())
    }

    /// Opens a file, or a folder with everything below it.
    pub(crate) fn open(&mut self, opened: &OwnedFd, change: bool) -> Result<(), String> {
        let mut access = if change {
            self.change
        } else {
            AccessFs::from_read(NEEDED)
        };
        let is_folder = rustix::fs::fstat(opened)
            .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
        if !is_folder {
            access &= AccessFs::from_file(ABI::V9);
        }
        let rule = PathBeneath::new(opened.as_fd(), access);
        (&mut self.ruleset)
            .add_rule(rule)
            .map(drop)
            .map_err(|e| missing(&e))
    }

    /// Allows listing folders in a root that contains only open paths.
    pub(crate) fn list(&mut self, root: &OwnedFd) -> Result<(), String> {
        let rule = PathBeneath::new(root.as_fd(), AccessFs::ReadDir);
        (&mut self.ruleset)
            .add_rule(rule)
            .map(drop)
            .map_err(|e| missing(&e))
    }

    /// Restricts the calling thread and its future children.
    pub(crate) fn close(self) -> Result<(), String> {
        let status = self.ruleset.restrict_self().map_err(|e| missing(&e))?;
        match status.ruleset {
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
            RulesetStatus::NotEnforced => Err(lacks("landlock is not available")),
        }
    }
}

fn missing(error: &RulesetError) -> String {
    lacks(&format!(
        "landlock of Linux 6.2 or later is not available: {error}"
    ))
}

/// The versions that restrict more than their predecessors.
const VERSIONS: [(u8, ABI); 4] = [(9, ABI::V9), (6, ABI::V6), (5, ABI::V5), (3, ABI::V3)];

/// The highest of them that does not exceed `version`.
fn abi(version: u8) -> ABI {
    let known = VERSIONS.iter().find(|(number, _)| *number <= version);
    known.map_or(NEEDED, |(_, abi)| *abi)
}

/// The highest of them that this kernel supports.
pub fn version() -> Option<u8> {
    let has = |abi: ABI| {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi));
        let scoped = ruleset.and_then(|r| match Scope::from_all(abi) {
            scope if scope.is_empty() => Ok(r),
            scope => r.scope(scope),
        });
        scoped.and_then(Ruleset::create).is_ok()
    };
    let newest = VERSIONS.iter().find(|(_, abi)| has(*abi));
    newest.map(|(number, _)| *number)
}
