//! The state of a component's service, and its log.

use crate::{Component, Home, PortFile};
use anyhow::Context;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Timeout of a connection to the port.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// How long a started service may take to answer on its port.
const UP_WITHIN: Duration = Duration::from_secs(5);

/// How long it may take to announce a port; a gateway announces none.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);

/// Interval of the checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The state of a service.
struct Found {
    /// Whether it runs, according to systemd.
    runs: bool,
    /// The announced port, and whether it answers.
    port: Option<(u16, bool)>,
}

fn look(component: &Component, home: &Home) -> Found {
    let asked = Command::new("systemctl")
        .args(["--user", "is-active", "--quiet", &component.unit()])
        .output();
    let port = std::fs::read(PortFile::path(home, component));
    let port = port.ok().and_then(|bytes| PortFile::parse(&bytes).ok());
    Found {
        runs: asked.is_ok_and(|output| output.status.success()),
        port: port.map(|file| {
            let address = (Ipv4Addr::LOCALHOST, file.port).into();
            let answers = TcpStream::connect_timeout(&address, ANSWERS_WITHIN).is_ok();
            (file.port, answers)
        }),
    }
}

/// Waits until a started service answers on its port, and prints its status.
pub(crate) fn came_up(component: &Component, home: &Home) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    loop {
        let found = look(component, home);
        let is_up = found.runs && found.port.is_some_and(|(_, answers)| answers);
        let within = match found.port {
            Some(_) => UP_WITHIN,
            None => ANNOUNCED_WITHIN,
        };
        if is_up || began.elapsed() >= within {
            return told(component, &found);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Prints whether a service is installed and runs, and where it listens. Ends
/// with code 0 if it runs, else with 3, as `systemctl` does.
pub(crate) fn status(component: &Component, home: &Home) -> anyhow::Result<ExitCode> {
    told(component, &look(component, home))
}

fn told(component: &Component, found: &Found) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let name = component.name();
    let service = if found.runs { "runs" } else { "is not running" };
    writeln!(out, "{name}: the service {} {service}", component.unit())?;
    let answers = match found.port {
        Some((port, true)) => {
            writeln!(out, "it listens on 127.0.0.1:{port}")?;
            true
        }
        Some((port, false)) => {
            writeln!(
                out,
                "its port file names 127.0.0.1:{port}, where nothing answers"
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

/// Prints the end of a log, and with `follow` what is added to it.
pub(crate) fn logs(log: &Path, lines: u32, follow: bool) -> anyhow::Result<ExitCode> {
    let status = Command::new("tail")
        .args(["-n", &lines.to_string()])
        .args(follow.then_some("-F"))
        .arg("--")
        .arg(log)
        .status()
        .context("cannot run `tail`")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
