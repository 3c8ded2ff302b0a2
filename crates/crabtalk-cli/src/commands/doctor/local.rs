//! What can be seen without the daemon: the home, the disk, the configuration,
//! the clock and the terminal.

use super::Finding;
use crate::system::{self, Room};
use crabtalk_config::{Config, Home};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The name of the look at the configuration.
pub(super) const CONFIG: &str = "config";

/// Room below which the next long conversation may not fit.
const LITTLE_ROOM: u64 = 200 * 1024 * 1024;

/// A file may be this much newer than the clock says.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);

/// The longest path of a socket on Linux; others have a little less.
const SOCKET_PATH: usize = 107;

/// Fewer columns make tables and questions hard to read.
const FEW_COLUMNS: u16 = 40;

pub(super) fn look(home: &Home) -> Vec<Finding> {
    let mut found = vec![folder(home.root())];
    if !home.root().is_dir() {
        found.push(config(home));
        // It would be made, and nobody could reach the daemon in it.
        found.extend(socket(home));
        return found;
    }
    found.extend(secrets(home));
    found.push(room(home.root()));
    found.push(config(home));
    found.extend(socket(home));
    found.push(clock(home));
    found
}

fn folder(root: &Path) -> Finding {
    let shown = root.display();
    let metadata = match root.metadata() {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Finding::fine(
                "home",
                format!("{shown} is not there yet; the daemon makes it"),
            );
        }
        Err(e) => {
            let mend = "give yourself the folder, or name another home with --home";
            return Finding::wrong("home", format!("{shown}: {e}"), mend);
        }
    };
    if !metadata.is_dir() {
        let mend = "move it away, or name another home with --home";
        return Finding::wrong("home", format!("{shown} is no folder"), mend);
    }
    if let Some(owner) = system::another_owner(&metadata) {
        let said = format!("{shown} belongs to the user {owner}");
        let mend = format!("sudo chown -R \"$(id -u)\" {shown}");
        return Finding::wrong("home", said, mend);
    }
    if let Some(mode) = system::open_to_others(&metadata) {
        let said = format!("{shown} is open to others ({mode:o})");
        return Finding::warning("home", said, format!("chmod 700 {shown}"));
    }
    Finding::fine("home", format!("{shown}, private"))
}

/// Files with keys that others may read, providers' key files too.
fn secrets(home: &Home) -> Vec<Finding> {
    let mut files = vec![home.config_file(), home.approvals_file(), home.trust_file()];
    // What is wrong with the configuration itself is another look's finding.
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
            format!("{path} is open to others"),
            format!("chmod 600 {path}"),
        )
    })
    .collect()
}

fn room(root: &Path) -> Finding {
    match system::room(root) {
        Ok(room) => room_of(room),
        Err(e) => Finding::warning("disk", format!("its room is not known: {e}"), ""),
    }
}

fn room_of(Room { read_only, free }: Room) -> Finding {
    if read_only {
        let said = "the home is on a read-only file system: nothing can be said or kept";
        return Finding::wrong("disk", said, "mount it writable, or choose another --home");
    }
    let said = format!("{} MiB are free", free / (1024 * 1024));
    if free < LITTLE_ROOM {
        let mend = "make room; `crabtalk conversations` says what there is, and what was removed lies in sessions/trash";
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
            format!("{} is not there: defaults hold", file.display()),
        ),
        Ok(_) => Finding::fine(CONFIG, format!("{} can be read", file.display())),
    }
}

fn socket(home: &Home) -> Option<Finding> {
    let path = home.socket();
    let length = path.as_os_str().len();
    (length > SOCKET_PATH).then(|| {
        Finding::wrong(
            "socket",
            format!(
                "{} has {length} bytes, of {SOCKET_PATH} that a socket's path may have",
                path.display()
            ),
            "choose a shorter --home or CRABTALK_HOME",
        )
    })
}

/// Whether files are from the future, which is how a wrong clock shows.
fn clock(home: &Home) -> Finding {
    let newest = [home.sessions_dir(), home.state_dir(), home.logs_dir()]
        .into_iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|files| files.flatten())
        .filter_map(|file| file.metadata().ok()?.modified().ok())
        .max();
    let ahead = newest.and_then(|at| at.duration_since(SystemTime::now()).ok());
    match ahead.filter(|ahead| *ahead > CLOCK_SLACK) {
        None => Finding::fine("clock", "no file is from the future"),
        Some(ahead) => Finding::wrong(
            "clock",
            format!(
                "files of the home are {} hours ahead of the clock: schedules and budgets would be wrong",
                ahead.as_secs() / 3600
            ),
            "set the clock; `timedatectl` shows it",
        ),
    }
}

pub(super) fn terminal(is_one: bool) -> Option<Finding> {
    if !is_one {
        return None;
    }
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let locale = [set("LC_ALL"), set("LC_CTYPE"), set("LANG")]
        .into_iter()
        .find(|value| !value.is_empty())
        .unwrap_or_default();
    let columns = system::columns().unwrap_or(0);
    Some(terminal_of(&set("TERM"), &locale, columns))
}

fn terminal_of(term: &str, locale: &str, columns: u16) -> Finding {
    if matches!(term, "" | "dumb") {
        let said = format!("TERM is {term:?}: the chat is plain lines, without colours");
        return Finding::warning(
            "terminal",
            said,
            "set TERM to what the terminal is, such as xterm-256color",
        );
    }
    let utf8 = locale.to_ascii_lowercase().replace('-', "");
    if !utf8.contains("utf8") {
        let said = format!("the locale is {locale:?}: letters beyond ASCII may look wrong");
        return Finding::warning("terminal", said, "export LANG=C.UTF-8");
    }
    if (1..FEW_COLUMNS).contains(&columns) {
        let said = format!("{columns} columns are few");
        return Finding::warning("terminal", said, "make the window wider");
    }
    Finding::fine("terminal", format!("{term}, {columns} columns, {locale}"))
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
    fn a_home_that_is_as_it_should_be_is_fine() {
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
    fn open_folders_and_files_are_named_with_what_closes_them() {
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
        // A key in a file of its own is a secret as well.
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
    fn what_is_no_home_or_has_no_place_for_a_socket_is_named() {
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
    fn a_disk_that_is_full_or_read_only_is_wrong_and_said_how_to_mend() {
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

    #[test]
    fn files_from_the_future_show_a_wrong_clock() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(&folder.path().join("h"), None)
            .unwrap()
            .create()
            .unwrap();
        let file = std::fs::File::create(home.log_file()).unwrap();
        let later = SystemTime::now() + Duration::from_secs(800 * 24 * 3600);
        file.set_modified(later).unwrap();
        assert_eq!(state_of(&look(&home), "clock"), Some(State::Wrong));
    }

    #[test]
    fn a_terminal_is_judged_by_what_it_says_of_itself() {
        let judged = |term, locale, columns| terminal_of(term, locale, columns).state;
        assert_eq!(judged("xterm", "en_GB.UTF-8", 80), State::Fine);
        assert_eq!(judged("dumb", "en_GB.UTF-8", 80), State::Warning);
        assert_eq!(judged("xterm", "C", 80), State::Warning);
        assert_eq!(judged("xterm", "C.utf8", 20), State::Warning);
    }
}
