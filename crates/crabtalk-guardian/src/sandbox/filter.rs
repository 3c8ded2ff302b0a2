//! The filter of system calls: what neither namespaces nor landlock judge.
//!
//! Its lists name what is denied. 32-bit programs, whose calls have other
//! numbers, are ended by the filter's check of the architecture.

use super::lacks;
use rustix::io::Errno;
use rustix::net::AddressFamily;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Numbers that x86-64 kernels may also accept, for the x32 calling convention.
#[cfg(target_arch = "x86_64")]
const ALTERNATIVE: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const ALTERNATIVE: Option<i64> = None;

/// Calls that have other numbers in that convention.
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

/// Families of sockets that may be made; without namespaces the first alone.
const FAMILIES: &[AddressFamily] = &[
    AddressFamily::UNIX,
    AddressFamily::INET,
    AddressFamily::INET6,
];

/// Requests of `io_uring` make sockets and connect them past any filter.
const RINGS: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Keys of the person, which no namespace keeps apart; other processes'
/// memory and descriptors; files by handles, past every path; and what makes
/// the kernel run code of others.
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

/// Memory, messages and semaphores of everybody, where no namespace makes
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

/// Limits and priorities of other processes, by the argument that names the
/// process; zero is the caller. A namespace holds the command's processes only.
const OTHERS: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Requests that type into a terminal what its shell then runs.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// A namespace of users in which the command would be root, with much more of
/// the kernel in reach.
const NEW_USER: u64 = libc::CLONE_NEWUSER as u64;

/// Denies it all to the calling thread and to every process it starts.
pub(crate) fn filter(apart: bool) -> Result<(), String> {
    let failed = |e: seccompiler::BackendError| e.to_string();
    let programs = || -> Result<[BpfProgram; 3], String> {
        Ok([
            program(unreachable(apart).map_err(failed)?, Errno::ACCESS)?,
            program(forbidden(apart).map_err(failed)?, Errno::PERM)?,
            // The C library then takes `clone`, whose flags can be judged.
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

/// Sockets of other families, and the way around. A network namespace has
/// nothing but its own loopback, so that IP is harmless there.
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

/// Denies calls with any arguments.
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
