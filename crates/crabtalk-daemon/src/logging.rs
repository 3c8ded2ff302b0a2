//! Writes the daemon's log (OPS-3) to `logs/daemon.log`, and to stderr in the
//! foreground.
//!
//! Invariants: the log has at most two files of [`MAX_LOG_BYTES`]; an event is one line,
//! and no value can imitate another line.

mod fields;

use crate::audit::Security;
use fields::Quoted;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};

/// Size at which the log is renamed to `.1` and a new one begun.
const MAX_LOG_BYTES: u64 = 10 * 1024 * 1024;

/// The level unless `CRABTALK_LOG` sets another.
const DEFAULT_LEVEL: tracing::Level = tracing::Level::INFO;

/// The MCP library, which logs each message of a server at the level INFO and would
/// displace everything else. `crabtalk-mcp` logs the important events.
const NOISY_TARGET: &str = "rmcp";

/// Starts logging. An unwritable log file is a warning, since a home on a full or
/// read-only disk is still readable (STORE-5).
pub(crate) fn init(path: &Path, to_stderr: bool, security: Security) {
    let mut file = Rotating::new(path);
    let opened = file.file().map(drop);
    let log = Log {
        file: Mutex::new(file),
        to_stderr,
    };
    let levels = std::env::var("CRABTALK_LOG").ok();
    let filter = levels
        .and_then(|levels| levels.parse().ok())
        .unwrap_or_else(|| {
            let levels = Targets::new().with_default(DEFAULT_LEVEL);
            levels.with_target(NOISY_TARGET, LevelFilter::OFF)
        });
    let layer = fmt::layer()
        .with_ansi(false)
        .fmt_fields(Quoted)
        .with_writer(log);
    let subscriber = tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        // Independent of the log's level.
        .with(security.with_filter(Targets::new().with_target("security", tracing::Level::INFO)));
    // A second daemon in one process, as in tests, uses the first log.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Err(error) = opened {
        tracing::warn!(path = %path.display(), %error, "the log file cannot be written; events are lost until it can");
    }
}

struct Rotating {
    path: PathBuf,
    /// `None` while it cannot be opened; each line retries.
    file: Option<File>,
    bytes: u64,
}

impl Rotating {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            bytes: 0,
        }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let file = crabtalk_files::open_to_append(&self.path)?;
            self.bytes = file.metadata()?.len();
            self.file = Some(file);
        }
        Ok(self.file.as_mut().expect("opened above"))
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.file()?;
        if self.bytes >= MAX_LOG_BYTES {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            std::fs::rename(&self.path, aside)?;
            self.file = None;
        }
        self.file()?.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

struct Log {
    file: Mutex<Rotating>,
    to_stderr: bool,
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = &'a Log;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A full disk or a closed stderr must not stop the daemon.
        if let Ok(mut file) = self.file.lock() {
            let _ = file.write(line);
        }
        if self.to_stderr {
            let _ = io::stderr().write_all(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
