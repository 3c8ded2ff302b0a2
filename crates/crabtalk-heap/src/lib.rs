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

/// Unmaps the pages of this program's code and constants. What runs again is
/// mapped again from the page cache, a microsecond for 64 KiB: for the moment when a
/// start is over, whose code is most of what was mapped by then and will not run
/// again.
pub fn give_back_code() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if let (Ok(maps), Ok(own)) = (
        std::fs::read_to_string("/proc/self/maps"),
        std::fs::read_link("/proc/self/exe"),
    ) {
        for (from, to) in code(&maps, &own.to_string_lossy()) {
            glibc::unmap_pages(from, to - from);
        }
    }
}

/// Where the kernel says that pages of a file are mapped which nobody writes to:
/// code, and what lies before it in the file. What the loader has written to and
/// protected then lies behind, and is not among them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn code<'a>(maps: &'a str, own: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    maps.lines().filter_map(move |line| {
        let (range, rest) = line.split_once(' ')?;
        let (rights, rest) = rest.split_once(' ')?;
        let (offset, rest) = rest.split_once(' ')?;
        let is_first = offset.bytes().all(|digit| digit == b'0');
        let untouched = rights == "r-xp" || (rights == "r--p" && is_first);
        if !untouched || !rest.ends_with(&format!(" {own}")) {
            return None;
        }
        let (from, to) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(from)?, number(to)?))
    })
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "declares functions that may be called by any thread; two take any number and touch free memory and settings alone, one counts, one is called with what the kernel says is this program's code"
)]
mod glibc {
    use std::ffi::c_int;

    /// As malloc.h has it.
    pub(super) const M_ARENA_MAX: c_int = -8;

    /// As mman.h has it.
    const MADV_DONTNEED: c_int = 4;

    /// Unmaps pages of a file that nobody has written to: whoever reads them next
    /// gets the same bytes from the file.
    pub(super) fn unmap_pages(from: usize, length: usize) {
        // SAFETY: the range is one that the kernel gave as mapped from this program's
        // file, without the right to write. Refused, it stays as it is.
        let _ = unsafe { madvise(from, length, MADV_DONTNEED) };
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
    fn only_code_and_what_lies_before_it_is_unmapped() {
        let maps = "\
1000-2000 r--p 00000000 fe:00 1    /bin/own
2000-5000 r-xp 00001000 fe:00 1    /bin/own
5000-6000 r--p 00004000 fe:00 1    /bin/own
6000-7000 rw-p 00005000 fe:00 1    /bin/own
7000-8000 r-xp 00001000 fe:00 2    /lib/other
8000-9000 r-xp 00000000 00:00 0    [vdso]
a000-b000 r-xp 00000000 fe:00 3    /bin/own (deleted)
";
        let found: Vec<_> = super::code(maps, "/bin/own").collect();
        assert_eq!(found, [(0x1000, 0x2000), (0x2000, 0x5000)]);
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
