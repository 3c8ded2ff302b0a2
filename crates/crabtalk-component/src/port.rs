//! The file by which the daemon finds a component: `run/NAME.port`.
//!
//! Line 1 is the decimal port; the optional line 2 identifies the instance. The file has
//! 256 bytes at most, is private, and is renamed into place.

use crate::{Component, Home};
use anyhow::Context;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Longest port file.
pub const MAX_PORT_FILE_BYTES: u64 = 256;

/// The contents of a port file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFile {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The id of the running instance; older files lack it.
    pub instance: Option<String>,
}

/// Why a port file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPort {
    /// The file is too long.
    #[error("it is longer than {MAX_PORT_FILE_BYTES} bytes")]
    TooLong,
    /// The first line is not a port.
    #[error("its first line is not a port between 1 and 65535")]
    NoPort,
    /// The second line is not a plain identifier, or more lines follow.
    #[error("its second line is not an instance id of letters, digits and dashes")]
    NoInstance,
}

impl PortFile {
    /// The path of a component's port file.
    #[must_use]
    pub fn path(home: &Home, component: &Component) -> PathBuf {
        home.run().join(format!("{}.port", component.name()))
    }

    /// Parses a port file.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPort> {
        if bytes.len() as u64 > MAX_PORT_FILE_BYTES {
            return Err(InvalidPort::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| InvalidPort::NoPort)?;
        let mut lines = text.trim_end().lines();
        let first = lines.next().unwrap_or_default().trim();
        let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        let port = first.parse().ok().filter(|port| digits && *port != 0);
        let port = port.ok_or(InvalidPort::NoPort)?;
        let instance = lines.next().map(|line| line.trim().to_owned());
        let plain = |word: &String| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        if instance.as_ref().is_some_and(|word| !plain(word)) || lines.next().is_some() {
            return Err(InvalidPort::NoInstance);
        }
        Ok(Self { port, instance })
    }

    /// Writes the file atomically. Dropping the result removes it, unless another
    /// instance of the component has replaced it.
    pub fn announce(home: &Home, component: &Component, port: u16) -> anyhow::Result<Announced> {
        let folder = home.run();
        home.make(&folder)?;
        let path = Self::path(home, component);
        let instance: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(16)
            .collect();
        let written = Self {
            port,
            instance: Some(instance),
        };
        // Temporary files are private.
        let mut file = tempfile::Builder::new()
            .prefix(".tmp")
            .tempfile_in(&folder)
            .with_context(|| format!("cannot write to {}", folder.display()))?;
        file.write_all(written.to_string().as_bytes())?;
        file.persist(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Announced { path, written })
    }
}

impl std::fmt::Display for PortFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.port)?;
        match &self.instance {
            Some(instance) => writeln!(f, "{instance}"),
            None => Ok(()),
        }
    }
}

/// A port file that is in place.
#[derive(Debug)]
pub struct Announced {
    path: PathBuf,
    written: PortFile,
}

impl Drop for Announced {
    fn drop(&mut self) {
        remove(&self.path, Some(&self.written));
    }
}

/// Removes a port file if it has these contents.
pub(crate) fn remove(path: &Path, says: Option<&PortFile>) {
    let theirs = read(path).is_some_and(|found| says.is_some_and(|says| found != *says));
    if theirs {
        return;
    }
    if let Err(e) = std::fs::remove_file(path)
        && e.kind() != ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), error = %e, "cannot remove the port file");
    }
}

fn read(path: &Path) -> Option<PortFile> {
    // Opening a named pipe would block.
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAX_PORT_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    PortFile::parse(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let bare = PortFile::parse(b"4711").expect("the bare number");
        assert_eq!((bare.port, bare.instance), (4711, None));
        let whole = PortFile::parse(b"4711\nabc-1\n").expect("both lines");
        assert_eq!(
            (whole.port, whole.instance.as_deref()),
            (4711, Some("abc-1"))
        );
        assert_eq!(PortFile::parse(b" 80 \r\n").map(|file| file.port), Ok(80));
    }

    #[test]
    fn invalid_port_files_are_refused() {
        for (bytes, why) in [
            (&b""[..], InvalidPort::NoPort),
            (b"0", InvalidPort::NoPort),
            (b"65536", InvalidPort::NoPort),
            (b"+80", InvalidPort::NoPort),
            (b"-1", InvalidPort::NoPort),
            (b"80 81", InvalidPort::NoPort),
            (b"\xff\xfe", InvalidPort::NoPort),
            (b"80\n../x", InvalidPort::NoInstance),
            (b"80\nx\ny", InvalidPort::NoInstance),
            (&[b'1'; 300], InvalidPort::TooLong),
        ] {
            assert_eq!(PortFile::parse(bytes), Err(why), "{bytes:?}");
        }
    }

    #[test]
    fn port_file_is_private_and_removed_by_its_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let (home, search) = (Home::at(folder.path()), Component::new("search", ""));
        let path = PortFile::path(&home, &search);
        let first = PortFile::announce(&home, &search, 1).expect("written");
        assert_eq!(read(&path).as_ref(), Some(&first.written));
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path)
                .expect("there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let second = PortFile::announce(&home, &search, 2).expect("written over");
        drop(first);
        assert_eq!(
            read(&path).as_ref(),
            Some(&second.written),
            "another's file stays"
        );
        drop(second);
        assert!(!path.exists());
        assert_eq!(std::fs::read_dir(home.run()).expect("there").count(), 0);
    }
}
