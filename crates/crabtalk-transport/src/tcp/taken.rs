//! Who listens on a port, as far as the system tells.
//!
//! Only Linux tells it without help, and only of processes of the same user.

use std::net::SocketAddr;

/// Who listens where we want to: a process's name and number.
#[cfg(target_os = "linux")]
pub(super) fn by_whom(address: SocketAddr) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listeners(&table, address.port()))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let links: Vec<String> = inodes.iter().map(|i| format!("socket:[{i}]")).collect();
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let files = std::fs::read_dir(process.path().join("fd")).ok()?;
        let holds = files.flatten().any(|file| {
            std::fs::read_link(file.path())
                .is_ok_and(|to| links.iter().any(|link| to.as_os_str() == link.as_str()))
        });
        if !holds {
            return None;
        }
        let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        Some(format!("{} (process {pid})", name.trim()))
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn by_whom(_: SocketAddr) -> Option<String> {
    None
}

/// The inodes of sockets that listen on a port, from a table of the kernel.
#[cfg(target_os = "linux")]
fn listeners(table: &str, port: u16) -> Vec<String> {
    /// `TCP_LISTEN`, as the kernel writes it.
    const LISTENS: &str = "0A";
    let port = format!(":{port:04X}");
    let rows = table.lines().skip(1);
    let inode = |row: &str| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let (local, state) = (fields.get(1)?, fields.get(3)?);
        (local.ends_with(&port) && *state == LISTENS).then(|| fields.get(9).map(|s| (*s).into()))?
    };
    rows.filter_map(inode).collect()
}
