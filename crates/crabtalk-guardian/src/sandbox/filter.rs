//! The system call filter, for operations that neither namespaces nor landlock check.
//!
//! Its lists name denied calls. A check of the architecture ends 32-bit programs,
//! whose calls have other numbers.

use super::lacks;
use rustix::io::Errno;
use rustix::net::AddressFamily;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Bit of the call numbers of the x32 ABI, which x86-64 kernels may also accept.
#[cfg(target_arch = "x86_64")]
const ALTERNATIVE: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const ALTERNATIVE: Option<i64> = None;

/// Calls with other numbers in that ABI.
#[cfg(target_arch = "x86_64")]
const OWN_NUMBERS: &[(i64, i64)] = &[
    (libc::SYS_ioctl, 514),
    (libc::SYS_ptrace, 521),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_process_vm_readv, 539),
    (libc::SYS_process_vm_writev, 540),
];
#[cfg(not(target_arch = "x86_64"))]
const OWN_NUMBERS: &[(i64, i64)] = &[];

/// Allowed socket families; without namespaces only the first.
const FAMILIES: &[AddressFamily] = &[
    AddressFamily::UNIX,
    AddressFamily::INET,
    AddressFamily::INET6,
];

/// `io_uring` can create and connect sockets without passing the filter.
const RINGS: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Calls that are always denied: the user's keyring, which no namespace separates; other processes'
/// memory and descriptors; opening files by handle, which bypasses paths; and calls that make
/// the kernel run foreign code.
const NEVER: &[i64] = &[
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Memory, messages and semaphores shared by all users, unless a namespace makes
/// them the command's own.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Limits and priorities of other processes, with the argument that names the
/// process; zero is the caller. A namespace contains only the command's processes.
const OTHERS: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// `ioctl` requests that insert input into a terminal, which its shell would execute.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Flag for a user namespace, in which the command would be root and reach more kernel
/// code.
const NEW_USER: u64 = libc::CLONE_NEWUSER as u64;

/// Applies the filter to the calling thread and its future children.
pub(crate) fn filter(apart: bool) -> Result<(), String> {
    let failed = |e: seccompiler::BackendError| e.to_string();
    let programs = || -> Result<[BpfProgram; 3], String> {
        Ok([
            program(unreachable(apart).map_err(failed)?, Errno::ACCESS)?,
            program(forbidden(apart).map_err(failed)?, Errno::PERM)?,
            // The C library then falls back to `clone`, whose flags the filter can check.
            program(of(&[libc::SYS_clone3]), Errno::NOSYS)?,
        ])
    };
    let failed = |e: &str| lacks(&format!("seccomp filters are not available: {e}"));
    for program in programs().map_err(|e| failed(&e))? {
        seccompiler::apply_filter(&program).map_err(|e| failed(&e.to_string()))?;
    }
    Ok(())
}

fn program(rules: Rules, denied: Errno) -> Result<BpfProgram, String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| e.to_string())?;
    let denied = SeccompAction::Errno(denied.raw_os_error().cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture)
        .and_then(TryInto::try_into)
        .map_err(|e| e.to_string())
}

/// Denies sockets of other families and ways around that. A network namespace has
/// only its own loopback interface, so IP is harmless there.
fn unreachable(apart: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = of(RINGS);
    let families = if apart { FAMILIES } else { &FAMILIES[..1] };
    let others = families.iter().map(|family| {
        let family = u64::from(family.as_raw());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    });
    let other = SeccompRule::new(others.collect::<Result<_, _>>()?)?;
    add(&mut rules, libc::SYS_socket, other);
    Ok(rules)
}

fn forbidden(apart: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = of(NEVER);
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let is_set = SeccompCmpOp::MaskedEq(NEW_USER);
        add(&mut rules, call, condition(0, is_set, NEW_USER)?);
    }
    for request in TYPING {
        let same = condition(1, SeccompCmpOp::Eq, request)?;
        add(&mut rules, libc::SYS_ioctl, same);
    }
    if !apart {
        rules.extend(of(SHARED));
        for (call, argument) in OTHERS {
            add(
                &mut rules,
                *call,
                condition(*argument, SeccompCmpOp::Ne, 0)?,
            );
        }
    }
    Ok(rules)
}

/// Denies calls regardless of arguments.
fn of(calls: &[i64]) -> Rules {
    let each = calls.iter().flat_map(|call| numbers(*call));
    each.map(|number| (number, Vec::new())).collect()
}

fn add(rules: &mut Rules, call: i64, rule: SeccompRule) {
    for number in numbers(call) {
        rules.entry(number).or_default().push(rule.clone());
    }
}

fn numbers(call: i64) -> impl Iterator<Item = i64> {
    let alternative = ALTERNATIVE.map(|bit| {
        let own = OWN_NUMBERS.iter().find(|(usual, _)| *usual == call);
        bit | own.map_or(call, |(_, own)| *own)
    });
    std::iter::once(call).chain(alternative)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    SeccompRule::new(vec![condition])
}
