//! Checks without the daemon: home, disk, configuration and socket.

use super::Finding;
use crate::system::{self, Room};
use crabtalk_config::{Config, Home};
use std::path::Path;

/// Name of the configuration check.
pub(super) const CONFIG: &str = "config";

/// Minimum free space.
const LITTLE_ROOM: u64 = 200 * 1024 * 1024;

/// Maximum length of a socket path on Linux.
const SOCKET_PATH: usize = 107;

pub(super) fn look(home: &Home) -> Vec<Finding> {
    let mut found = vec![folder(home.root())];
    if !home.root().is_dir() {
        found.push(config(home));
        // The daemon would create the home but fail on the socket.
        found.extend(socket(home));
        return found;
    }
    found.extend(secrets(home));
    found.push(room(home.root()));
    found.push(config(home));
    found.extend(socket(home));
    found
}

fn folder(root: &Path) -> Finding {
    let shown = root.display();
    let metadata = match root.metadata() {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Finding::fine(
                "home",
                format!("{shown} does not exist yet; the daemon creates it"),
            );
        }
        Err(e) => {
            let mend = "change its permissions, or use another --home";
            return Finding::wrong("home", format!("{shown}: {e}"), mend);
        }
    };
    if !metadata.is_dir() {
        let mend = "move it away, or use another --home";
        return Finding::wrong("home", format!("{shown} is not a folder"), mend);
    }
    if let Some(owner) = system::another_owner(&metadata) {
        let said = format!("{shown} belongs to user {owner}");
        let mend = format!("sudo chown -R \"$(id -u)\" {shown}");
        return Finding::wrong("home", said, mend);
    }
    if let Some(mode) = system::open_to_others(&metadata) {
        let said = format!("{shown} is accessible to other users ({mode:o})");
        return Finding::warning("home", said, format!("chmod 700 {shown}"));
    }
    Finding::fine("home", format!("{shown}, private"))
}

/// Files with keys that other users can read.
fn secrets(home: &Home) -> Vec<Finding> {
    let mut files = vec![home.config_file(), home.approvals_file(), home.trust_file()];
    // The configuration check reports a broken file.
    if let Ok((config, _)) = Config::load(&home.config_file(), &|name| std::env::var_os(name)) {
        let keys = config.provider.into_iter().filter_map(|p| p.api_key_file);
        files.extend(keys);
    }
    files.sort();
    files.dedup();
    let open = files.into_iter().filter(|path| {
        path.metadata()
            .is_ok_and(|m| m.is_file() && system::open_to_others(&m).is_some())
    });
    open.map(|path| {
        let path = path.display();
        Finding::warning(
            "secrets",
            format!("{path} is readable by other users"),
            format!("chmod 600 {path}"),
        )
    })
    .collect()
}

fn room(root: &Path) -> Finding {
    match system::room(root) {
        Ok(room) => room_of(room),
        Err(e) => Finding::warning("disk", format!("cannot read the free space: {e}"), ""),
    }
}

fn room_of(Room { read_only, free }: Room) -> Finding {
    if read_only {
        let said = "the home is on a read-only file system";
        return Finding::wrong("disk", said, "mount it writable, or choose another --home");
    }
    let said = format!("{} MiB free", free / (1024 * 1024));
    if free < LITTLE_ROOM {
        let mend = "make room; removed conversations are in sessions/trash";
        return Finding::wrong("disk", said, mend);
    }
    Finding::fine("disk", said)
}

fn config(home: &Home) -> Finding {
    let file = home.config_file();
    let mend = "crabtalk config edit";
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Finding::wrong(CONFIG, format!("{}: {e}", file.display()), mend),
    };
    match Config::parse(&text, &file, &|name| std::env::var_os(name)) {
        Err(error) => Finding::wrong(CONFIG, error.to_string(), mend),
        Ok((_, warnings)) if !warnings.is_empty() => {
            let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            Finding::warning(CONFIG, lines.join("\n"), mend)
        }
        Ok(_) if !file.exists() => Finding::fine(
            CONFIG,
            format!("{} does not exist; defaults apply", file.display()),
        ),
        Ok(_) => Finding::fine(CONFIG, format!("{} is valid", file.display())),
    }
}

fn socket(home: &Home) -> Option<Finding> {
    let path = home.socket();
    let length = path.as_os_str().len();
    (length > SOCKET_PATH).then(|| {
        Finding::wrong(
            "socket",
            format!(
                "{} has {length} bytes; the maximum is {SOCKET_PATH}",
                path.display()
            ),
            "choose a shorter --home or CRABTALK_HOME",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn state_of(found: &[Finding], what: &str) -> Option<State> {
        let found = found.iter().find(|finding| finding.what == what);
        found.map(|finding| finding.state)
    }

    #[test]
    fn private_home_is_fine() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(&folder.path().join("h"), None).unwrap();
        assert_eq!(look(&home)[0].state, State::Fine, "not there yet");
        let home = home.create().unwrap();
        let found = look(&home);
        for finding in &found {
            assert_eq!(finding.state, State::Fine, "{finding:?}");
        }
    }

    #[test]
    fn open_folders_and_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(&folder.path().join("h"), None)
            .unwrap()
            .create()
            .unwrap();
        std::fs::write(home.config_file(), "modle = 'x'\n").unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        open(&home.config_file(), 0o644);
        open(home.root(), 0o755);
        let found = look(&home);
        for what in ["home", "secrets", CONFIG] {
            assert_eq!(state_of(&found, what), Some(State::Warning), "{what}");
        }
        let config = found.iter().find(|finding| finding.what == CONFIG).unwrap();
        assert!(config.said.contains("did you mean model"), "{config:?}");
        // Key files of providers are checked too.
        let key = home.root().join("config/key");
        let text = "[provider.p]\nkind = \"openai\"\napi_key_file = \"key\"\n";
        std::fs::write(home.config_file(), text).unwrap();
        std::fs::write(&key, "sk-planted").unwrap();
        open(&key, 0o644);
        let told = |found: &[Finding]| {
            let key = key.display().to_string();
            found
                .iter()
                .any(|f| f.what == "secrets" && f.said.contains(&key))
        };
        assert!(told(&look(&home)));
        open(&key, 0o600);
        assert!(!told(&look(&home)));
        std::fs::write(home.config_file(), "model = 5\n").unwrap();
        assert_eq!(state_of(&look(&home), CONFIG), Some(State::Wrong));
    }

    #[test]
    fn bad_home_and_long_socket_path_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let finding = &look(&Home::at(&file, None).unwrap())[0];
        assert_eq!((finding.what, finding.state), ("home", State::Wrong));
        assert!(finding.mend.contains("--home"), "{finding:?}");
        let deep = folder.path().join("d".repeat(120));
        let found = look(&Home::at(&deep, None).unwrap());
        assert_eq!(state_of(&found, "socket"), Some(State::Wrong));
        let finding = found.iter().find(|finding| finding.what == "socket");
        assert!(finding.unwrap().mend.contains("CRABTALK_HOME"));
    }

    #[test]
    fn full_and_read_only_disks_are_reported() {
        let judged = |read_only, free| room_of(Room { read_only, free });
        assert_eq!(judged(false, u64::MAX).state, State::Fine);
        for (finding, mend) in [
            (judged(true, u64::MAX), "mount it writable"),
            (judged(false, LITTLE_ROOM - 1), "make room"),
        ] {
            assert_eq!(finding.state, State::Wrong);
            assert!(finding.mend.contains(mend), "{finding:?}");
        }
    }
}
