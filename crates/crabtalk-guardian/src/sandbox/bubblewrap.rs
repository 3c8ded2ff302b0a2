//! Namespaces made by `bwrap`, where the kernel lets it and not us.
//!
//! It takes names and not descriptors. Hence what it mounted is compared with
//! what was judged, inside, before anything is started; there nobody can
//! change it any more.

use super::plan::{PRIVATE, is_mounted, is_opened, plan};
use super::policy::{Spot, open};
use super::{Fence, SandboxPolicy};
use std::ffi::OsString;
use std::path::Path;

/// Where this program lies inside.
pub(crate) const PROGRAM: &str = "/run/crabtalk/guardian";

/// What tells it to make a policy's namespaces and mounts, and to start this
/// program as the first process in them.
pub(crate) fn arguments(
    policy: &SandboxPolicy,
    program: &Path,
    scratch: &Path,
    command: Option<&Path>,
) -> Vec<OsString> {
    let mut arguments = Arguments::default();
    for flag in [
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--as-pid-1",
    ] {
        arguments.add(&[flag.as_ref()]);
    }
    if !policy.network {
        arguments.add(&["--unshare-net".as_ref()]);
    }
    arguments.add(&["--proc".as_ref(), "/proc".as_ref()]);
    arguments.add(&["--dev".as_ref(), "/dev".as_ref()]);
    let parts = plan(policy);
    let [first, second, _] = PRIVATE;
    for path in [first, second] {
        if !is_opened(&parts, path) {
            arguments.add(&["--bind".as_ref(), scratch, path.as_ref()]);
        }
    }
    for part in parts.iter().filter(|part| !part.covered) {
        let bind = if part.change { "--bind" } else { "--ro-bind" };
        let path = part.spot.path.as_path();
        arguments.add(&[bind.as_ref(), path, path]);
    }
    for link in &policy.links {
        if !is_mounted(&parts, &link.path) {
            arguments.add(&["--symlink".as_ref(), &link.target, &link.path]);
        }
    }
    if !is_mounted(&parts, &policy.cwd.path) {
        arguments.add(&["--dir".as_ref(), &policy.cwd.path]);
    }
    arguments.add(&["--ro-bind".as_ref(), program, PROGRAM.as_ref()]);
    if let Some(command) = command {
        arguments.add(&["--ro-bind".as_ref(), command, super::root::COMMAND.as_ref()]);
    }
    arguments.add(&["--remount-ro".as_ref(), "/".as_ref()]);
    arguments.add(&["--chdir".as_ref(), &policy.cwd.path, "--".as_ref()]);
    arguments.0
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, words: &[&Path]) {
        self.0
            .extend(words.iter().map(|w| w.as_os_str().to_owned()));
    }
}

/// Compares what is mounted with what was judged, and opens it in the fence.
pub(crate) fn check(
    policy: &SandboxPolicy,
    scratch: &Spot,
    long: bool,
    fence: &mut Fence,
) -> Result<(), String> {
    let parts = plan(policy);
    for part in &parts {
        let opened = part.spot.open().map_err(|e| moved(&part.spot.path, &e))?;
        fence.open(&opened, part.change)?;
    }
    let [first, second, shared] = PRIVATE;
    for path in [first, second] {
        if is_opened(&parts, path) {
            continue;
        }
        let opened = open(path.as_ref()).map_err(|e| moved(path.as_ref(), &e))?;
        if !scratch.is(&opened) {
            return Err(moved(path.as_ref(), &"it is not what was made"));
        }
        fence.open(&opened, true)?;
    }
    for (path, change) in [("/dev", false), (shared, true)] {
        let opened = open(path.as_ref()).map_err(|e| moved(path.as_ref(), &e))?;
        fence.open(&opened, change)?;
    }
    if long {
        let path = Path::new(super::root::COMMAND);
        fence.open(&open(path).map_err(|e| moved(path, &e))?, false)?;
    }
    fence.open_shared()?;
    let cwd = if is_mounted(&parts, &policy.cwd.path) {
        policy.cwd.open()
    } else {
        open(&policy.cwd.path)
    };
    let cwd = cwd.map_err(|e| moved(&policy.cwd.path, &e))?;
    rustix::process::fchdir(cwd).map_err(|e| moved(&policy.cwd.path, &e))
}

fn moved(path: &Path, why: &dyn std::fmt::Display) -> String {
    format!(
        "the command was not run, because bubblewrap did not mount {} as it was judged: {why}",
        path.display()
    )
}
