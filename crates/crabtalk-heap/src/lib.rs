//! Keeps the heap as large as what lives in it.
//!
//! The C library's allocator gives every thread a heap of its own, and keeps
//! what was freed below anything that still lives, so that a daemon would stay
//! as large as its busiest moment. Two calls change that, and they are the only
//! foreign functions that CrabTalk names itself: hence a crate of its own, with
//! nothing else in it. Elsewhere than with glibc they do nothing.

/// Makes all threads share one heap. For a process whose threads hand over
/// what they allocate, and hardly ever allocate at once; call it before there
/// is a second thread.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // Refused, everything works as before, in more memory.
    let _ = glibc::mallopt(glibc::M_ARENA_MAX, 1);
}

/// Returns freed pages to the system. It walks the whole heap and holds up
/// whoever allocates meanwhile, some milliseconds after a thousand
/// conversations: call it when there is little to do.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // The result says whether anything was given back, which is no failure.
    let _ = glibc::malloc_trim(0);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "declares functions that take any number and may be called by any thread; they touch free memory and settings alone"
)]
mod glibc {
    use std::ffi::c_int;

    /// As malloc.h has it.
    pub(super) const M_ARENA_MAX: c_int = -8;

    unsafe extern "C" {
        /// `int mallopt(int param, int value)`, as malloc.h has it.
        pub(super) safe fn mallopt(param: c_int, value: c_int) -> c_int;
        /// `int malloc_trim(size_t pad)`, as malloc.h has it.
        pub(super) safe fn malloc_trim(pad: usize) -> c_int;
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn memory_below_something_that_lives_is_given_back() {
        let resident_kib = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let digits = line.unwrap().trim_end_matches("kB").trim();
            digits.parse().unwrap()
        };
        super::share();
        // 64 MiB in pieces that are not mapped one by one.
        let mut pieces: Vec<Vec<u8>> = (0..65_536).map(|_| vec![1; 1_024]).collect();
        let full = resident_kib();
        let kept = pieces.pop();
        drop(pieces);
        super::give_back();
        let after = resident_kib();
        assert!(after + 48 * 1_024 < full, "{full} KiB, then {after} KiB");
        drop(kept);
    }
}
