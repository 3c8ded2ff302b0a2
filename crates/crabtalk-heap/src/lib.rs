//! Keeps a process as large as what it uses.
//!
//! The C library's allocator gives every thread a heap of its own, and keeps
//! what was freed below anything that still lives, so that a daemon would stay
//! as large as its busiest moment. Two calls change that. The kernel keeps mapped
//! what code a process has run once, 64 KiB around each function; a third call
//! ends that. A fourth tells what is in use, so that what was lost can be told from
//! what is only scattered. They are the only foreign functions that CrabTalk names
//! itself: hence a crate of its own, with nothing else in it. Elsewhere than with glibc on Linux
//! they do nothing.

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

/// Bytes that the heap has handed out and not got back; `None` where that is not
/// known. It walks the free parts of the heap, as [`give_back`] does.
#[must_use]
pub fn in_use() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let heap = glibc::mallinfo();
        // What each number means beyond two gibibytes nobody knows.
        let known = [heap.hblkhd, heap.uordblks].map(u64::try_from);
        let [Ok(mapped), Ok(used)] = known else {
            return None;
        };
        Some(mapped + used)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Unmaps the pages of this program's code and of what lies before it in the file. What
/// runs again is mapped again from the page cache, a microsecond for 64 KiB: for the moment
/// when a start is over, whose code is most of what was mapped by then and will not run
/// again.
pub fn give_back_code() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::unmap_code();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "declares functions that may be called by any thread; two take any number and touch free memory and settings alone, one counts, one is called with where the linker put this program's code"
)]
mod glibc {
    use std::ffi::c_int;

    /// As malloc.h has it.
    pub(super) const M_ARENA_MAX: c_int = -8;

    /// As mman.h has it.
    const MADV_DONTNEED: c_int = 4;

    /// Bytes that are mapped at once.
    const PAGE: usize = 4096;

    /// Unmaps what lies between the begin of this program and the end of its code: whoever
    /// reads it next gets the same bytes from the file.
    pub(super) fn unmap_code() {
        let (from, to) = (&raw const __executable_start, &raw const etext);
        let length = (to as usize).saturating_sub(from as usize);
        // SAFETY: linkers put there what nobody may write to: headers, constants and code.
        // What the loader writes to lies behind. Refused, it stays as it is.
        let _ = unsafe { madvise(from as usize, length / PAGE * PAGE, MADV_DONTNEED) };
    }

    /// `struct mallinfo`, as malloc.h has it: ten numbers, of which those with a
    /// letter are read. The newer form with wider numbers is missing from older
    /// libraries.
    #[repr(C)]
    pub(super) struct Mallinfo {
        _before: [c_int; 4],
        /// Bytes in mappings of their own.
        pub(super) hblkhd: c_int,
        _between: [c_int; 2],
        /// Bytes handed out of the heap.
        pub(super) uordblks: c_int,
        _after: [c_int; 2],
    }

    unsafe extern "C" {
        /// `struct mallinfo mallinfo(void)`, as malloc.h has it.
        pub(super) safe fn mallinfo() -> Mallinfo;
        /// `int mallopt(int param, int value)`, as malloc.h has it.
        pub(super) safe fn mallopt(param: c_int, value: c_int) -> c_int;
        /// `int malloc_trim(size_t pad)`, as malloc.h has it.
        pub(super) safe fn malloc_trim(pad: usize) -> c_int;
        /// `int madvise(void *addr, size_t length, int advice)`, as mman.h has it.
        fn madvise(address: usize, length: usize, advice: c_int) -> c_int;
        /// The first byte of this program in memory, as linkers define it.
        static __executable_start: u8;
        /// The first byte behind its code, as linkers define it (end(3)).
        static etext: u8;
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn code_that_ran_is_unmapped_and_runs_again() {
        let mapped_kib = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("RssFile:"));
            let digits = line.unwrap().trim_end_matches("kB").trim();
            digits.parse().unwrap()
        };
        // As much of it as this thread can run without a long list.
        let text = format!("{:?} {:?}", std::env::vars_os(), std::time::Instant::now());
        let before = mapped_kib();
        super::give_back_code();
        let after = mapped_kib();
        assert!(after < before, "{before} KiB, then {after} KiB");
        assert!(text.len() <= format!("{text}{text:?}").len());
    }

    #[test]
    fn what_is_held_is_counted() {
        let before = super::in_use().unwrap();
        let held = vec![1_u8; 1 << 20];
        let after = super::in_use().unwrap();
        // Other tests free meanwhile what they held.
        assert!(after + (1 << 19) > before, "{before}, then {after}");
        assert!(held.len() as u64 <= after, "{after}");
    }

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
