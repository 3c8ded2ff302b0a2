//! The state of a component's service, and its log.

use super::Manager;
use crate::{Component, Home, PortFile};
use anyhow::{Context, bail};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Timeout of a connection to the port.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Bytes read from the end of a log.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

/// Time for a started service to answer on its port.
const UP_WITHIN: Duration = Duration::from_secs(5);

/// Time for a started service to announce a port; a gateway announces none.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);

/// Interval of the checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The state of a service.
struct ServiceState {
    /// Whether it runs, according to the manager.
    runs: bool,
    /// The announced port, and whether it answers.
    port: Option<(u16, bool)>,
}

fn unit(manager: Manager, component: &Component) -> String {
    match manager {
        Manager::Systemd => format!("{}.service", component.label()),
        Manager::Launchd | Manager::Schtasks => component.label(),
    }
}

fn look(manager: Manager, component: &Component, home: &Home) -> ServiceState {
    let ask: &[&str] = match manager {
        Manager::Systemd => &["systemctl", "--user", "is-active", "--quiet"],
        Manager::Launchd => &["launchctl", "list"],
        Manager::Schtasks => &["schtasks", "/Query", "/TN"],
    };
    let asked = Command::new(ask[0])
        .args(&ask[1..])
        .arg(unit(manager, component))
        .output();
    let port = std::fs::read(PortFile::path(home, component));
    let port = port.ok().and_then(|bytes| PortFile::parse(&bytes).ok());
    ServiceState {
        runs: asked.is_ok_and(|output| output.status.success()),
        port: port.map(|file| {
            let address = (Ipv4Addr::LOCALHOST, file.port).into();
            let answers = TcpStream::connect_timeout(&address, ANSWERS_WITHIN).is_ok();
            (file.port, answers)
        }),
    }
}

/// Waits until a started service answers on its port, and prints its status.
pub(crate) fn came_up(
    manager: Manager,
    component: &Component,
    home: &Home,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    loop {
        let found = look(manager, component, home);
        let is_up = found.runs && found.port.is_some_and(|(_, answers)| answers);
        let within = match found.port {
            Some(_) => UP_WITHIN,
            None => ANNOUNCED_WITHIN,
        };
        if is_up || began.elapsed() >= within {
            return told(manager, component, &found);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Prints whether a service is installed and runs, and its port. Exits
/// with code 0 if it runs, else 3, like service managers.
pub(crate) fn status(
    manager: Manager,
    component: &Component,
    home: &Home,
) -> anyhow::Result<ExitCode> {
    told(manager, component, &look(manager, component, home))
}

fn told(manager: Manager, component: &Component, found: &ServiceState) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let name = component.name();
    let service = if found.runs { "runs" } else { "is not running" };
    let unit = unit(manager, component);
    writeln!(out, "{name}: the service {unit} {service}")?;
    let answers = match found.port {
        Some((port, true)) => {
            writeln!(out, "it listens on 127.0.0.1:{port}")?;
            true
        }
        Some((port, false)) => {
            writeln!(
                out,
                "its port file has 127.0.0.1:{port}, but nothing listens there"
            )?;
            false
        }
        None => {
            writeln!(out, "it has no port file")?;
            false
        }
    };
    if !found.runs && !answers {
        writeln!(out, "`crabtalk-{name} logs` shows why it ended")?;
    }
    Ok(ExitCode::from(if found.runs || answers { 0 } else { 3 }))
}

/// Prints the end of a log.
pub(crate) fn logs(log: &Path, lines: u32, follow: bool) -> anyhow::Result<ExitCode> {
    if follow && cfg!(unix) {
        let status = Command::new("tail")
            .args(["-n", &lines.to_string(), "-F", "--"])
            .arg(log)
            .status()
            .context("cannot run `tail`")?;
        return Ok(ExitCode::from(u8::from(!status.success())));
    }
    if follow {
        bail!("cannot follow the log: `tail` is not installed");
    }
    let mut file = std::fs::File::open(log)
        .with_context(|| format!("cannot open the log {}", log.display()))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_LOG_BYTES)))?;
    let (mut last, most) = (VecDeque::new(), lines as usize);
    for line in BufReader::new(file.take(MAX_LOG_BYTES)).split(b'\n') {
        last.push_back(line?);
        if last.len() > most {
            last.pop_front();
        }
    }
    let mut out = std::io::stdout();
    for line in last {
        writeln!(out, "{}", String::from_utf8_lossy(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}
