//! Gives free memory back to the system.
//!
//! The C library's allocator keeps what was freed below anything that still
//! lives, so that a daemon would stay as large as its busiest moment. One call
//! changes that, and it is the only foreign function that CrabTalk names
//! itself: hence a crate of its own, with nothing else in it.

/// Returns freed pages to the system. It walks the whole heap and holds up
/// whoever allocates meanwhile, some milliseconds after a thousand
/// conversations: call it when there is nothing to do. Elsewhere than with
/// glibc it does nothing, since other allocators do so themselves.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // The result says whether anything was given back, which is no failure.
    let _ = glibc::malloc_trim(0);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "declares malloc_trim, which takes any number, touches free memory alone and may be called by any thread"
)]
mod glibc {
    use std::ffi::c_int;

    unsafe extern "C" {
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
