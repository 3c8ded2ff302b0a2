//! Shuts the calling process in, for good, with everything it will start.

use crate::guardian::SandboxPolicy;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// What must be enforced: before this version (Linux 6.2) a file outside
/// could still be truncated.
const NEEDED: ABI = ABI::V3;

/// What is enforced beyond that where the kernel can: device ioctls (5), and
/// signals and abstract sockets to processes outside (6).
const WELCOME: ABI = ABI::V6;

/// Numbers that x86-64 kernels may also accept, for the x32 calling convention.
#[cfg(target_arch = "x86_64")]
const ALTERNATIVE: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const ALTERNATIVE: Option<i64> = None;

#[cfg(target_arch = "x86_64")]
const SOCKET: i64 = 41;
#[cfg(not(target_arch = "x86_64"))]
const SOCKET: i64 = 198;

/// The same on every architecture. Its requests make sockets and connect
/// them past any filter on system calls.
const IO_URING_SETUP: i64 = 425;

const AF_UNIX: u64 = rustix::net::AddressFamily::UNIX.as_raw() as u64;

/// Applies a policy; an error names what the kernel lacks.
pub(crate) fn restrict(policy: &SandboxPolicy) -> Result<(), String> {
    restrict_files(policy)?;
    if policy.network {
        Ok(())
    } else {
        forbid_network()
    }
}

fn restrict_files(policy: &SandboxPolicy) -> Result<(), String> {
    let enforce = || -> Result<RulesetStatus, RulesetError> {
        let all = AccessFs::from_all(WELCOME);
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(WELCOME))?
            .create()?
            .add_rules(path_beneath_rules(
                &policy.read,
                AccessFs::from_read(WELCOME),
            ))?
            .add_rules(path_beneath_rules(&policy.write, all))?
            .restrict_self()?;
        Ok(status.ruleset)
    };
    match enforce() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Ok(()),
        Ok(RulesetStatus::NotEnforced) => Err(lacks("no landlock")),
        Err(e) => Err(lacks(&format!(
            "landlock of Linux 6.2 or later is not available: {e}"
        ))),
    }
}

fn lacks(what: &str) -> String {
    format!(
        "the sandbox cannot be set up, so the command was not run: {what}. Use a kernel with landlock enabled (`lsm=` in its command line), or switch `sandbox` off for this agent"
    )
}

/// Denies making sockets of any family but Unix. 32-bit programs, whose calls
/// have other numbers, are ended by the filter's check of the architecture.
fn forbid_network() -> Result<(), String> {
    let failed =
        |e: &dyn std::fmt::Display| lacks(&format!("seccomp filters are not available: {e}"));
    let other_family = || {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, AF_UNIX)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    let mut rules = BTreeMap::new();
    for bit in [Some(0), ALTERNATIVE].into_iter().flatten() {
        rules.insert(SOCKET | bit, vec![other_family().map_err(|e| failed(&e))?]);
        rules.insert(IO_URING_SETUP | bit, Vec::new());
    }
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| failed(&e))?;
    let denied = SeccompAction::Errno(Errno::ACCESS.raw_os_error().cast_unsigned());
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture)
        .and_then(TryInto::try_into)
        .map_err(|e| failed(&e))?;
    seccompiler::apply_filter(&program).map_err(|e| failed(&e))
}
