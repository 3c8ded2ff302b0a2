//! The page for writers of components, followed word by word in a folder outside of
//! the workspace.
//!
//! Blocks of `console` are run in their order, and the block of `rust` becomes
//! `src/main.rs`. Invariants: the home, the daemon, the package, what is installed and its service
//! lie in a folder that goes, and the system's service manager hears of none of it; versions are those
//! of our own lock file, so that nothing is fetched; what was started is ended.

use crate::walks;
use anyhow::{Context, ensure};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The page, from the root of the workspace.
const PAGE: &str = "docs/guide/writing-components.md";

/// From here on it is about other languages.
const END: &str = "## In any language";

/// The name under which a person has our sources, below their home.
const CLONE: &str = "crabtalk";

/// How long a state may take that a command shows: the daemon finds a component, for
/// instance.
const WITHIN: Duration = Duration::from_secs(120);

/// How long what a command starts beside may take, which is compiled first.
const STARTS_WITHIN: Duration = Duration::from_secs(900);

/// Where `crabtalk` lies alone, below the target folder: what is installed is found by its
/// own place, and not because Cargo has put it beside.
const ALONE: &str = "guide";

/// Where the walk installs, below the person's home.
const INSTALLED: &str = ".cargo/bin";

/// Runs services in place of systemd.
const SYSTEMCTL: &str = include_str!("guide/systemctl.py");

/// Between two looks at a state.
const LOOK: Duration = Duration::from_millis(500);

/// What the page wants done.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    /// A command, and what it prints.
    Run(&'a str, Vec<&'a str>),
    /// The program's source.
    Source(String),
}

/// A program that a command started beside.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        // A component ends in order: it is Cargo's child, in a group of its own.
        if let Some(group) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
            let signal = rustix::process::Signal::TERM;
            // One that has ended already is nobody's.
            let _ = rustix::process::kill_process_group(group, signal);
        }
        let _ = self.0.wait();
    }
}

/// Builds the program and follows the page.
pub(crate) fn walk() -> anyhow::Result<()> {
    let root = walks::root()?;
    let target = walks::target(&root);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "-p", "crabtalk"]);
    let built = build.current_dir(&root).status()?;
    ensure!(built.success(), "the program cannot be built");
    follow(&root, &target)
}

/// Follows the page. The program `crabtalk` was built.
fn follow(root: &Path, target: &Path) -> anyhow::Result<()> {
    let page = fs::read_to_string(root.join(PAGE))?;
    let home = tempfile::tempdir()?;
    std::os::unix::fs::symlink(root, home.path().join(CLONE))?;
    let alone = target.join(ALONE);
    fs::create_dir_all(&alone)?;
    // Not a link that is followed: a program knows where it lies.
    let crabtalk = alone.join("crabtalk");
    if crabtalk.exists() {
        fs::remove_file(&crabtalk)?;
    }
    fs::hard_link(target.join("debug/crabtalk"), crabtalk)?;
    let system = home.path().join("system");
    fs::create_dir(&system)?;
    let systemctl = system.join("systemctl");
    fs::write(&systemctl, SYSTEMCTL)?;
    fs::set_permissions(&systemctl, PermissionsExt::from_mode(0o755))?;
    let mut walker = Walker {
        root,
        target,
        programs: [alone, system, home.path().join(INSTALLED)],
        home: home.path(),
        folder: home.path().to_owned(),
        beside: Vec::new(),
    };
    let walked = steps(&page)
        .into_iter()
        .try_for_each(|step| walker.take(&step));
    walker.command("crabtalk daemon stop").output()?;
    let services = fs::read_dir(walker.home.join(".running"));
    for unit in services.into_iter().flatten() {
        let unit = unit?.file_name();
        let stop = format!("systemctl --user disable --now {}", unit.display());
        walker.command(&stop).output()?;
    }
    walked
}

struct Walker<'a> {
    root: &'a Path,
    target: &'a Path,
    /// Where programs are looked for first.
    programs: [PathBuf; 3],
    home: &'a Path,
    /// Where the person is by now.
    folder: PathBuf,
    beside: Vec<Beside>,
}

impl Walker<'_> {
    fn take(&mut self, step: &Step<'_>) -> anyhow::Result<()> {
        match step {
            Step::Source(text) => Ok(fs::write(self.folder.join("src/main.rs"), text)?),
            Step::Run(line, shown) => {
                writeln!(std::io::stdout(), "$ {line}")?;
                if let Some(folder) = line.strip_prefix("cd ") {
                    self.folder.push(folder);
                    // What a registry has by now is none of our business.
                    let lock = self.folder.join("Cargo.lock");
                    fs::copy(self.root.join("Cargo.lock"), lock)?;
                    return Ok(());
                }
                if *line == "kill %1" {
                    // What was started beside ends, in order.
                    self.beside.clear();
                    return Ok(());
                }
                match line.strip_suffix(" &") {
                    Some(line) => self.start(line),
                    None => self.run(line, shown),
                }
            }
        }
    }

    /// Starts what goes on beside, and waits until it has announced itself.
    fn start(&mut self, line: &str) -> anyhow::Result<()> {
        use std::os::unix::process::CommandExt;
        let mut command = self.command(line);
        let child = command.stdin(Stdio::null()).process_group(0).spawn()?;
        self.beside.push(Beside(child));
        let run = self.home.join(".crabtalk/run");
        let begun = Instant::now();
        loop {
            let announced = fs::read_dir(&run).into_iter().flatten().flatten();
            let is_port = |name: PathBuf| name.extension().is_some_and(|end| end == "port");
            if announced.into_iter().any(|entry| is_port(entry.path())) {
                return Ok(());
            }
            let last = self.beside.last_mut().context("it was started")?;
            let ended = last.0.try_wait()?;
            ensure!(ended.is_none(), "`{line}` of {PAGE} ended: {ended:?}");
            ensure!(begun.elapsed() < STARTS_WITHIN, "`{line}` does not start");
            std::thread::sleep(LOOK);
        }
    }

    /// Runs a command until it prints what the page says.
    fn run(&self, line: &str, shown: &[&str]) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let output = self.command(line).output()?;
            let printed = [output.stderr, output.stdout].concat();
            let printed = String::from_utf8_lossy(&printed);
            let missing = shown.iter().find(|wanted| !printed.contains(**wanted));
            if missing.is_none() && output.status.success() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < WITHIN && !shown.is_empty(),
                "`{line}` of {PAGE} ends with {} and does not print {missing:?}, but:\n{printed}",
                output.status
            );
            std::thread::sleep(LOOK);
        }
    }

    fn command(&self, line: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let programs = self.programs.iter().cloned();
        let path = programs.chain(std::env::split_paths(&path));
        let mut command = Command::new("sh");
        // Whoever runs it may have a daemon, keys and models of their own.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CRABTALK_") || name.ends_with("_API_KEY") {
                command.env_remove(&*name);
            }
        }
        // Their toolchain is this one.
        let real = std::env::var_os("HOME").map(PathBuf::from);
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let known = real.as_ref().map(|home| home.join(folder));
            if let (None, Some(known)) = (std::env::var_os(name), known) {
                command.env(name, known);
            }
        }
        command
            .args(["-c", line])
            .current_dir(&self.folder)
            .env("PATH", std::env::join_paths(path).unwrap_or_default())
            .env("HOME", self.home)
            // Nothing of the person's own is looked at or changed.
            .env("CARGO_INSTALL_ROOT", self.home.join(".cargo"))
            .env_remove("XDG_CONFIG_HOME")
            .env("CARGO_TARGET_DIR", self.target)
            .env("CARGO_NET_OFFLINE", "true")
            // As the workspace has it, so that few dependencies are compiled again.
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("CRABTALK_DETECT", "0");
        command
    }
}

/// What the page says, in its order.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut found = Vec::new();
    let mut lines = page.lines().take_while(|line| *line != END);
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "rust" => found.push(Step::Source(block.join("\n") + "\n")),
            "console" => found.extend(commands(&block)),
            _ => {}
        }
    }
    found
}

/// Each command of a block, with what is shown behind it.
fn commands<'a>(block: &[&'a str]) -> Vec<Step<'a>> {
    let mut found: Vec<Step<'a>> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push(Step::Run(command, Vec::new())),
            (None, Some(Step::Run(_, shown))) => shown.push(line),
            (None, _) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_makes_a_package_and_has_its_tool_called_by_hand_and_as_a_service() {
        let page = fs::read_to_string(walks::root().unwrap().join(PAGE)).unwrap();
        let steps = steps(&page);
        let at = |begin: &str| {
            let is_it = |step: &Step<'_>| match step {
                Step::Run(line, _) => line.starts_with(begin),
                Step::Source(text) => text.starts_with(begin),
            };
            let found = steps.iter().position(is_it);
            found.unwrap_or_else(|| panic!("{begin}: {steps:?}"))
        };
        let order = [
            at("cargo new "),
            at("cargo add crabtalk-component"),
            at("//! A component"),
            at("cargo run "),
            at("crabtalk mcps"),
            at("crabtalk ask "),
            at("kill %1"),
            at("cargo install "),
            at("crabtalk dice start --dry-run"),
            at("crabtalk dice status"),
            at("crabtalk components"),
            at("crabtalk dice logs"),
            at("crabtalk dice stop"),
        ];
        assert!(order.is_sorted(), "{steps:?}");
    }
}
