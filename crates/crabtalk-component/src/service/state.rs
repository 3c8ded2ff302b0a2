//! What a component's service does now, and what it wrote.

use super::Manager;
use crate::{Component, Home, PortFile};
use anyhow::{Context, bail};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// How long a port may take to answer on this machine.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// How much of a log's end is looked at.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

/// Prints whether a service is installed and runs, and where it listens. Ends
/// with code 0 if it runs, else with 3, as service managers do.
pub(crate) fn status(
    manager: &Manager,
    component: &Component,
    home: &Home,
) -> anyhow::Result<ExitCode> {
    let label = component.label();
    let ask: &[&str] = match manager {
        Manager::Systemd => &["systemctl", "--user", "is-active", "--quiet"],
        Manager::Launchd => &["launchctl", "list"],
        Manager::Schtasks => &["schtasks", "/Query", "/TN"],
    };
    let unit = match manager {
        Manager::Systemd => format!("{label}.service"),
        Manager::Launchd | Manager::Schtasks => label,
    };
    let asked = Command::new(ask[0]).args(&ask[1..]).arg(&unit).output();
    let runs = asked.is_ok_and(|output| output.status.success());
    let port = std::fs::read(PortFile::path(home, component));
    let port = port.ok().and_then(|bytes| PortFile::parse(&bytes).ok());
    let answers = port.as_ref().is_some_and(|file| {
        let address = (Ipv4Addr::LOCALHOST, file.port).into();
        TcpStream::connect_timeout(&address, ANSWERS_WITHIN).is_ok()
    });
    let mut out = std::io::stdout();
    let service = if runs { "runs" } else { "is not running" };
    writeln!(out, "{}: the service {unit} {service}", component.name())?;
    match (port, answers) {
        (Some(file), true) => writeln!(out, "it listens on 127.0.0.1:{}", file.port)?,
        (Some(file), false) => writeln!(
            out,
            "its port file names 127.0.0.1:{}, where nobody answers",
            file.port
        )?,
        (None, _) => writeln!(out, "it announces no port")?,
    }
    Ok(ExitCode::from(if runs || answers { 0 } else { 3 }))
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
        bail!("following a log needs `tail`, which this system lacks");
    }
    let mut file = std::fs::File::open(log)
        .with_context(|| format!("there is no log yet at {}", log.display()))?;
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
