//! `components`: lists installed programs, running components, and those that the
//! daemon is connected to.
//!
//! Installed programs and port files are found without a daemon; the daemon adds the
//! state of its connections.

use super::Context;
use crate::error::Error;
use crate::programs::{folders_of_programs, is_program};
use crate::text::counted;

use crabtalk_client::Client;
use crabtalk_component::{Component, PortFile};
use crabtalk_proto::{ComponentInfo, ListComponentsMsg, visible};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of a connection to a local port.
const ANSWERS_WITHIN: Duration = Duration::from_millis(300);

/// Prefix of component programs.
const PREFIX: &str = "crabtalk-";

#[derive(Debug, Default)]
struct Known {
    program: Option<PathBuf>,
    /// The port in its port file, or the reason why the file is invalid.
    port: Option<Result<u16, String>>,
    answers: bool,
    told: Option<ComponentInfo>,
}

pub(super) async fn components(context: &mut Context) -> Result<(), Error> {
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    for (name, program) in programs(&folders_of_programs()) {
        known.entry(name).or_default().program = Some(program);
    }
    for (name, port) in port_files(&context.home.root().join("run")) {
        let entry = known.entry(name).or_default();
        entry.answers = port.as_ref().is_ok_and(|port| answers(*port));
        entry.port = Some(port);
    }
    let told = told(context.known_client()).await;
    let asked = told.is_some();
    for info in told.unwrap_or_default() {
        let entry = known.entry(info.name.clone()).or_default();
        // If a component is listed twice, its tools take precedence over its connection.
        if entry.told.is_none() || !is_gateway(&info) {
            entry.told = Some(info);
        }
    }
    if context.for_scripts(known.iter().map(|(name, one)| object(name, one)))? {
        return Ok(());
    }
    let rows = known.iter().map(|(name, one)| {
        let program = one.program.as_ref().map(|path| path.display().to_string());
        let program = program.map(|path| visible(&path).into_owned());
        vec![
            visible(name).into_owned(),
            program.unwrap_or_else(|| "-".to_owned()),
            running(one),
            connected(one, asked),
        ]
    });
    let header = ["component", "program", "running", "connected"];
    let none = "no component is installed; see docs/guide/components.md";
    context.print_table(&header, rows, none)
}

/// The daemon's list; `None` without a daemon.
async fn told(client: &Client) -> Option<Vec<ComponentInfo>> {
    let list = client.call(ListComponentsMsg {}).await.ok()?;
    Some(list.components)
}

/// Programs named `crabtalk-NAME`, the first of each name in the order of folders.
fn programs(folders: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for folder in folders {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if let Some(name) = name
                && Component::named(name, "").is_ok()
                && !found.contains_key(name)
                && is_program(&entry.path())
            {
                found.insert(name.to_owned(), entry.path());
            }
        }
    }
    found
}

/// Port files by the names of their components.
fn port_files(folder: &Path) -> BTreeMap<String, Result<u16, String>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ports = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?.strip_suffix(".port")?.to_owned();
        Some((name, port(&entry.path())))
    });
    ports.collect()
}

fn port(path: &Path) -> Result<u16, String> {
    let bytes = crabtalk_files::read(path, crabtalk_component::MAX_PORT_FILE_BYTES);
    let bytes = bytes.map_err(|e| e.to_string())?;
    let file = PortFile::parse(&bytes).map_err(|e| e.to_string())?;
    Ok(file.port)
}

fn answers(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    TcpStream::connect_timeout(&address, ANSWERS_WITHIN).is_ok()
}

/// Whether the component has no tools and is known only by its connection.
fn is_gateway(info: &ComponentInfo) -> bool {
    info.source == "hello"
}

fn running(one: &Known) -> String {
    match (&one.port, one.answers) {
        (None, _) if one.told.as_ref().is_some_and(is_gateway) => "yes".to_owned(),
        (None, _) => "-".to_owned(),
        (Some(Ok(port)), true) => format!("port {port}"),
        (Some(Ok(port)), false) => format!("no answer at port {port}"),
        (Some(Err(why)), _) => format!("port file: {}", visible(why)),
    }
}

fn connected(one: &Known, asked: bool) -> String {
    match &one.told {
        None if !asked => "unknown".to_owned(),
        None => "-".to_owned(),
        Some(info) if is_gateway(info) => visible(&info.state).into_owned(),
        Some(info) if info.error.is_empty() => {
            format!(
                "{}, {}",
                visible(&info.state),
                counted(info.tool_count, "tool")
            )
        }
        Some(info) => format!("{}: {}", visible(&info.state), visible(&info.error)),
    }
}

fn object(name: &str, one: &Known) -> serde_json::Value {
    let port = one.port.as_ref();
    json!({
        "name": name,
        "program": one.program,
        "port": port.and_then(|port| port.as_ref().ok()),
        "port_file_error": port.and_then(|port| port.as_ref().err()),
        "answers": one.answers,
        "component": one.told.as_ref().map(crate::json::of),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_and_port_files_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        for (path, mode) in [
            (a.join("crabtalk-dice"), 0o755),
            (b.join("crabtalk-dice"), 0o755),
            (b.join("crabtalk-search"), 0o755),
            (b.join("crabtalk-notes.txt"), 0o755),
            (b.join("crabtalk-plain"), 0o644),
            (b.join("other"), 0o755),
        ] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = programs(&[a.clone(), b.clone(), folder.path().join("absent")]);
        let want = [
            ("dice", a.join("crabtalk-dice")),
            ("search", b.join("crabtalk-search")),
        ];
        assert_eq!(
            found,
            want.map(|(name, path)| (name.to_owned(), path)).into()
        );

        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::write(run.join("dice.port"), "4711\nabc\n").unwrap();
        fs::write(run.join("odd.port"), "x".repeat(9999)).unwrap();
        fs::create_dir(run.join("folder.port")).unwrap();
        fs::write(run.join("daemon.pid"), "1").unwrap();
        let files = port_files(&run);
        assert_eq!(files.len(), 3);
        assert_eq!(files["dice"], Ok(4711));
        assert!(files["odd"].as_ref().unwrap_err().contains("more than"));
        assert!(
            files["folder"]
                .as_ref()
                .unwrap_err()
                .contains("not a regular file")
        );
    }
}
