//! Programs of others, and waiting for them.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::process::Child;

/// The slowest imports most of Python's packages before it listens.
pub(crate) const START_TIME: Duration = Duration::from_secs(180);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A program that not every machine has.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Names its file where it is not on the path.
    pub(crate) variable: &'static str,
    /// What to install.
    pub(crate) package: &'static str,
}

impl Program {
    /// Its file, or why there is none.
    pub(crate) fn find(&self) -> Result<PathBuf, String> {
        let named = std::env::var_os(self.variable).map(PathBuf::from);
        if let Some(file) = named {
            let missing = format!("{}: there is no {}", self.variable, file.display());
            return file.is_file().then_some(file).ok_or(missing);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let missing = || {
            format!(
                "{} is not there (pip install '{}', or see {})",
                self.name, self.package, self.variable
            )
        };
        std::env::split_paths(&path)
            .map(|folder| folder.join(self.name))
            .find(|file| file.is_file())
            .ok_or_else(missing)
    }
}

/// Waits until a process that was started takes connections.
pub(crate) async fn until_it_listens(port: u16, process: &mut Child, log: &Path) {
    let begin = Instant::now();
    let address = (Ipv4Addr::LOCALHOST, port);
    while TcpStream::connect(address).await.is_err() {
        let ended = process.try_wait().expect("it is our child");
        let said = || std::fs::read_to_string(log).unwrap_or_default();
        assert!(ended.is_none(), "it ended: {ended:?}: {}", said());
        assert!(
            begin.elapsed() < START_TIME,
            "it never listened: {}",
            said()
        );
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
