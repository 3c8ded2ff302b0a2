//! Repairs the end of a log after a crash or a full disk.
//!
//! Invariant: unacknowledged bytes are truncated; bytes that may be useful are first
//! copied to a `.torn` file beside the log.

use crate::error::{failed, unreadable};
use crate::fs::{Access, FileLayer, LogFile, append_all, read_exact};
use crabtalk_domain::storage::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum bytes to move at once.
const BLOCK: u64 = 256 * 1024;

/// The state of a log's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing follows the valid lines.
    Clean,
    /// A torn line follows, whose bytes are copied before they are truncated.
    Torn,
    /// Part of a refused batch follows.
    Refused,
}

/// The file for torn bytes, beside the log.
pub(crate) fn torn_path(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".torn");
    path.into()
}

/// Truncates the log at `end`.
pub(crate) fn mend(
    fs: &dyn FileLayer,
    file: &dyn LogFile,
    path: &Path,
    end: u64,
    tail: Tail,
) -> Result<(), Error> {
    match tail {
        Tail::Clean => return Ok(()),
        Tail::Torn => save_torn(fs, file, path, end)?,
        Tail::Refused => {}
    }
    file.truncate(end)
        .map_err(|e| failed("cut the torn end of", path, e))
}

fn save_torn(fs: &dyn FileLayer, file: &dyn LogFile, path: &Path, end: u64) -> Result<(), Error> {
    let len = file.stat().map_err(|e| unreadable("stat", path, e))?.len;
    if len <= end {
        return Ok(());
    }
    let torn = torn_path(path);
    let save = || -> io::Result<()> {
        let keep = fs.open(&torn, Access::AppendOrCreate)?;
        if keep.stat()?.len > 0 {
            append_all(&*keep, b"\n")?;
        }
        let mut at = end;
        while at < len {
            let mut bytes = vec![0; usize::try_from(BLOCK.min(len - at)).expect("a block")];
            read_exact(file, &mut bytes, at)?;
            append_all(&*keep, &bytes)?;
            at += bytes.len() as u64;
        }
        keep.sync()
    };
    save().map_err(|e| failed("save a torn line to", &torn, e))?;
    tracing::warn!(
        log = %path.display(),
        bytes = len - end,
        torn = %torn.display(),
        "the log ended in a torn line; moved the line to a file next to the log"
    );
    Ok(())
}
